"""Which name may be meant by one that does not exist."""

from __future__ import annotations

import pytest

from fencepost.events.nearest_names import nearest_name, point_columns


@pytest.mark.parametrize(
    ("name", "names", "nearest"),
    [
        ("knid", ["wind", "kind"], "kind"),
        ("KIND", ["kind"], "kind"),
        ("longitude", ["lat", "lon"], "lon"),
        ("lon", ["Longitude", "Latitude"], "Longitude"),
        ("x", ["xmin"], None),
        ("kind", [], None),
        ("kind", ["wave", ""], None),
        ("a" * 10_000, ["b" * 10_000], None),
    ],
)
def test_nearest_name(name: str, names: list[str], nearest: str | None) -> None:
    assert nearest_name(name, names) == nearest


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (["id", "LAT", "Lon"], ("Lon", "LAT")),
        (["y", "x"], ("x", "y")),
        (["lon", "id"], None),
        ([], None),
    ],
)
def test_point_columns(names: list[str], columns: tuple[str, str] | None) -> None:
    assert point_columns(names) == columns
