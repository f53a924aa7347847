"""The warm-up steps of every room, for `fencepost warmup`."""

from __future__ import annotations

from fencepost.kernels.warmup import Step
from fencepost.papers.regions import warmup as regions
from fencepost.papers.spatiotextual import warmup as spatiotextual


def steps() -> list[Step]:
    """What compiles the rooms' kernels, by name."""
    return [*regions.steps(), *spatiotextual.steps()]
