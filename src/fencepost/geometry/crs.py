"""`Crs`: a coordinate reference system as data declare it; read without PROJ as far as possible.

Data declare a CRS as an authority code ("EPSG:2056"), a URN or URL of the OGC, an SRID, PROJJSON or
well-known text. A code, or the `id` of a definition, suffices to compare most systems. Where it
does not, and to transform coordinates, pyproj is needed: the extra `crs`.

Coordinates are x before y, so longitude before latitude, whatever order the authority defines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.extras import requires_extra
from fencepost.geometry.readers.raw_shapes import RawShapes, drop_bad_rows, short_repr

CrsKind: TypeAlias = Literal["geographic", "projected"]


WGS84_CODES = frozenset(
    {"OGC:CRS84", "EPSG:4326", "EPSG:4979"}
    | {f"EPSG:{code}" for code in (8888, 9053, 9054, 9055, 9056, 9057, 9755, 10606)}
)
"""WGS 84 and its realizations, which share its ellipsoid."""

NEAR_WGS84_CODES = frozenset(
    f"EPSG:{code}"
    for code in (
        4258,  # ETRS89
        4269,  # NAD83
        6318,  # NAD83(2011)
        4617,  # NAD83(CSRS)
        4171,  # RGF93
        4619,  # SWEREF99
        4674,  # SIRGAS 2000
        4283,  # GDA94
        7844,  # GDA2020
        4167,  # NZGD2000
        4490,  # CGCS2000
        4612,  # JGD2000
        6668,  # JGD2011
        8999,  # ITRF2008
        9000,  # ITRF2014
    )
) | {"OGC:CRS83"}
"""Longitude and latitude in frames of satellite navigation.

