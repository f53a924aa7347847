"""The warm-up steps that need a process of their own: geometry, and every room."""

from __future__ import annotations

import os
from multiprocessing import get_context
from multiprocessing.process import BaseProcess

from fencepost.kernels.compiling import cache_folder, fewer_collections
from fencepost.kernels.warmup import Step, geometry
from fencepost.papers.events import warmup as events
from fencepost.papers.regions import warmup as regions
from fencepost.papers.spatiotextual import warmup as spatiotextual


def steps() -> list[Step]:
    """What compiles the kernels of geometry and the rooms' by name; first what needs no others."""
    return [*geometry(), *spatiotextual.steps(), *regions.steps(), *events.steps()]


def run_all() -> None:
    """Run every step."""
    with fewer_collections():
        for _, step in steps():
            step()


def begin() -> BaseProcess | None:
    """A process that runs every step, where nothing is compiled yet and a processor is idle."""
    if any(cache_folder().iterdir()) or (os.cpu_count() or 1) < 2:
        return None
    process = get_context("spawn").Process(target=run_all, daemon=True)
    process.start()
    return process
