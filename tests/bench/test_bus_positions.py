"""The benchmarks on moving objects, so small that only answers and files can be judged."""

from __future__ import annotations

import json
from pathlib import Path

from bench import commands, report
from bench.papers.events import bus_positions
from bench.papers.events.figures import buses
from bench.papers.events.run import FIGURES
from bench.progress import Progress

TINY = buses.Sizes(600, 200, (16,), (32,))


def test_the_command_names_every_figure() -> None:
    assert [one.value for one in commands.EventsFigure] == list(FIGURES)


def test_made_up_positions_stay_in_their_city() -> None:
    positions = bus_positions.made_up(1000, seed=1, buses=10)
    assert len(positions) == 1000
    assert positions.buses == 10
    assert ((positions.lon > -98) & (positions.lon < -97.6)).all()
    assert ((positions.lat > 30.1) & (positions.lat < 30.5)).all()


def test_buses(tmp_path: Path) -> None:
    with Progress("buses", quiet=True) as progress:
        found = buses.run(TINY, seed=1, source="synthetic", progress=progress)
    values = found.values
    assert values["missed"] == 0
    compared = values["compared"]
    assert compared[buses.ALL]["sent"] == 600
    assert compared["ours"]["saved"] >= compared["GLR"]["saved"] >= 0
    paths = report.write(found, tmp_path)
    assert json.loads(paths[0].read_text())["missed"] == 0
