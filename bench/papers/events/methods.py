"""`build`: the versions of the paper and ours, filled with a scenario's subscriptions.

A method is timed in two ways. In the first, it matches all events in one call and returns row
numbers; encoding the events is not timed, except for `Fencepost, batch`. In the second, it matches
mappings one by one and returns sorted ids.
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
ALIKE = ", S_INTERSECTS"  # suffix of our methods with the simpler subscriptions
ONE = ", one by one"
_INDEX = {STANDARD: "ops4st-standard", OPTIMISED: "ops4st"}

Rows: TypeAlias = NDArray[np.int64]
Pairs: TypeAlias = NDArray[np.int64]  # (n, 2): event and row of a subscription, sorted


@dataclass(frozen=True, slots=True)
class Way:
    """A call that is timed.

    items : the number of events.
    run : the call.
    pairs : from its result to pairs of an event and a subscription.
    """

    items: int
    run: Callable[[], Any]
    pairs: Callable[[Any], Pairs]


@dataclass(frozen=True, slots=True)
class Built:
    """All methods by name, with sizes in bytes and seconds to build."""

    ways: dict[str, Way]
    nbytes: dict[str, int]
    build_s: dict[str, float]
    tables: dict[str, EventsTable]  # the paper's versions
    matcher: Matcher  # our engine


def conditions(scenario: Scenario) -> list[Condition]:
    """Return the parsed subscriptions."""
    parsed = [parse_ops4st(text) for text in scenario.subscriptions]
    return [condition for condition in parsed if isinstance(condition, Condition)]


def mappings(scenario: Scenario, count: int) -> list[dict[str, Any]]:
    """Return the first events as mappings with GeoJSON points."""
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
    """Build all methods.

    one_by_one : the number of events that are matched one by one.
    """
    subscriptions = conditions(scenario)
    built = Built({}, {}, {}, {}, Matcher(space="planar"))
    events = mappings(scenario, one_by_one)
    for name, index in _INDEX.items():
        _add_version(built, name, index, subscriptions, scenario, events)
    _add_ours(built, "", built.matcher, subscriptions, scenario, events)
    if scenario.alike:
        _add_ours(built, ALIKE, Matcher(space="planar"), scenario.alike, scenario, events)
    return built


def _subscribe_all(matcher: Matcher, subscriptions: list[Any]) -> float:
    """Add all subscriptions, with row numbers as ids. Return the seconds."""
    began = time.perf_counter()
    matcher.subscribe_many(
        [{"id": str(row), "expression": expression} for row, expression in enumerate(subscriptions)]
    )
    matcher.match({})
    return time.perf_counter() - began


def _add_version(
    built: Built,
    name: str,
    index: Any,
    subscriptions: list[Condition],
    scenario: Scenario,
    events: list[dict[str, Any]],
) -> None:
    matcher = Matcher(index=index, space="planar")
    built.build_s[name] = _subscribe_all(matcher, subscriptions)
    table = table_of(matcher)
    built.ways[name] = version(table, scenario, np.arange(len(scenario)))
    built.ways[name].run()  # packs the new regions
    built.nbytes[name] = table.index.nbytes
    built.tables[name] = table
    built.ways[name + ONE] = _one_by_one(matcher, events)


def version(table: EventsTable, scenario: Scenario, rows: Rows) -> Way:
    """Return a version of the paper that matches these rows of the events only."""
    block = encode_rows(table, scenario, rows)
    count = len(scenario.subscriptions)
    ids = np.array([int(table.subscription(number)) for number in range(count)], np.int64)
    return Way(
        len(scenario),
        lambda: table.index.match_many(block),
        lambda matches: _sorted(rows[events_of(matches.stops)], ids[matches.numbers]),
    )


def table_of(matcher: Matcher) -> EventsTable:
    """Return the table of a matcher with an index of the paper."""
    engine = matcher._engine
    assert isinstance(engine, TableEngine)
    assert isinstance(engine._table, EventsTable)
    return engine._table


def encode_rows(table: EventsTable, scenario: Scenario, rows: Rows) -> Events:
    """Return events in the form that the paper's versions match."""
    names = (*scenario.attributes, "geometry")
    values = [*zip(*scenario.attributes.values(), shapely.points(scenario.points), strict=True)]
    return table.encode_events(
        [EventValues(dict(zip(names, values[row], strict=True))) for row in rows.tolist()]
    )


def _add_ours(
    built: Built,
    suffix: str,
    matcher: Matcher,
    subscriptions: list[Any],
    scenario: Scenario,
    events: list[dict[str, Any]],
) -> None:
    built.build_s[KERNEL + suffix] = _subscribe_all(matcher, subscriptions)
    snapshot = matcher.view().snapshot()
    table = event_table(scenario)
    columns = matcher.view().columns
    block = struct_ref(encode_events(columns, EventTable.read(table, columns.space)))
    runner, now = KernelRunner(), time.time_ns()
    ids = [
        np.array([int(segment.id_of(row)) for row in range(len(segment))], np.int64)
        for segment in snapshot
    ]
    built.nbytes[KERNEL + suffix] = int(matcher.stats()["bytes"])

    def pairs(parts: list[Any]) -> Pairs:
        return _sorted(
            np.concatenate([events_of(stops) for _, stops in parts]),
            np.concatenate(
                [segment_ids[rows] for segment_ids, (rows, _) in zip(ids, parts, strict=True)]
            ),
        )

    built.ways[KERNEL + suffix] = Way(
        len(scenario), lambda: runner.match(snapshot, block, now), pairs
    )
    built.ways[BATCH + suffix] = Way(
        len(scenario),
        lambda: matcher.match_batch(table),
        lambda matches: _sorted(
            matches["event"].to_numpy(),
            pc.cast(pc.cast(matches["subscription"], pa.string()), pa.int64()).to_numpy(),
        ),
    )
    built.ways[f"Fencepost{suffix}{ONE}"] = _one_by_one(matcher, events)


def event_table(scenario: Scenario) -> pa.Table:
    """Return the events as a table with points as WKB."""
    places = pa.array(shapely.to_wkb(shapely.points(scenario.points)), pa.binary())
    return pa.table({**scenario.attributes, "geometry": places})


def _one_by_one(matcher: Matcher, events: list[dict[str, Any]]) -> Way:
    def run() -> list[list[str]]:
        return [matcher.match(event) for event in events]

    def pairs(matches: list[list[str]]) -> Pairs:
        rows = [(event, int(id)) for event, ids in enumerate(matches) for id in ids]
        event_rows = np.array(rows, np.int64).reshape(-1, 2)
        return _sorted(event_rows[:, 0], event_rows[:, 1])

    return Way(len(events), run, pairs)


def _sorted(events: NDArray[Any], rows: NDArray[Any]) -> Pairs:
    order = np.lexsort((rows, events))
    return np.column_stack((events[order], rows[order])).astype(np.int64)
