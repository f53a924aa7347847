"""Events a second, and the time from publishing to delivery, at several rates."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from matplotlib.figure import Figure

from bench.peers.showing import Goal, at_most
from bench.progress import Progress
from bench.report import Report, Table
from bench.server import town
from bench.server.load import Listeners, Outcome, Publishers
from bench.server.process import Process, served
from bench.timing import figure

ASKED_EVENTS, ASKED_P99_MS = 5_000.0, 50.0
LISTENERS = 100
_EVENTS = 50_000
_RATES: tuple[float, ...] = (500.0, 1_000.0, 2_500.0, 4_000.0)
_QUICK: tuple[float, ...] = (500.0,)
_WARM_S = 2.0


def run(name: str, *, scale: int, quick: bool, seed: int, progress: Progress) -> Report:
    """Measure with so many subscriptions."""
    rates = _QUICK if quick else _RATES
    seconds = 2.0 if quick else 10.0
    progress.expect(len(rates) + 2)
    with (
        tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder,
        served(Path(folder)) as server,
    ):
        progress.step(f"making {scale:,} subscriptions")
        loaded_s = _subscribe(server.url, scale, seed)
        outcomes = asyncio.run(_measure(server, rates, seconds, seed, progress))
        memory = server.most_memory()
    return _report(name, scale, loaded_s, outcomes, memory, seed)


def _subscribe(url: str, count: int, seed: int) -> float:
    begin = time.perf_counter()
    with httpx.Client(base_url=url, timeout=600) as http:
        for lines in town.subscriptions(count, LISTENERS, seed):
            answer = http.post(
                "/v1/subscriptions",
                content=lines.encode(),
                headers={"content-type": "application/x-ndjson"},
            )
            assert not answer.raise_for_status().json()["rejected"], answer.text[:500]
    return time.perf_counter() - begin


async def _measure(
    server: Process, rates: Sequence[float], seconds: float, seed: int, progress: Progress
) -> list[Outcome]:
    listeners = Listeners()
    await listeners.open(server.url, [f"r{number}" for number in range(LISTENERS)])
    publishers = Publishers(server.url, town.events(_EVENTS, seed))
    await publishers.run(listeners, 500.0, _WARM_S)
    outcomes = []
    for rate in [*rates, None]:
        progress.step("as many as possible" if rate is None else f"{rate:,.0f} events/s")
        outcomes.append(await publishers.run(listeners, rate, seconds))
    await listeners.close()
    return outcomes


def _report(
    name: str, scale: int, loaded_s: float, outcomes: Sequence[Outcome], memory: int, seed: int
) -> Report:
    half = next((one for one in outcomes if one.asked == ASKED_EVENTS / 2), None)
    most = outcomes[-1]
    goals = [
        Goal(
            "events a second, in batches",
            f"{ASKED_EVENTS:,.0f} or more",
            f"{most.published:,.0f}",
            most.published >= ASKED_EVENTS,
        ),
        at_most(
            "p99 from publishing to delivery, at half of that",
            ASKED_P99_MS,
            None if half is None else float(np.percentile(half.delays_ms, 99)),
            "ms",
        ),
    ]
    return Report(
        name,
        f"A server with {scale:,} subscriptions and {LISTENERS} connected subscribers",
        {
            "seed": seed,
            "subscriptions": scale,
            "listeners": LISTENERS,
            "loaded_s": loaded_s,
            "most_memory_bytes": memory,
            "rates": [_plain(one) for one in outcomes],
            "goals": [goal.plain() for goal in goals],
        },
        [_goal_table(goals), _rate_table(outcomes)],
        lambda picture: _draw(picture, outcomes),
        notes=[
            "Publishers, subscribers and server share this machine, over loopback. An event is "
            "answered once it and its messages are on the disk (SQLite, synchronous=FULL).",
            "A delay is from before the request is sent to when a subscriber has the message, of "
            "each message; at a rate, batches of a hundredth of a second's events; as many as "
            "possible: batches of 500, two at a time.",
            f"Making the subscriptions over HTTP took {figure(loaded_s)} s; the server had at most "
            f"{memory / 2**20:,.0f} MiB in memory.",
        ],
    )


def _plain(one: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = {
        "asked": one.asked,
        "published": one.published,
        "messages": one.messages,
    }
    for what, values in (("delay", one.delays_ms), ("answer", one.answers_ms)):
        for share in (50, 99, 99.9):
            found[f"{what}_p{share:g}_ms"] = float(np.percentile(values, share))
    return found


def _goal_table(goals: Sequence[Goal]) -> Table:
    shown = {True: "yes", False: "NO", None: "-"}
    rows = [[one.what, one.asked, one.measured, shown[one.met]] for one in goals]
    return Table("What was asked for", ["goal", "asked", "measured", "met"], rows)


def _rate_table(outcomes: Sequence[Outcome]) -> Table:
    rows = []
    for one in outcomes:
        values = [figure(float(np.percentile(one.delays_ms, share))) for share in (50, 99, 99.9)]
        answer = figure(float(np.percentile(one.answers_ms, 50)))
        rate = "as many as possible" if one.asked is None else f"{one.asked:,.0f}"
        rows.append([rate, f"{one.published:,.0f}", f"{one.messages:,}", *values, answer])
    columns = ["asked, events/s", "answered, events/s", "messages", "p50 ms", "p99 ms"]
    return Table("From publishing to delivery", [*columns, "p99.9 ms", "answer p50 ms"], rows)


def _draw(picture: Figure, outcomes: Sequence[Outcome]) -> None:
    axes = picture.subplots()
    rates = [one.published for one in outcomes]
    for share, colour in ((50, "#0b6e4f"), (99, "#e0a100"), (99.9, "#b5442e")):
        values = [float(np.percentile(one.delays_ms, share)) for one in outcomes]
        axes.plot(rates, values, "o-", color=colour, label=f"p{share:g}")
    axes.axhline(ASKED_P99_MS, color="#888888", linestyle=":", label="asked of p99 at 2,500/s")
    axes.set_yscale("log")
    axes.set_xlabel("events a second that were answered; the last: as many as possible")
    axes.set_ylabel("ms from publishing to delivery")
    axes.legend()
