"""A matcher used by many threads, and an index opened by many processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fencepost.engine import Matcher, match_pairs
from fencepost.engine import segment as segments_module
from fencepost.engine import segment_manager as manager_module
from fencepost.engine.columns import event_columns as events_module
from fencepost.engine.columns import single_event_layout as one_event_module
from fencepost.engine.segment_builder import merge_to_table as merge_arrays
from fencepost.geometry.readers.single_geometry import read_unchecked
from fencepost.testing import keep_segments_small
from tests.waiting import WAIT_S, until


def run_together(*functions: Callable[[], None]) -> None:
    """Run functions at the same time; raise here what they raise."""
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(len(functions)) as pool:
            for future in [pool.submit(function) for function in functions]:
                future.result(timeout=WAIT_S)
    finally:
        sys.setswitchinterval(switch)


@pytest.mark.parametrize("index", ["auto", "cr-tree", "rt++", "ops4st"])
def test_a_match_sees_only_states_that_existed(index: Any) -> None:
    """A writer adds each step before it removes the previous one.

    So a match sees one step or two consecutive steps, and never an earlier step than before.
    """
    matcher = Matcher(index=index, space="planar")
    for number in range(50):
        matcher.subscribe(f"always{number}", "n > 0")
    event = {"n": 1, **{f"x{k}": 1 for k in range(200)}}
    always = {f"always{number}" for number in range(50)}
    stop = threading.Event()
    steps = 200

    def change() -> None:
        try:
            for step in range(steps):
                # Each step has a new attribute, so that columns are added while readers match.
                matcher.subscribe(f"step{step}", f"x{step} = 1")
                if step:
                    assert matcher.unsubscribe(f"step{step - 1}")
        finally:
            stop.set()

    def read() -> None:
        latest = 0
        while not stop.is_set():
            ids = set(matcher.match(event))
            assert always <= ids
            steps_seen = sorted(int(id[4:]) for id in ids - always)
            assert len(steps_seen) <= 2
            if steps_seen:
                assert steps_seen[0] >= latest - 1, "went back"
                latest = steps_seen[-1]
            assert (
                steps_seen == list(range(steps_seen[0], steps_seen[0] + len(steps_seen)))
                if steps_seen
                else True
            )

    run_together(change, read, read)
    assert set(matcher.match(event)) == always | {f"step{steps - 1}"}


@pytest.mark.parametrize("index", ["auto", "sff"])
def test_a_replacement_is_never_absent(index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("s", "n > 0")
    matcher.match({"n": 1})
    stop = threading.Event()

    def change() -> None:
        try:
            for step in range(300):
                matcher.subscribe("s", f"n > {-step}", replace=True)
        finally:
            stop.set()

    def read() -> None:
        while not stop.is_set():
            assert matcher.match({"n": 1}) == ["s"]
            assert matcher.match_batch([{"n": 1}], sort=True)["subscription"].to_pylist() == ["s"]

    run_together(change, read, read)


def _slowly(merging: threading.Event, may_continue: threading.Event) -> Callable[..., Any]:
    """Return a merge that signals its start and waits, except in the main thread."""

    def merge_to_table(*args: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            merging.set()
            assert may_continue.wait(WAIT_S)
        return merge_arrays(*args)

    return merge_to_table


def test_changes_are_seen_and_kept_while_segments_are_merged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a merge waits, subscriptions are added, removed, replaced and matched."""
    merging, may_continue = threading.Event(), threading.Event()
    monkeypatch.setattr(segments_module, "merge_to_table", _slowly(merging, may_continue))
    matcher = Matcher(space="planar")
    keep_segments_small(matcher, max_memtable_rows=1, max_small_rows=0)
    for id in ("stays", "goes", "changes"):
        matcher.subscribe(id, "n > 0")
    matcher.subscribe("differs", "n < 0")
    assert merging.wait(WAIT_S)
    assert matcher.match({"n": 1}) == ["changes", "goes", "stays"]
    assert matcher.unsubscribe("goes")
    matcher.subscribe("changes", "n > 5", replace=True)
    matcher.subscribe("comes", "n > 0")
    before = matcher.view().snapshot()
    for _ in range(2):
        assert matcher.match({"n": 1}) == ["comes", "stays"]
        assert matcher.match({"n": 6}) == ["changes", "comes", "stays"]
        assert matcher.ids() == ["changes", "comes", "differs", "stays"]
        may_continue.set()
        matcher.compact()
    assert len(matcher.view().snapshot()) < len(before)
    assert matcher.view().snapshot().version == before.version


