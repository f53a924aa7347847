"""Measures events a second, and the time from publishing to delivery, at several rates."""

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

from bench.peers.figure_reports import Goal, at_most, goal_table
from bench.progress import Progress
from bench.report import Report, Table
from bench.server import town
from bench.server.load import Listeners, Outcome, Publishers
from bench.server.process import Process, served
from bench.timing import figure

MIN_EVENTS_PER_S, MAX_P99_MS = 5_000.0, 50.0  # the goals
SUBSCRIBERS = 100
_EVENTS = 50_000
_RATES: tuple[float, ...] = (500.0, 1_000.0, 2_500.0, 4_000.0)
_QUICK_RATES: tuple[float, ...] = (500.0,)
_WARM_UP_S = 2.0


def run(name: str, *, scale: int, quick: bool, seed: int, progress: Progress) -> Report:
    """Measure with `scale` subscriptions."""
    rates = _QUICK_RATES if quick else _RATES
    seconds = 2.0 if quick else 10.0
    progress.expect(len(rates) + 2)
    with (
        tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder,
        served(Path(folder)) as server,
    ):
        progress.step(f"adding {scale:,} subscriptions")
        loaded_s = _subscribe(server.url, scale, seed)
        outcomes = asyncio.run(_measure(server, rates, seconds, seed, progress))
        memory = server.peak_memory_bytes()
    return _report(name, scale, loaded_s, outcomes, memory, seed)


def _subscribe(url: str, count: int, seed: int) -> float:
    begin = time.perf_counter()
    with httpx.Client(base_url=url, timeout=600) as http:
        for lines in town.subscriptions(count, SUBSCRIBERS, seed):
            response = http.post(
                "/v1/subscriptions",
                content=lines.encode(),
                headers={"content-type": "application/x-ndjson"},
            )
            assert not response.raise_for_status().json()["rejected"], response.text[:500]
    return time.perf_counter() - begin


async def _measure(
    server: Process, rates: Sequence[float], seconds: float, seed: int, progress: Progress
) -> list[Outcome]:
    listeners = Listeners()
    await listeners.open(server.url, [f"r{number}" for number in range(SUBSCRIBERS)])
    publishers = Publishers(server.url, town.events(_EVENTS, seed))
    await publishers.run(listeners, 500.0, _WARM_UP_S)
    outcomes = []
    for rate in [*rates, None]:
        progress.step("as many as possible" if rate is None else f"{rate:,.0f} events/s")
        outcomes.append(await publishers.run(listeners, rate, seconds))
    await listeners.close()
    return outcomes


def _report(
    name: str, scale: int, loaded_s: float, outcomes: Sequence[Outcome], memory: int, seed: int
) -> Report:
    at_half = next(
        (outcome for outcome in outcomes if outcome.target_per_s == MIN_EVENTS_PER_S / 2), None
    )
    fastest = outcomes[-1]
    goals = [
        Goal(
            "events a second, in batches",
            f"{MIN_EVENTS_PER_S:,.0f} or more",
            f"{fastest.published_per_s:,.0f}",
            fastest.published_per_s >= MIN_EVENTS_PER_S,
        ),
        at_most(
            "p99 from publishing to delivery, at half of that",
            MAX_P99_MS,
            None if at_half is None else float(np.percentile(at_half.delays_ms, 99)),
            "ms",
        ),
    ]
    return Report(
        name,
        f"A server with {scale:,} subscriptions and {SUBSCRIBERS} connected subscribers",
        {
            "seed": seed,
            "subscriptions": scale,
            "subscribers": SUBSCRIBERS,
            "loaded_s": loaded_s,
            "peak_memory_bytes": memory,
            "rates": [_plain(outcome) for outcome in outcomes],
            "goals": [goal.plain() for goal in goals],
        },
        [goal_table(goals), _rate_table(outcomes)],
        lambda picture: _draw(picture, outcomes),
        notes=[
            "Publishers, subscribers and server share this machine, over loopback. The server "
            "acknowledges an event once it and its messages are on the disk (SQLite, "
            "synchronous=FULL).",
            "A delay is the time from before the request is sent until a subscriber has the "
            "message. At a rate, a batch has a hundredth of a second's events; as many as "
            "possible: batches of 500, two at a time.",
            f"Adding the subscriptions over HTTP took {figure(loaded_s)} s; the peak memory of the "
            f"server was {memory / 2**20:,.0f} MiB.",
        ],
    )


def _plain(outcome: Outcome) -> dict[str, Any]:
    values: dict[str, Any] = {
        "target_per_s": outcome.target_per_s,
        "published_per_s": outcome.published_per_s,
        "messages": outcome.messages,
    }
    for name, times in (("delay", outcome.delays_ms), ("response", outcome.responses_ms)):
        for percent in (50, 99, 99.9):
            values[f"{name}_p{percent:g}_ms"] = float(np.percentile(times, percent))
    return values


def _rate_table(outcomes: Sequence[Outcome]) -> Table:
    rows = []
    for outcome in outcomes:
        target = outcome.target_per_s
        delays = [figure(float(np.percentile(outcome.delays_ms, p))) for p in (50, 99, 99.9)]
        response = figure(float(np.percentile(outcome.responses_ms, 50)))
        rate = "as many as possible" if target is None else f"{target:,.0f}"
        published = f"{outcome.published_per_s:,.0f}"
        rows.append([rate, published, f"{outcome.messages:,}", *delays, response])
    columns = ["target, events/s", "published, events/s", "messages", "p50 ms", "p99 ms"]
    return Table("From publishing to delivery", [*columns, "p99.9 ms", "response p50 ms"], rows)


def _draw(picture: Figure, outcomes: Sequence[Outcome]) -> None:
    axes = picture.subplots()
    rates = [outcome.published_per_s for outcome in outcomes]
    for percent, colour in ((50, "#0b6e4f"), (99, "#e0a100"), (99.9, "#b5442e")):
        delays = [float(np.percentile(outcome.delays_ms, percent)) for outcome in outcomes]
        axes.plot(rates, delays, "o-", color=colour, label=f"p{percent:g}")
    axes.axhline(MAX_P99_MS, color="#888888", linestyle=":", label="goal for p99 at 2,500/s")
    axes.set_yscale("log")
    axes.set_xlabel("events published a second; the last: as many as possible")
    axes.set_ylabel("ms from publishing to delivery")
    axes.legend()