Their ellipsoid, GRS 1980, differs from that of WGS 84 by 0.1 mm at the poles, and their positions
by at most two metres, which is the accuracy that EPSG states for WGS 84 itself.
"""

_LON_LAT_CODES = WGS84_CODES | NEAR_WGS84_CODES
_CODE = re.compile(r"\s*([A-Za-z][\w.-]*)\s*:\s*([\w.-]+)\s*")
_URN = re.compile(r"(?:x-)?urn:ogc:def:crs:([^:]+):[^:]*:([^:]+)", re.IGNORECASE)
_URL = re.compile(r"https?://www\.opengis\.net/def/crs/([^/]+)/[^/]+/([^/]+)/?", re.IGNORECASE)
_EXAMPLE = 'give a code such as "EPSG:2056", or PROJJSON'

_WKT_ROOT = re.compile(r"\s*([A-Z_0-9]+)\s*[\[(]", re.IGNORECASE)
_WKT_ID = re.compile(r'\s*"([^"]+)"\s*,\s*"?([\w.-]+)"?')
_WKT_NAME = re.compile(r'\s*[A-Z_0-9]+\s*[\[(]\s*"([^"]*)"', re.IGNORECASE)
_WGS84_DATUM = re.compile(
    r'(?:DATUM|ENSEMBLE)\s*[\[(]\s*"(?:D_)?(?:WGS_1984|World Geodetic System 1984[^"]*)"',
    re.IGNORECASE,
)
_KIND_OF_WKT: dict[str, CrsKind] = {
    "GEOGCS": "geographic",
    "GEOGCRS": "geographic",
    "GEOGRAPHICCRS": "geographic",
    "PROJCS": "projected",
    "PROJCRS": "projected",
    "PROJECTEDCRS": "projected",
}
_KIND_OF_PROJJSON: dict[object, CrsKind] = {
    "GeographicCRS": "geographic",
    "DerivedGeographicCRS": "geographic",
    "ProjectedCRS": "projected",
    "DerivedProjectedCRS": "projected",
}


@dataclass(frozen=True, slots=True)
class Crs:
    """A coordinate reference system, as data declare it.

    Attributes
    ----------
    definition : str
        The declaration, which pyproj reads, too.
    code : str or None
        Authority and code, such as "EPSG:2056"; None if the declaration does not say.
    name : str
        What messages call it.
    kind : {"geographic", "projected"} or None
        None if that is not known without PROJ.
    has_wgs84_datum : bool
        Whether the declaration without a code is longitude and latitude, in degrees, on WGS 84.
    """

    definition: str
    code: str | None
    name: str
    kind: CrsKind | None
    has_wgs84_datum: bool = False

    def is_lon_lat(self) -> bool:
        """Return whether coordinates are longitude and latitude on WGS 84, or as good as that.

        Raises
        ------
        FencepostError
            If that cannot be said without pyproj, and it is not installed.
        """
        if self.code is not None:
            return self.code in _LON_LAT_CODES
        if self.has_wgs84_datum or self.kind == "projected":
            return self.has_wgs84_datum
        return _is_lon_lat_by_proj(self.definition)

    def equals(self, other: Crs) -> bool:
        """Return whether two systems have the same coordinates.

        Raises
        ------
        FencepostError
            If that cannot be said without pyproj, and it is not installed.
        """
        if self.definition == other.definition or (
            self.code is not None and self.code == other.code
        ):
            return True
        if self.is_lon_lat() or other.is_lon_lat():
            return self.is_lon_lat() and other.is_lon_lat()
        if (
            self.code is not None
            and other.code is not None
            and _authority(self) == _authority(other)
        ):
            return False
        return _are_equal_by_proj(self.definition, other.definition)


LON_LAT = Crs("OGC:CRS84", "OGC:CRS84", "OGC:CRS84", "geographic")


def parse_crs(declared: object) -> Crs | None:
    """Return the CRS that data declare; None for no declaration.

    Parameters
    ----------
    declared : str, mapping, int, bytes or pyproj.CRS
        A code, a URN or URL, an SRID, PROJJSON or well-known text.

    Raises
    ------
    ModelError
        If the value is no declaration of a CRS.
    """
    if hasattr(declared, "to_json_dict"):
        declared = declared.to_json_dict()
    if isinstance(declared, bytes):
        declared = declared.decode("utf-8", "replace")
    if isinstance(declared, str) and declared.lstrip().startswith("{"):
        try:
            declared = json.loads(declared)
        except ValueError as error:
            raise ModelError(f"the CRS cannot be read as JSON: {error}; {_EXAMPLE}") from None
    if declared is None or declared in ("", 0):
        return None
    if isinstance(declared, int):
        return _of_code("EPSG", str(declared))
    if isinstance(declared, Mapping):
        return _of_projjson(declared)
    if isinstance(declared, str):
        return _of_text(declared)
    raise ModelError(f"a CRS cannot be read from {short_repr(declared)}; {_EXAMPLE}")


def _of_text(text: str) -> Crs | None:
    for pattern in (_URN, _URL, _CODE):
        match = pattern.fullmatch(text)
        if match is not None:
            authority, code = match[1].upper(), match[2]
            # The SRIDs that databases use are those of EPSG.
            if authority == "SRID":
                return None if code == "0" else _of_code("EPSG", code)
            return _of_code(authority, code)
    if text.strip().isdecimal():
        return parse_crs(int(text))
    if text.strip().upper() in ("CRS84", "WGS84"):
        return LON_LAT
    root = _WKT_ROOT.match(text)
    if root is None:  # a PROJ string, for example
        return Crs(text, None, short_repr(text), None)
    return _of_wkt(text, root[1].upper())


def _of_code(authority: str, code: str) -> Crs:
    name = f"{authority}:{code}"
    known = name.upper() in _LON_LAT_CODES
    return Crs(name, name.upper(), name, "geographic" if known else None)


def _of_projjson(value: Mapping[str, Any]) -> Crs:
    definition = json.dumps(value, sort_keys=True)
    horizontal = value
    while True:  # the horizontal part of a compound system, the source of a bound one
        components = horizontal.get("components")
        inner = components[0] if isinstance(components, list) and components else None
        inner = horizontal.get("source_crs", inner)
        if not isinstance(inner, Mapping):
            break
        horizontal = inner
    kind = _KIND_OF_PROJJSON.get(horizontal.get("type"))
    name = str(horizontal.get("name", "an unnamed CRS"))
    id = horizontal.get("id")
    if isinstance(id, Mapping) and "authority" in id and "code" in id:
        code = f"{id['authority']}:{id['code']}".upper()
        return Crs(
            definition, code, f"{code} ({name:.60})", kind or _of_code(*code.split(":")).kind
        )
    if "type" not in horizontal:
        raise ModelError(f"a CRS cannot be read from {short_repr(value)}; {_EXAMPLE}")
    datum = horizontal.get("datum") or horizontal.get("datum_ensemble") or {}
    axes = horizontal.get("coordinate_system", {}).get("axis", [])
    is_wgs84 = (
        horizontal.get("type") == "GeographicCRS"
        and str(datum.get("name")).startswith("World Geodetic System 1984")
        and bool(axes)
        and all(axis.get("unit") == "degree" for axis in axes[:2])
        and datum.get("prime_meridian", {"name": "Greenwich"}).get("name") == "Greenwich"
    )
    return Crs(definition, None, f'"{name:.60}"', kind, is_wgs84)


def _of_wkt(text: str, root: str) -> Crs:
    kind = _KIND_OF_WKT.get(root)
    found = _WKT_NAME.match(text)
    name = found[1] if found is not None else root
    code = _wkt_code(text)
    if code is not None:
        return Crs(text, code, f"{code} ({name:.60})", kind)
    units = re.findall(r'(?:ANGLEUNIT|UNIT)\s*[\[(]\s*"([^"]*)"', text, re.IGNORECASE)
    meridians = re.findall(r'PRIMEM\s*[\[(]\s*"([^"]*)"', text, re.IGNORECASE)
    is_wgs84 = (
        kind == "geographic"
        and _WGS84_DATUM.search(text) is not None
        and {unit.lower() for unit in units} == {"degree"}
        and {meridian.lower() for meridian in meridians} <= {"greenwich"}
    )
    return Crs(text, None, f'"{name:.60}"', kind, is_wgs84)


def _wkt_code(text: str) -> str | None:
    """Return the code of the whole CRS, which is a member of the outermost brackets."""
    depth, quoted = 0, False
    for position, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif char in "[(":
            depth += 1
            if depth == 2 and re.search(r"\b(ID|AUTHORITY)\s*$", text[:position], re.IGNORECASE):
                found = _WKT_ID.match(text, position + 1)
                return None if found is None else f"{found[1]}:{found[2]}".upper()
        elif char in "])":
            depth -= 1
    return None


def _authority(crs: Crs) -> str:
    return str(crs.code).partition(":")[0]


def _to_proj(definition: str) -> Any:
    """Return pyproj's form of a CRS."""
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        return CRS.from_user_input(definition)
    except CRSError as error:
        reason = " ".join(str(error).split())
        raise ModelError(
            f"PROJ does not know the CRS {short_repr(definition)} ({reason:.120}); {_EXAMPLE}"
        ) from None


