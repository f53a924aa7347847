"""Real map layers for benchmarks.

A layer is a Parquet file with WKB in `geometry`, in the folder that FENCEPOST_DATA names, or else
in `shared/data` beside the checkout. The project includes no layer, so callers first check that
one exists.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import shapely

from fencepost.testing import Geometries

CHECKOUT = Path(__file__).resolve().parents[1]


def folder() -> Path:
    """Return the folder of the layers, which need not exist."""
    configured = os.environ.get("FENCEPOST_DATA")
    return Path(configured) if configured else CHECKOUT.parent / "shared" / "data"


def exists(layer: str) -> bool:
    """Return whether a layer exists."""
    return _file(layer).is_file()


def read(layer: str, **accepted: list[str]) -> Geometries:
    """Return the geometries of the rows whose columns have one of the accepted values."""
    table = pq.read_table(_file(layer), columns=["geometry", *accepted])
    for column, values in accepted.items():
        table = table.filter(pc.field(column).isin(values))
    geometries: Geometries = shapely.from_wkb(table["geometry"].to_numpy())
    return geometries


def _file(layer: str) -> Path:
    return folder() / f"{layer}.parquet"
