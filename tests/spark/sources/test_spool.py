"""The spool: appended messages are read again, also after a crash tears the end of a file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.errors import StoreError
from fencepost.spark.sources import spool as spool_module
from fencepost.spark.sources.spool import SpoolReader, SpoolWriter, open_writer
from fencepost.spark.sources.spool_files import SCHEMA, Message, read_range

MESSAGES = st.builds(
    Message,
    topic=st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    payload=st.binary(max_size=20),
    received=st.integers(0, 2**50),
    redelivered=st.booleans(),
)


def message(number: int, size: int = 0) -> Message:
    return Message(f"t/{number % 3}", b"%d" % number + bytes(size), 1000 + number, False)


def writer(folder: Path) -> SpoolWriter:
    made = open_writer(folder)
    assert made is not None
    return made


def read(
    reader: SpoolReader, start: int, end: int, max_messages: int = 1000
) -> list[tuple[Any, ...]]:
    batches = [
        batch
        for message_range in reader.ranges(start, end, max_messages)
        for batch in read_range(message_range)
    ]
    table = pa.Table.from_batches(batches, SCHEMA)
    table = table.set_column(2, "received", table["received"].cast(pa.int64()))
    return [tuple(row.values()) for row in table.to_pylist()]


@given(
    groups=st.lists(
        st.tuples(st.lists(MESSAGES, min_size=1, max_size=4), st.binary(max_size=30)), max_size=6
    ),
    max_messages=st.integers(1, 5),
    data=st.data(),
)
def test_appended_messages_are_read_from_any_position(
    groups: list[tuple[list[Message], bytes]], max_messages: int, data: st.DataObject
) -> None:
    """Compared with a list; each group has a new writer, and may be followed by a torn frame."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)  # slow, and not needed here
        patch.setattr(spool_module, "_MAX_FILE_BYTES", data.draw(st.sampled_from([1, 2000, 10**6])))
        folder = Path(name)
        expected: list[tuple[Any, ...]] = []
        reader = SpoolReader(folder)
        for group, torn in groups:
            made = writer(folder)
            assert made.end == len(expected)
            made.append(group)
            made.close()
            expected += [(*one, len(expected) + k) for k, one in enumerate(group)]
            last = max(folder.glob("*.spool"))
            whole = last.read_bytes()
            cut = whole[-len(torn) :] if torn else b""
            last.write_bytes(whole + b"FPS1\xff\xff\xff\x7f" + cut if cut else whole)
            assert reader.refresh() == len(expected)
        start = data.draw(st.integers(0, len(expected)))
        end = data.draw(st.integers(start, len(expected)))
        assert read(reader, start, end, max_messages) == expected[start:end]
        sizes = [
            message_range.messages for message_range in reader.ranges(start, end, max_messages)
        ]
        assert sum(sizes) == end - start
        assert all(0 < size <= max_messages for size in sizes)
        fresh = SpoolReader(folder, "other")
        assert read(fresh, 0, fresh.end) == expected
        fresh.close()
        reader.close()


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_torn_frame_is_truncated_and_overwritten(tmp_path: Path, cut: int) -> None:
    made = writer(tmp_path)
    made.append([message(0), message(1)])
    made.append([message(2)])
    made.close()
    path = next(tmp_path.glob("*.spool"))
    path.write_bytes(path.read_bytes()[:-cut])
    again = writer(tmp_path)
    assert again.end == 2
    again.append([message(7)])
    reader = SpoolReader(tmp_path)
    assert [row[1] for row in read(reader, 0, reader.end)] == [b"0", b"1", b"7"]
    assert again.last(2) == [("t/1", b"1"), ("t/1", b"7")]
    assert len(again.last(99)) == 3
    again.close()
    reader.close()


