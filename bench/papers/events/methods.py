"""The versions of the paper and ours, filled with a scenario's subscriptions.

A method is timed in two ways: all events at once, laid out beforehand (`Fencepost, batch` lays them
out in its time), row numbers out; and one event at a time, a mapping in, sorted ids out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from bench.papers.events.scenarios import Scenario
from fencepost.cql2.ast import Condition
from fencepost.engine.columns.event_columns import encode_events
from fencepost.engine.kernel_runner import KernelRunner, events_of
from fencepost.engine.matcher import Matcher
from fencepost.events.event_values import EventValues
from fencepost.events.table import EventTable
from fencepost.kernels.runtime.struct_references import struct_ref
from fencepost.papers.events import parse_ops4st
from fencepost.papers.events.adapter import EventsTable
from fencepost.papers.events.ops4st_arrays import Events
from fencepost.papers.table_engine import TableEngine

STANDARD = "OPS4ST, standard"
OPTIMISED = "OPS4ST, optimised"
SILENT = "OPS4ST, optimised, safe regions"
KERNEL = "Fencepost, kernel"
BATCH = "Fencepost, batch"
ALIKE = ", S_INTERSECTS"  # behind the names of ours, where it has the simpler subscriptions
ONE = ", one by one"
_INDEX = {STANDARD: "ops4st-standard", OPTIMISED: "ops4st"}

Rows: TypeAlias = NDArray[np.int64]
Pairs: TypeAlias = NDArray[np.int64]  # (n, 2): event and row of a subscription, sorted


@dataclass(frozen=True, slots=True)
class Way:
    """What is timed, of how many events, and what it found as pairs."""

    items: int
    run: Callable[[], Any]
    pairs: Callable[[Any], Pairs]


@dataclass(frozen=True, slots=True)
class Built:
    """Methods by name; how many bytes the subscriptions have in each; seconds to build."""

    ways: dict[str, Way]
    nbytes: dict[str, int]
    build_s: dict[str, float]
    tables: dict[str, EventsTable]  # of the paper's versions
    matcher: Matcher  # ours


def conditions(scenario: Scenario) -> list[Condition]:
    """The subscriptions, read."""
    found = [parse_ops4st(text) for text in scenario.subscriptions]
    return [one for one in found if isinstance(one, Condition)]


def mappings(scenario: Scenario, count: int) -> list[dict[str, Any]]:
    """The first events as mappings with GeoJSON points."""
    names = list(scenario.attributes)
    rows = zip(*scenario.attributes.values(), scenario.points.tolist(), strict=True)
    return [
        {
            **dict(zip(names, values, strict=True)),
            "geometry": {"type": "Point", "coordinates": point},
        }
        for *values, point in (row for row, _ in zip(rows, range(count), strict=False))
    ]


def build(scenario: Scenario, one_by_one: int) -> Built:
    """All methods; so many events are matched one by one."""
    asked = conditions(scenario)
    built = Built({}, {}, {}, {}, Matcher())
    events = mappings(scenario, one_by_one)
    for name, index in _INDEX.items():
        _add_version(built, name, index, asked, scenario, events)
    _add_ours(built, "", built.matcher, asked, scenario, events)
    if scenario.alike:
        _add_ours(built, ALIKE, Matcher(), scenario.alike, scenario, events)
    return built


def _subscribed(matcher: Matcher, asked: list[Any]) -> float:
    """Subscribe to all, ids being row numbers; the seconds it took."""
    began = time.perf_counter()
    matcher.subscribe_many([{"id": str(row), "expression": one} for row, one in enumerate(asked)])
    matcher.match({})
    return time.perf_counter() - began


def _add_version(
    built: Built,
    name: str,
    index: str,
    asked: list[Condition],
    scenario: Scenario,
    events: list[dict[str, Any]],
) -> None:
    matcher = Matcher(index=index)
    built.build_s[name] = _subscribed(matcher, asked)
    table = table_of(matcher)
    built.ways[name] = version(table, scenario, np.arange(len(scenario)))
    built.ways[name].run()  # packs what is new
    built.nbytes[name] = table.index.nbytes
    built.tables[name] = table
    built.ways[name + ONE] = _one_by_one(matcher, events)


def version(table: EventsTable, scenario: Scenario, rows: Rows) -> Way:
    """A version of the paper on these rows of the events; the others cost it nothing."""
    block = laid_out(table, scenario, rows)
    count = len(scenario.subscriptions)
    ids = np.array([int(table.subscription(number)) for number in range(count)], np.int64)
    return Way(
        len(scenario),
        lambda: table.index.match_many(block),
        lambda found: _sorted(rows[events_of(found.stops)], ids[found.numbers]),
    )


def table_of(matcher: Matcher) -> EventsTable:
    """The table behind a matcher with an index of the paper."""
    engine = matcher._engine
    assert isinstance(engine, TableEngine)
    assert isinstance(engine._table, EventsTable)
    return engine._table


def laid_out(table: EventsTable, scenario: Scenario, rows: Rows) -> Events:
    """Events as the paper's versions take them."""
    names = (*scenario.attributes, "geometry")
    every = [*zip(*scenario.attributes.values(), shapely.points(scenario.points), strict=True)]
    return table.laid_out(
        [EventValues(dict(zip(names, every[row], strict=True))) for row in rows.tolist()]
    )