@lru_cache(maxsize=64)
def _is_lon_lat_by_proj(definition: str) -> bool:
    """Return whether a CRS that does not name its code is longitude and latitude on WGS 84."""
    with requires_extra(f"comparing the CRS {short_repr(definition)}", "crs"):
        crs = _to_proj(definition)
    if crs.equals(_to_proj(LON_LAT.definition), ignore_axis_order=True):
        return True
    authority = crs.to_authority(min_confidence=90)
    return authority is not None and ":".join(authority).upper() in _LON_LAT_CODES


@lru_cache(maxsize=64)
def _are_equal_by_proj(one: str, other: str) -> bool:
    what = f"comparing the CRS {short_repr(one)} with {short_repr(other)}"
    with requires_extra(what, "crs"):
        return bool(_to_proj(one).equals(_to_proj(other), ignore_axis_order=True))


# ------------------------------------------------------------------------------------ SRIDs of EWKB


_SRID_FLAG = 0x20
_HEADER_BYTES = 9  # byte order, type and SRID


def srid_of(value: object) -> int:
    """Return the SRID of EWKB; 0, which stands for none, for other values."""
    if not isinstance(value, bytes | bytearray) or len(value) < _HEADER_BYTES:
        return 0
    if not value[4 if value[0] else 1] & _SRID_FLAG:
        return 0
    return int.from_bytes(value[5:_HEADER_BYTES], "little" if value[0] else "big")


def srids_of_column(data: NDArray[np.uint8], ends: NDArray[np.int64]) -> set[int]:
    """Return the SRIDs in a column of WKB, of which row k is data[ends[k]:ends[k + 1]]."""
    starts = ends[:-1][np.diff(ends) >= _HEADER_BYTES]
    flags = data[starts + np.where(data[starts] == 0, 1, 4)] & _SRID_FLAG
    starts = starts[flags != 0]
    if not len(starts):
        return set()
    headers = np.unique(
        data[starts[:, None] + np.arange(_HEADER_BYTES)][:, [0, 5, 6, 7, 8]], axis=0
    )
    return {
        int.from_bytes(bytes(row[1:]), "little" if row[0] else "big") for row in headers.tolist()
    }


def crs_of_srids(srids: set[int], what: str) -> Crs | None:
    """Return the CRS of geometries that have these SRIDs; 0 stands for none.

    Raises
    ------
    ModelError
        If there are several.
    """
    srids = srids - {0}
    if len(srids) > 1:
        shown = ", ".join(map(str, sorted(srids)[:5]))
        raise ModelError(
            f"{what} has geometries with several SRIDs ({shown}); give all of them in one CRS"
        )
    return parse_crs(srids.pop()) if srids else None


# ----------------------------------------------------------------------------------- transformation


class Transformation(NamedTuple):
    """Transforms coordinates from a CRS to another, all at once."""

    source: Crs
    target: Crs

    def __call__(self, raw: RawShapes) -> RawShapes:
        """Return geometries with transformed vertices; a row that has none there gets a problem."""
        x, y = self.points(raw.x, raw.y)
        reasons = {problem.row: problem.reason for problem in raw.problems}
        bad = np.flatnonzero(~(np.isfinite(x) & np.isfinite(y)))
        chains = np.searchsorted(raw.chain_start, bad, side="right") - 1
        rows = np.searchsorted(raw.shape_chain, chains, side="right") - 1
        for row, point in zip(rows.tolist(), bad.tolist(), strict=True):
            reasons.setdefault(
                row,
                f"the point ({raw.x[point]:.17g}, {raw.y[point]:.17g}) cannot be transformed from "
                f"{self.source.name} to {self.target.name}",
            )
        return drop_bad_rows(
            x, y, raw.chain_start, raw.chain_part, raw.shape_chain, raw.dimension, reasons
        )

    def points(
        self, x: NDArray[np.float64], y: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return transformed points; infinite where there is no such point."""
        with requires_extra("crs='transform'", "crs"):
            transformer = _transformer(self.source.definition, self.target.definition)
        new_x, new_y = transformer.transform(x, y)
        return np.asarray(new_x, np.float64), np.asarray(new_y, np.float64)


@lru_cache(maxsize=16)
def _transformer(source: str, target: str) -> Any:
    from pyproj import Transformer

    return Transformer.from_crs(_to_proj(source), _to_proj(target), always_xy=True)