def test_adding_fast_waits_for_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "_MAX_SEGMENTS", 3)
    matcher = Matcher(space="planar")
    keep_segments_small(matcher, max_memtable_rows=1, max_small_rows=0)
    for k in range(60):
        matcher.subscribe(f"s{k}", f"n = {k}")
        assert len(matcher.view().snapshot()) <= 4
    assert [matcher.match({"n": k}) for k in range(60)] == [[f"s{k}"] for k in range(60)]


def test_an_older_snapshot_stays_as_it_was() -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("a", "n > 0")
    matcher.compact()
    matcher.subscribe("b", "n > 0")
    old = matcher.view().snapshot()
    matcher.subscribe("c", "n > 0")
    matcher.unsubscribe("a")
    matcher.subscribe("b", "n > 5", replace=True)
    matcher.compact()
    rows = match_pairs(matcher, old, [{"n": 1}]).rows.tolist()
    assert [old[row].id_of(0) for row in rows] == ["a", "b"]
    assert matcher.match({"n": 1}) == ["c"]


def test_versions_restart_after_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager_module, "LAST_VERSION", 5)
    matcher = Matcher(space="planar")
    keep_segments_small(matcher, max_memtable_rows=3, max_small_rows=0)
    for k in range(40):
        matcher.subscribe(f"s{k}", "n > 0")
        if k % 3:
            assert matcher.unsubscribe(f"s{k - 1}")
        assert len(matcher) == len(matcher.match({"n": 1})) == len(matcher.ids())
        assert matcher.view().snapshot().version <= 5
    matcher.compact()
    assert matcher.match({"n": 1}) == sorted(f"s{k}" for k in range(40) if k % 3 == 2 or k == 39)


