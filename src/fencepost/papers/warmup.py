"""The warm-up steps of every room, for `fencepost warmup`."""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.process import BaseProcess

from fencepost.kernels.warmup import Step
from fencepost.papers.regions import warmup as regions
from fencepost.papers.spatiotextual import warmup as spatiotextual


def steps() -> list[Step]:
    """What compiles the rooms' kernels, by name; first what needs no kernels but the room's."""
    return [*spatiotextual.steps(), *regions.steps()]


def run_all() -> None:
    """Run every step."""
    for _, step in steps():
        step()


def begin() -> BaseProcess:
    """A process that runs every step, so that another processor has something to do."""
    process = get_context("spawn").Process(target=run_all, daemon=True)
    process.start()
    return process