def test_zeros_after_a_power_failure_are_truncated(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.append([message(0)])
    made.close()
    path = next(tmp_path.glob("*.spool"))
    path.write_bytes(path.read_bytes() + bytes(4096))
    again = writer(tmp_path)
    again.append([message(1)])
    again.close()
    reader = SpoolReader(tmp_path)
    assert len(read(reader, 0, 2)) == 2
    reader.close()


def test_damage_in_the_middle_is_an_error(tmp_path: Path) -> None:
    made = writer(tmp_path)
    made.append([message(0)])
    made.append([message(1)])
    made.close()
    path = next(tmp_path.glob("*.spool"))
    data = bytearray(path.read_bytes())
    data[60] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreError, match=r"damaged.*byte 0"):
        writer(tmp_path)
    with pytest.raises(StoreError, match="damaged"):
        SpoolReader(tmp_path)


def test_missing_or_short_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_module, "_MAX_FILE_BYTES", 1)
    made = writer(tmp_path)
    for number in range(4):
        made.append([message(number)])
    made.close()
    files = sorted(tmp_path.glob("*.spool"))
    assert len(files) == 4
    files[1].write_bytes(files[1].read_bytes()[:-1])
    with pytest.raises(StoreError, match="damaged"):
        SpoolReader(tmp_path)
    files[1].unlink()
    with pytest.raises(StoreError, match=r"damaged.*position 1"):
        SpoolReader(tmp_path)


def test_files_are_deleted_when_all_readers_have_passed_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_module, "_MAX_FILE_BYTES", 1)
    monkeypatch.setattr(spool_module, "MIN_RETAINED_MESSAGES", 3)
    made = writer(tmp_path)
    for number in range(10):
        made.append([message(number)])
    one, two = SpoolReader(tmp_path, "one"), SpoolReader(tmp_path, "two")

    def kept() -> list[int]:
        return [int(path.stem) for path in sorted(tmp_path.glob("*.spool"))]

    one.commit(9)
    assert kept() == list(range(10))
    two.commit(2)
    assert kept() == list(range(2, 10))
    two.commit(10)
    assert kept() == [7, 8, 9]
    two.refresh()
    assert (two.first, two.end) == (7, 10)
    with pytest.raises(StoreError, match=r"positions 2 to 7 were requested .* has 7 to 9"):
        two.ranges(2, 8, 100)
    with pytest.raises(StoreError, match="has 7 to 9"):
        two.ranges(9, 11, 100)
    assert two.ranges(3, 3, 100) == []
    late = SpoolReader(tmp_path, "late")
    assert late.first == 7
    made.append([message(10)])
    assert late.refresh() == 11
    for reader in (one, two, late):
        reader.close()
    made.close()


_HOLD = """
import sys, os, signal
from pathlib import Path
from fencepost.spark.sources.spool import SpoolReader, open_writer
from fencepost.spark.sources.spool_files import Message
writer = open_writer(Path(sys.argv[1]))
reader = SpoolReader(Path(sys.argv[1]), "held")
writer.append([Message("t", b"x", 1, False)])
print("ready", flush=True)
sys.stdin.read()
"""


def test_locks_last_until_the_process_is_killed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        assert open_writer(tmp_path) is None
        with pytest.raises(StoreError, match=r"another query reads .* as 'held'"):
            SpoolReader(tmp_path, "held", wait_s=0.0)
        following = SpoolReader(tmp_path, "mine")
        assert following.end == 1
        other.kill()
        other.wait()
    made = open_writer(tmp_path, wait_s=10.0)
    assert made is not None
    made.append([message(1)])
    assert following.refresh() == 2
    SpoolReader(tmp_path, "held").close()
    following.close()
    made.close()


def test_large_groups_become_several_frames(tmp_path: Path) -> None:
    made = writer(tmp_path)
    many = [message(number, size=1 << 20) for number in range(20)]
    made.append(many)
    reader = SpoolReader(tmp_path)
    file = next(iter(reader._spool_files.values()))
    assert len(file.frames) == 3
    assert [row[1] for row in read(reader, 0, 20)] == [one.payload for one in many]
    reader.close()
    made.close()


def test_a_full_disk_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = writer(tmp_path)
    made.append([message(0)])

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(StoreError, match=r"No space left on device; free disk space"):
            made.append([message(1)])
    made.close()


@pytest.mark.parametrize("name", ["", "a/b", "..", "a.lock"])
def test_invalid_reader_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match="cannot name a reader"):
        SpoolReader(tmp_path, name)
