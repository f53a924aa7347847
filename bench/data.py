"""Real layers for benchmarks, where there are any.

They are Parquet files with WKB in `geometry`, looked for in the folder that FENCEPOST_DATA names,
or else in `shared/data` beside the checkout. None of them comes with the project, so whoever asks
must be ready to hear that there are none.
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
    """Where the layers are, if they are anywhere."""
    named = os.environ.get("FENCEPOST_DATA")
    return Path(named) if named else CHECKOUT.parent / "shared" / "data"


def is_there(layer: str) -> bool:
    """Whether there is such a layer."""
    return _file(layer).is_file()


def read(layer: str, **wanted: list[str]) -> Geometries:
    """The geometries of a layer, of the rows whose columns have one of the values wanted."""
    table = pq.read_table(_file(layer), columns=["geometry", *wanted])
    for column, values in wanted.items():
        table = table.filter(pc.field(column).isin(values))
    geometries: Geometries = shapely.from_wkb(table["geometry"].to_numpy())
    return geometries


def _file(layer: str) -> Path:
    return folder() / f"{layer}.parquet"
