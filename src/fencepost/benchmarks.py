"""Finds the benchmarks, which live in the folder `bench` of a source checkout, beside `src`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from fencepost.errors import FencepostError

_CHECKOUT = Path(__file__).resolve().parents[2]


def load(name: str, checkout: Path = _CHECKOUT) -> ModuleType:
    """The module `bench.<name>` of a checkout, such as `bench.micro.relate`.

    Raises
    ------
    FencepostError
        If this copy of Fencepost was installed without its source, or has no such benchmark.
    """
    if not (checkout / "bench").is_dir() or not (checkout / "pyproject.toml").is_file():
        raise FencepostError(
            f"benchmarks come with a source checkout, and there is none around {checkout}; "
            "get the source of Fencepost and run `make bench` there"
        )
    # On the path, not loaded by hand, so that processes a benchmark starts find it as well.
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    try:
        return import_module(f"bench.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "bench":
            raise
        raise FencepostError(f"no benchmark {name!r} in {checkout / 'bench'}") from error