def test_a_forked_child_can_change_segments_that_its_parent_was_merging(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merging, may_continue = threading.Event(), threading.Event()
    monkeypatch.setattr(segments_module, "merge_to_table", _slowly(merging, may_continue))
    matcher = Matcher(space="planar")
    keep_segments_small(matcher, max_memtable_rows=1, max_small_rows=0)
    matcher.subscribe("s", "n > 0")
    for k in range(3):
        matcher.subscribe(f"other {k}", "n < 0")
    assert merging.wait(WAIT_S)
    may_continue.set()
    child = os.fork()
    if child == 0:  # pragma: no cover (another process)
        try:
            matcher.subscribe("t", "n > 0")
            matcher.compact()
            os._exit(0 if matcher.match({"n": 1}) == ["s", "t"] else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    matcher.compact()
    assert matcher.match({"n": 1}) == ["s"]


def test_an_attribute_added_while_an_event_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread adds an attribute between counting the columns and filling them."""
    matcher = Matcher(space="planar")
    matcher.subscribe("s", "n > 0 AND s = 'a' AND S_INTERSECTS(g, POINT(0 0)) AND l IS NULL")
    event = {
        "n": 1,
        "s": "a",
        "g": "LINESTRING (0 0, 1 0)",
    }  # not a point, for which there is a fast path
    assert matcher.match(event) == ["s"]
    serial = iter(range(1000))

    def interrupt() -> None:
        thread = threading.Thread(target=add)
        thread.start()
        thread.join(WAIT_S)
        assert not thread.is_alive()

    class Interrupted(events_module.EventColumnBuilder):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            interrupt()

    def interrupted(value: object) -> object:
        interrupt()
        return read_unchecked(value)

    def add() -> None:
        k = next(serial)
        new = f"n{k} > 0 AND s{k} = 'a' AND S_INTERSECTS(g{k}, POINT(0 0)) AND l{k} IS NULL"
        matcher.subscribe(f"new{k}", new + f" AND b{k} AND A_OVERLAPS(l{k}, ('a'))")
        matcher.stats()

    monkeypatch.setattr(events_module, "EventColumnBuilder", Interrupted)
    monkeypatch.setattr(one_event_module, "read_unchecked", interrupted)
    assert matcher.match(event) == ["s"]
    assert matcher.match_batch([event, event]).num_rows == 2
    assert matcher.match_batch(pa.Table.from_pylist([event])).num_rows == 1
    assert matcher.match(event) == ["s"]
    assert next(serial) == 4  # each call was interrupted once


def test_columns_added_by_two_threads() -> None:
    for _ in range(20):
        matcher = Matcher(space="planar")

        def add(name: str, matcher: Matcher = matcher) -> None:
            for k in range(10):
                matcher.subscribe_columns([f"{name}{k}"], equals={f"{name}{k}": [1]})

        run_together(lambda: add("a"), lambda: add("b"))
        for name in ("a", "b"):
            for k in range(10):
                assert matcher.match({f"{name}{k}": 1}) == [f"{name}{k}"]


def test_a_saved_matcher_is_whole_whenever_it_is_opened(tmp_path: Path) -> None:
    """A thread saves two matchers in turn; readers always open one of the two as a whole."""
    path = tmp_path / "index"
    matchers = []
    for count in (1, 5):
        matcher = Matcher(space="planar")
        for k in range(count):
            matcher.subscribe(f"s{k}", f"x{count}{k} = 1 AND n > {k}")
        matchers.append(matcher)
    matchers[0].save(path)
    stop = threading.Event()

    def write() -> None:
        try:
            for step in range(60):
                matchers[step % 2].save(path, overwrite=True)
        finally:
            stop.set()

    def read() -> None:
        while not stop.is_set():
            opened = Matcher.open(path)
            count = len(opened)
            assert count in (1, 5)
            event = {"n": 9, **{f"x{count}{k}": 1 for k in range(count)}}
            assert opened.match(event) == [f"s{k}" for k in range(count)]

    run_together(write, read, read)
    assert [p.name for p in tmp_path.iterdir()] == ["index"]  # no other file is left


@pytest.mark.parametrize("rows", [0, 1, 9_999, 10_000, 10_001, 25_003])
def test_matches_do_not_depend_on_threads(rows: int) -> None:
    matcher = Matcher(space="planar")
    for k in range(40):
        matcher.subscribe(f"s{k}", f"n % 40 = {k} AND S_INTERSECTS(g, BBOX({k}, 0, {k + 3}, 1))")
        matcher.subscribe(f"t{k}", f"s = '{k}'")
    table = pa.table(
        {
            "n": pa.array(range(rows), pa.int64()),
            "s": pa.array([str(row % 50) for row in range(rows)], pa.string()),
            "g": pa.array([f"POINT ({row % 45} 0.5)" for row in range(rows)], pa.string()),
        }
    )
    sequential = matcher.match_batch(table, threads=1, sort=True)
    for threads in (2, 5):
        assert matcher.match_batch(table, threads=threads, sort=True).equals(sequential)


_CHILD = """
import sys
from fencepost.engine import Matcher
m = Matcher.open(sys.argv[1])
print(m.match({"n": 1, "g": "POINT (1 1)"}))
assert m.unsubscribe("a")
print(m.match({"n": 1, "g": "POINT (1 1)"}))
"""


def test_an_index_is_opened_by_two_processes_at_once(tmp_path: Path) -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("a", "n = 1")
    matcher.subscribe("b", "S_INTERSECTS(g, BBOX(0, 0, 2, 2))")
    matcher.save(tmp_path / "index")
    command = [sys.executable, "-c", _CHILD, str(tmp_path / "index")]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for child in children:
        out, _ = child.communicate(timeout=WAIT_S)
        assert child.returncode == 0
        assert out.splitlines() == ["['a', 'b']", "['b']"]
    # A process removes subscriptions only from its own copy.
    assert Matcher.open(tmp_path / "index").ids() == ["a", "b"]


def test_subscriptions_added_in_parts_end_in_few_segments() -> None:
    matcher = Matcher(space="planar")
    keep_segments_small(matcher, max_small_rows=0)
    for part in range(30):
        rows = [{"id": f"{part}-{n}", "expression": f"n = {n}"} for n in range(100)]
        matcher.subscribe_many(rows)

    def are_few() -> bool:
        sizes = [len(segment) for segment in matcher.view().snapshot()]
        return all(size > 4 * sum(sizes[k:]) for k, size in enumerate(sizes, 1))

    until(are_few)  # merges run in the background
    assert len(matcher.match({"n": 7})) == 30


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_failed_merge_raises_for_the_caller_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    matcher = Matcher(space="planar")
    for part in range(3):
        rows = [{"id": f"{part}-{n}", "expression": f"n = {n}"} for n in range(100)]
        matcher.subscribe_many(rows)

    def failing(*_: object) -> object:
        raise MemoryError("no memory for this")

    with monkeypatch.context() as patch:
        patch.setattr(manager_module, "merge_segments", failing)
        with pytest.raises(MemoryError, match="no memory"):
            matcher.reindex()
        assert matcher.match({"n": 7}) == ["0-7", "1-7", "2-7"]
    matcher.reindex()
    assert len(matcher.view().snapshot()) == 1
    assert matcher.match({"n": 7}) == ["0-7", "1-7", "2-7"]