def _add_ours(
    built: Built,
    suffix: str,
    matcher: Matcher,
    asked: list[Any],
    scenario: Scenario,
    events: list[dict[str, Any]],
) -> None:
    built.build_s[KERNEL + suffix] = _subscribed(matcher, asked)
    shelves = matcher.view().snapshot()
    table = as_table(scenario)
    columns = matcher.view().columns
    block = struct_ref(encode_events(columns, EventTable.read(table, columns.space)))
    runner, now = KernelRunner(), time.time_ns()
    ids = [
        np.array([int(shelf.id_of(row)) for row in range(len(shelf))], np.int64)
        for shelf in shelves
    ]
    built.nbytes[KERNEL + suffix] = int(matcher.stats()["bytes"])

    def pairs(parts: list[Any]) -> Pairs:
        return _sorted(
            np.concatenate([events_of(stops) for _, stops in parts]),
            np.concatenate([own[rows] for own, (rows, _) in zip(ids, parts, strict=True)]),
        )

    built.ways[KERNEL + suffix] = Way(
        len(scenario), lambda: runner.match(shelves, block, now), pairs
    )
    built.ways[BATCH + suffix] = Way(
        len(scenario),
        lambda: matcher.match_batch(table),
        lambda found: _sorted(
            found["event"].to_numpy(),
            pc.cast(pc.cast(found["subscription"], pa.string()), pa.int64()).to_numpy(),
        ),
    )
    built.ways[f"Fencepost{suffix}{ONE}"] = _one_by_one(matcher, events)


def as_table(scenario: Scenario) -> pa.Table:
    """The events as a table with points as WKB."""
    places = pa.array(shapely.to_wkb(shapely.points(scenario.points)), pa.binary())
    return pa.table({**scenario.attributes, "geometry": places})


def _one_by_one(matcher: Matcher, events: list[dict[str, Any]]) -> Way:
    def run() -> list[list[str]]:
        return [matcher.match(event) for event in events]

    def pairs(found: list[list[str]]) -> Pairs:
        rows = [(event, int(id)) for event, ids in enumerate(found) for id in ids]
        both = np.array(rows, np.int64).reshape(-1, 2)
        return _sorted(both[:, 0], both[:, 1])

    return Way(len(events), run, pairs)


def _sorted(events: NDArray[Any], rows: NDArray[Any]) -> Pairs:
    order = np.lexsort((rows, events))
    return np.column_stack((events[order], rows[order])).astype(np.int64)
