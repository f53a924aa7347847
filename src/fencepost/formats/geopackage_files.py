"""`GeoPackageRows`: the features of a layer of a GeoPackage, read in batches through pyogrio.

The columns are the layer's fields, its key (mostly `fid`), and the geometry as WKB. The geometry is
named `geometry`, as in GeoJSON, whatever the layer calls it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.errors import FencepostError
from fencepost.events.feature_tables import columns_to_read
from fencepost.extras import requires_extra
from fencepost.formats.dead_letters import DeadLetterHandler
from fencepost.formats.file_formats import STDIN, name_advice, open_input
from fencepost.formats.line_batches import MAX_BATCH_ROWS
from fencepost.formats.parquet_files import name_geometry_encodings, readable_batches
from fencepost.geometry.crs import Crs, parse_crs

_GEOMETRY = "geometry"
_KEY = "OGC_FID"  # as pyogrio calls a key without a name
_LON_LAT = ("EPSG:4326", "OGC:CRS84")


class GeoPackageRows:
    """The features of a layer.

    Parameters
    ----------
    path : str
    layer : str, optional
        The layer to read. Left out, the file must have a single layer with geometries.

    Attributes
    ----------
    rows : int
        The number of features.
    names : list of str
        The names of the columns.
    geometry : str or None
        The name of the geometry; None if the layer has no geometries.
    crs : dict
        The member `crs` of GeoParquet's metadata: empty for WGS 84, else unknown.
    declared_crs : dict of str to Crs
        The CRS of the geometry, if the layer has one.

    Raises
    ------
    FencepostError
        If pyogrio is not installed, if the file is no GeoPackage, or if it has no such layer.
    """

    def __init__(self, path: str, layer: str | None = None) -> None:
        if path == STDIN:
            raise FencepostError(
                "a GeoPackage cannot be read from standard input; name the file itself"
            )
        open_input(path).close()  # raises the errors of missing and unreadable files
        with requires_extra(f"reading {path}", "geopackage"):
            import pyogrio
        self._name, self._pyogrio = path, pyogrio
        try:
            self._layer = _choose_layer(pyogrio, path, layer)
            info = pyogrio.read_info(path, layer=self._layer, force_feature_count=True)
        except pyogrio.errors.DataSourceError as error:
            raise self._corrupt_error(error) from error
        fields = [str(name) for name in info["fields"]]
        self.rows = int(info["features"])
        self._own_geometry_name: str = info["geometry_name"]
        self.geometry: str | None = None
        if info["geometry_type"] is not None:
            self.geometry = self._own_geometry_name if _GEOMETRY in fields else _GEOMETRY
        geometries = [] if self.geometry is None else [self.geometry]
        self.names = [info["fid_column"] or _KEY, *fields, *geometries]
        self.crs: dict[str, Any] = {} if info["crs"] in _LON_LAT else {"crs": None}
        crs = parse_crs(info["crs"])
        self.declared_crs: dict[str, Crs] = {}
        if crs is not None and self.geometry is not None:
            self.declared_crs[self.geometry] = crs

    def batches(self, columns: Collection[str] | None = None) -> Iterator[pa.Table]:
        """Yield tables of at most MAX_BATCH_ROWS rows, of some columns or of all."""
        options = {"layer": self._layer, "batch_size": MAX_BATCH_ROWS, "return_fids": True}
        done = 0
        try:
            with self._pyogrio.open_arrow(self._name, use_pyarrow=True, **options) as (_, reader):
                for batch in reader:
                    table = name_geometry_encodings(batch, {})
                    if self.geometry is not None:
                        table = table.rename_columns(
                            [self._final_name(name) for name in table.column_names]
                        )
                    names = table.column_names
                    chosen = names if columns is None else columns_to_read(names, columns)
                    yield table.select(chosen or names[:1])
                    done += batch.num_rows
        except (self._pyogrio.errors.DataSourceError, pa.ArrowException) as error:
            raise self._corrupt_error(error, done) from error

    def _final_name(self, name: str) -> str:
        return str(self.geometry) if name == self._own_geometry_name else name

    def readable_batches(
        self, columns: Collection[str] | None, on_dead_letter: DeadLetterHandler
    ) -> Iterator[tuple[NDArray[np.int64], pa.Table, int]]:
        """Yield row numbers, tables, and the number of rows read, as `ParquetRows` does."""
        return readable_batches(self.batches(columns), self._name, on_dead_letter)

    def _corrupt_error(self, error: Exception, done: int = 0) -> FencepostError:
        read = f" after {done:,} rows" if done else ""
        reason = " ".join(str(error).partition(";")[0].split())
        return FencepostError(
            f"{self._name} cannot be read as a GeoPackage{read} ({reason:.200}); write it again, "
            "or name its format with --format"
        )


def _choose_layer(pyogrio: ModuleType, path: str, layer: str | None) -> str:
    """Return the layer to read: the one that is named, or the only one with geometries."""
    kinds = {str(name): kind for name, kind in pyogrio.list_layers(path)}
    if layer is not None:
        if layer not in kinds:
            raise FencepostError(f"{path} has no layer {layer}; {name_advice(layer, [*kinds])}")
        return layer
    spatial = [name for name, kind in kinds.items() if kind is not None]
    if not spatial:
        raise FencepostError(
            f"{path} has no layer with geometries; name one of its tables with --layer, or another "
            "file"
        )
    if len(spatial) > 1:
        raise FencepostError(
            f"{path} has {len(spatial)} layers; choose one with --layer: {', '.join(spatial):.200}"
        )
    return spatial[0]
