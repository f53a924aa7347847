"""Buses among a thousand fences: the events that they need not send. (Not in the paper.)"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

import fencepost as fp
from bench.papers.events import bus_positions
from bench.papers.events.bus_positions import Positions
from bench.progress import Progress
from bench.report import Report, Table
from fencepost.papers.events import GreedyRectangles

FENCES = 1000
RADIUS_M = 300.0
_ALL_POSITIONS = 600_000
_CHUNK = 50_000
_STREET = 1000  # cells of a degree; a cell with positions counts as one place of a street
ALL = "every event"


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of positions, for the comparison and for each point of the sweep."""

    positions: int
    swept: int
    holes: tuple[int, ...] = (8, 32, 64, 128, 256, 512)
    cells: tuple[int, ...] = (16, 32, 64)


FULL = Sizes(600_000, 20_000)
QUICK = Sizes(4_000, 1_000, (32, 128), (32,))


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one method.

    Attributes
    ----------
    sent, sent_outside : int
        Events that were sent, and sent events in no fence.
    outside : int
        Events in no fence.
    missed : int
        Events in a fence that were not sent; must be 0.
    server_s, client_s : float
        Time to match and answer sent events, and time to decide whether to send.
    answered_bytes : int
        Size of the answers.
    index_bytes : int
        Size of the fences and of the index for safe regions.
    """

    events: int
    outside: int
    sent: int
    sent_outside: int
    missed: int
    server_s: float
    client_s: float
    answered_bytes: int
    index_bytes: int

    @property
    def saved(self) -> float:
        """The share of the events in no fence that were not sent."""
        return 1.0 - self.sent_outside / max(self.outside, 1)


def run(sizes: Sizes, *, seed: int, source: str | None, progress: Progress) -> Report:
    """Measure and check."""
    progress.expect(3 + len(sizes.holes) + len(sizes.cells))
    all_positions = bus_positions.read(source, _ALL_POSITIONS, seed)
    matcher = fences(all_positions, seed)
    positions = all_positions.first(sizes.positions)
    in_fence = in_fences(matcher, positions)
    compared: dict[str, Outcome] = {}
    methods: dict[str, dict[str, Any] | None] = {
        ALL: None,
        "GLR": {"method": GreedyRectangles()},
        "ours": {},
    }
    for name, options in methods.items():
        progress.step(name)
        compared[name] = drive(matcher, positions, in_fence, options)
    first_positions = positions.first(sizes.swept)
    swept: dict[str, Outcome] = {}
    for cells in sizes.cells:
        progress.step(f"GLR, {cells} cells a side")
        options = {"method": GreedyRectangles(cells=(cells, cells))}
        swept[f"GLR, {cells} x {cells} cells"] = drive(matcher, first_positions, in_fence, options)
    for holes in sizes.holes:
        progress.step(f"ours, {holes} fences a region")
        swept[f"ours, {holes} fences"] = drive(
            matcher, first_positions, in_fence, {"max_holes": holes}
        )
    return Report(
        "buses",
        f"Buses among {FENCES:,} fences of {RADIUS_M:.0f} m: what need not be sent",
        {
            "seed": seed,
            "origin": positions.origin,
            "positions": len(positions),
            "buses": positions.buses,
            "in_fences": float(in_fence.mean()),
            "compared": {name: _plain(outcome) for name, outcome in compared.items()},
            "swept": {name: _plain(outcome) for name, outcome in swept.items()},
            "missed": sum(outcome.missed for outcome in (*compared.values(), *swept.values())),
        },
        [_compared_table(compared), _swept_table(swept, len(first_positions))],
        lambda picture: _draw(picture, compared, swept),
        size=(11.0, 4.8),
        notes=[
            f"The first {len(positions):,} of {len(all_positions):,} {positions.origin}, "
            f"{positions.buses} buses; fences round {FENCES:,} places of the streets of all, each "
            f"{1 / _STREET:g} degrees of them once; "
            f"{in_fence.mean():.1%} of the positions are in a fence.",
            "Saved: of the events in no fence, those never sent. Missed: events in a fence that "
            "were not sent. Server: matching what was sent, and the answer to it, in one thread "
            "of Python; sent back: answers in JSON.",
            "GLR has a grid of 32 x 32 cells and ours 256 fences a region, unless said.",
        ],
    )


def fences(positions: Positions, seed: int) -> fp.Matcher:
    """Return a matcher of fences round random places of the streets; no place has two fences."""
    rng = np.random.default_rng(seed)
    places = np.round(np.column_stack((positions.lon, positions.lat)) * _STREET)
    _, first = np.unique(places, axis=0, return_index=True)
    rows = rng.choice(first, FENCES, replace=len(first) < FENCES)
    centres = shapely.points(positions.lon[rows], positions.lat[rows])
    matcher = fp.Matcher("wgs84")
    ids = [f"fence-{number}" for number in range(FENCES)]
    matcher.subscribe_columns(ids, within={"geometry": (centres, np.full(FENCES, RADIUS_M))})
    return matcher


def in_fences(matcher: fp.Matcher, positions: Positions) -> NDArray[np.bool_]:
    """Return which positions are in a fence."""
    in_fence = np.zeros(len(positions), bool)
    for first in range(0, len(positions), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        points = shapely.to_wkb(shapely.points(positions.lon[chunk], positions.lat[chunk]))
        matches = matcher.match_batch(pa.table({"geometry": points}))
        in_fence[first + matches["event"].to_numpy()] = True
    return in_fence


def drive(
    matcher: fp.Matcher,
    positions: Positions,
    in_fence: NDArray[np.bool_],
    options: dict[str, Any] | None,
) -> Outcome:
    """Let the buses drive, each with a client.

    options : arguments of `SafeRegions`; None to send every event.
    """
    regions = None if options is None else fp.SafeRegions(matcher, **options)
    clients = [fp.SafeClient() for _ in range(int(positions.vehicle.max()) + 1)]
    sent = np.zeros(len(positions), bool)
    server = client = 0.0
    answered = 0
    rows = zip(*(column.tolist() for column in positions[:3]), strict=True)
    for number, (vehicle, lon, lat) in enumerate(rows):
        event = {"geometry": {"type": "Point", "coordinates": [lon, lat]}}
        begin = time.perf_counter()
        safe_client = clients[vehicle]
        if not safe_client.should_send(event):
            client += time.perf_counter() - begin
            continue
        client += time.perf_counter() - begin
        sent[number] = True
        begin = time.perf_counter()
        matcher.match(event)
        if regions is not None:
            answer = regions.answer(event, str(vehicle))
            answered += len(answer)
            server += time.perf_counter() - begin
            safe_client.accept(answer)
        else:
            server += time.perf_counter() - begin
    inside = in_fence[: len(positions)]
    return Outcome(
        len(positions),
        int((~inside).sum()),
        int(sent.sum()),
        int((sent & ~inside).sum()),
        int((inside & ~sent).sum()),
        server,
        client,
        answered,
        matcher.stats()["bytes"] + (0 if regions is None else regions.nbytes),
    )


def _plain(outcome: Outcome) -> dict[str, Any]:
    return {**asdict(outcome), "saved": outcome.saved}


def _row(name: str, outcome: Outcome) -> list[str]:
    return [
        name,
        f"{outcome.sent:,}",
        f"{outcome.sent_outside:,}",
        f"{outcome.saved:.1%}",
        f"{outcome.missed:,}",
        f"{outcome.server_s / outcome.events * 1e6:,.1f}",
        f"{outcome.server_s / max(outcome.sent, 1) * 1e6:,.1f}",
        f"{outcome.client_s / outcome.events * 1e6:,.1f}",
        f"{outcome.answered_bytes / outcome.events:,.0f}",
        f"{outcome.index_bytes / 1024:,.0f}",
    ]


_COLUMNS = [
    "method",
    "sent",
    "of which in no fence",
    "saved",
    "missed",
    "server, us an event",
    "us an event sent",
    "client, us an event",
    "bytes back, an event",
    "index, KiB",
]


def _compared_table(compared: dict[str, Outcome]) -> Table:
    events = next(iter(compared.values())).events
    rows = [_row(name, one) for name, one in compared.items()]
    return Table(f"All {events:,} positions", _COLUMNS, rows)


def _swept_table(swept: dict[str, Outcome], count: int) -> Table:
    rows = [_row(name, one) for name, one in swept.items()]
    return Table(f"The first {count:,} positions", _COLUMNS, rows)


def _draw(picture: Any, compared: dict[str, Outcome], swept: dict[str, Outcome]) -> None:
    left, right = picture.subplots(1, 2)
    names = list(compared)
    inside = [outcome.sent - outcome.sent_outside for outcome in compared.values()]
    outside = [outcome.sent_outside for outcome in compared.values()]
    left.bar(names, inside, color="#4c78a8", label="in a fence")
    left.bar(names, outside, bottom=inside, color="#f58518", label="in no fence")
    left.set_ylabel("events sent")
    left.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    left.set_title("What is sent")
    left.set_ylim(0, 1.25 * compared[ALL].sent)
    left.legend(loc="upper right")
    for kind, colour in (("GLR", "#e45756"), ("ours", "#54a24b")):
        outcomes = {name: outcome for name, outcome in swept.items() if name.startswith(kind)}
        x = [outcome.answered_bytes / outcome.events for outcome in outcomes.values()]
        y = [100 * outcome.saved for outcome in outcomes.values()]
        right.plot(x, y, "o-", color=colour, label=kind)
        for name, a, b in list(zip(outcomes, x, y, strict=True))[
            :: 1 if kind == "ours" else len(outcomes)
        ]:
            right.annotate(
                name.removeprefix(f"{kind}, "), (a, b), (4, 4), textcoords="offset points",
                fontsize=9,
            )  # fmt: skip
    right.set_xlabel("bytes sent back, an event")
    right.set_ylabel("% of events in no fence never sent")
    right.set_ylim(0, 105)
    right.set_title("What a region saves, and costs")
    right.legend(loc="center right")
