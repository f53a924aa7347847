"""Regions: by operator, by attributes, and when they are withdrawn."""

from __future__ import annotations

import gc
import math
import random
import weakref
from typing import Any

import pytest
import shapely

import fencepost as fp
from fencepost.cql2.ast import NearFunction
from fencepost.geometry import Space
from fencepost.papers.events import GreedyRectangles
from fencepost.saferegion.free_space import RegionMethod
from fencepost.saferegion.zones import near_zone


def at(x: float, y: float, **attributes: object) -> dict[str, object]:
    return {"geometry": {"type": "Point", "coordinates": [x, y]}, **attributes}


def regions(*expressions: str, **options: Any) -> fp.SafeRegions:
    m = fp.Matcher(space="planar")
    for number, expression in enumerate(expressions):
        m.subscribe(str(number), expression)
    s = fp.SafeRegions(m, **options)
    s.matcher_kept = m  # type: ignore[attr-defined]
    return s


@pytest.mark.parametrize("method", [None, GreedyRectangles((0, 0, 32, 32))])
def test_a_distance_reaches_beyond_its_region(method: RegionMethod | None) -> None:
    s = regions("S_DWITHIN(geometry, BBOX(4, 4, 6, 6), 2)", method=method)
    region = s.around(at(1, 1))
    assert region.contains(1, 1)
    assert not region.contains(3, 5)


def test_a_disc_is_left_out_as_a_disc() -> None:
    region = regions("S_DWITHIN(geometry, POINT(5 5), 2)").around(at(0, 0))
    assert region.contains(3.5, 3.5)  # in the box of the disc, but not in the disc
    assert not region.contains(3.6, 3.6)


def test_a_triangle_is_left_out_as_a_triangle() -> None:
    region = regions("S_INTERSECTS(geometry, POLYGON((0 0, 4 0, 0 4, 0 0)))").around(at(9, 9))
    assert region.contains(2.1, 2.1)
    assert not region.contains(2, 2)


@pytest.mark.parametrize("method", [None, GreedyRectangles((0, 0, 10, 10), cells=(1, 1))])
@pytest.mark.parametrize(
    "expression",
    [
        "S_BEYOND(geometry, POINT(5 5), 2)",
        "NOT S_DWITHIN(geometry, POINT(5 5), 2)",
        "S_DISJOINT(geometry, BBOX(3, 3, 7, 7))",
        "NOT S_INTERSECTS(geometry, BBOX(3, 3, 7, 7))",
        "EH_DISJOINT(geometry, POLYGON((3 3, 7 3, 7 7, 5 8, 3 7, 3 3)))",
    ],
)
def test_negated_conditions_leave_the_inside_safe(
    expression: str, method: RegionMethod | None
) -> None:
    s = regions(expression, method=method)
    inside, outside = s.around(at(5, 5)), s.around(at(9, 9))
    assert inside.contains(5, 5)
    assert inside.contains(5.5, 5.5)
    assert not inside.contains(7.5, 7.5)
    assert not outside.safe


def test_beyond_a_ring_the_distance_of_the_point_counts() -> None:
    s = regions("S_BEYOND(geometry, LINESTRING(0 0, 10 0), 3)")
    region = s.around(at(5, 1))
    assert region.contains(5, 2.9)
    assert not region.contains(5, 3.1)


def test_near_but_not_closer_is_a_ring() -> None:
    ring = "S_DWITHIN(geometry, POINT(0 0), 5) AND NOT S_CLOSER(geometry, POINT(0 0), 4)"
    s = regions(ring)
    assert s.around(at(0, 0)).contains(3.9, 0)
    assert not s.around(at(0, 0)).contains(4.5, 0)
    assert not s.around(at(4.5, 0)).contains(4.5, 0)
    assert s.around(at(6, 0)).contains(0, 6)


def test_a_subscription_without_a_location_leaves_no_region() -> None:
    s = regions("kind = 'taxi'")
    assert not s.around(at(0, 0, kind="taxi")).safe
    assert s.around(at(0, 0, kind="bus")).contains(5, 5)


def test_conditions_that_fail_do_not_count() -> None:
    s = regions("S_DWITHIN(geometry, POINT(5 5), 2) AND state = 'empty'")
    assert s.around(at(5, 5, state="full")).contains(5, 5)
    assert not s.around(at(5, 5, state="empty")).contains(5, 5)
    assert s.around(at(5, 5)).contains(5, 5)


def test_conditions_on_changing_attributes_are_taken_to_hold() -> None:
    expression = "S_DWITHIN(geometry, POINT(5 5), 2) AND speed > 30"
    s = regions(expression, changing=["speed"])
    region = s.around(at(0, 0, speed=10))
    assert region.is_silent(at(1, 1, speed=50))
    assert not region.contains(5, 5)
    region = regions(expression).around(at(5, 5, speed=10))
    assert region.is_silent(at(5, 5, speed=10))
    assert not region.is_silent(at(5, 5, speed=50))


def test_attributes_without_conditions_may_change() -> None:
    region = regions("S_DWITHIN(geometry, POINT(5 5), 2)").around(at(0, 0, time=1))
    assert region.is_silent(at(1, 1, time=2))


def test_mode_same_keeps_the_matches() -> None:
    s = regions("S_DWITHIN(geometry, POINT(5 5), 4)", "S_WITHIN(geometry, BBOX(0, 0, 5, 5))",
                mode="same")  # fmt: skip
    region = s.around(at(4, 4))
    assert region.contains(3, 3)
    assert not region.contains(6, 6)  # left the box
    assert not region.contains(1, 1)  # left the disc


def test_an_event_without_a_point_has_no_region() -> None:
    s = regions("S_DWITHIN(geometry, POINT(5 5), 4)")
    for event in ({}, {"geometry": "LINESTRING (0 0, 1 1)"}, {"geometry": "POINT EMPTY"}):
        assert not s.around(event).safe


def test_a_point_outside_of_the_space_has_no_region() -> None:
    m = fp.Matcher("wgs84")
    m.subscribe("a", "S_DWITHIN(geometry, POINT(0 0), 1000)")
    s = fp.SafeRegions(m)
    assert not s.around(at(200, 0)).safe
    assert not s.around(at(0, 91)).safe
    assert s.around(at(180, 90)).contains(180, 90)


def test_an_attribute_that_cannot_be_compared_is_sent_always() -> None:
    s = regions("S_DWITHIN(geometry, POINT(5 5), 1) AND n > 3")
    assert not s.around(at(0, 0, n=2**60)).safe
    assert s.around(at(0, 0, other=object())).safe


def test_huge_distances_leave_no_region() -> None:
    assert not regions("S_DWITHIN(geometry, POINT(5 5), 1e308)").around(at(0, 0)).contains(0, 0)


def test_regions_are_withdrawn_where_a_subscription_lands() -> None:
    s = regions("S_DWITHIN(geometry, POINT(50 50), 1)")
    m: fp.Matcher = s.matcher_kept  # type: ignore[attr-defined]
    s.around(at(0, 0, kind="taxi"), key="taxi")
    s.around(at(0, 0, kind="bus"), key="bus")
    m.subscribe("new", "S_DWITHIN(geometry, POINT(1 1), 1)")
    assert sorted(withdrawal.key for withdrawal in s.withdrawals()) == ["bus", "taxi"]
    assert s.withdrawals() == []

    s.around(at(0, 0, kind="taxi"), key="taxi")
    m.subscribe("watched now", "S_DWITHIN(geometry, POINT(2 1), 1) AND kind = 'bus'")
    # The taxi does not watch `kind`, so it would not notice that it becomes a bus.
    assert [withdrawal.key for withdrawal in s.withdrawals()] == ["taxi"]

    s.around(at(0, 0, kind="taxi"), key="taxi")
    s.around(at(0, 0, kind="bus"), key="bus")
    m.subscribe("more", "S_DWITHIN(geometry, POINT(3 1), 1) AND kind = 'bus'")
    assert [withdrawal.key for withdrawal in s.withdrawals()] == ["bus"]
    m.move("more", "geometry", "POINT (4 1)")
    assert s.withdrawals() == []  # the bus was notified before
    s.around(at(0, 0, kind="bus"), key="bus")
    m.move("more", "geometry", "POINT (5 1)")
    assert [withdrawal.key for withdrawal in s.withdrawals()] == ["bus"]
    m.unsubscribe("more")
    assert s.withdrawals() == []


def test_a_subscription_elsewhere_withdraws_nothing() -> None:
    method = GreedyRectangles((0, 0, 10, 10), cells=(10, 10))
    s = regions("S_DWITHIN(geometry, POINT(5 5), 1)", method=method)
    m: fp.Matcher = s.matcher_kept  # type: ignore[attr-defined]
    s.around(at(1.5, 1.5), key="a")
    m.subscribe("far", "S_DWITHIN(geometry, POINT(9 9), 1)")
    assert s.withdrawals() == []
    m.subscribe_columns(["near"], within={"geometry": (["POINT (1 1)"], [0.5])})
    assert [withdrawal.key for withdrawal in s.withdrawals()] == ["a"]


def test_max_objects_withdraws_the_oldest() -> None:
    s = regions("S_DWITHIN(geometry, POINT(5 5), 1)", max_objects=2)
    for key in "abc":
        s.around(at(0, 0), key=key)
    assert [withdrawal.key for withdrawal in s.withdrawals()] == ["a"]
    assert s.forget("b")
    assert not s.forget("b")


def test_members_of_composites_are_sent() -> None:
    s = regions("S_DWITHIN(geometry, POINT(50 50), 1)")
    composite = fp.Composite("meet", {"a": "kind = 'taxi'", "b": "kind = 'rider'"}, within_s=60)
    s.around(at(0, 0, kind="taxi"), key="taxi")
    s.add_conditions(composite.id, [condition for _, condition in composite.atoms()])
    assert [withdrawal.key for withdrawal in s.withdrawals()] == ["taxi"]
    assert not s.around(at(0, 0, kind="taxi")).safe
    region = s.around(at(0, 0, kind="bus"))
    assert region.is_silent(at(1, 0, kind="bus"))
    assert not region.is_silent(at(1, 0, kind="taxi"))
    s.remove_conditions(composite.id)
    assert s.around(at(0, 0, kind="taxi")).contains(0, 0)


def test_an_object_that_keeps_its_region_gets_a_short_answer() -> None:
    s = regions("S_DWITHIN(geometry, POINT(5 5), 1)", "S_DWITHIN(geometry, POINT(90 5), 1)")
    client = fp.SafeClient()
    first, inside = at(0, 0), at(5, 5)
    assert client.should_send(first)
    client.accept(s.answer(first, "me"))
    assert not client.should_send(at(3, 3))
    assert client.should_send(inside)
    answer = s.answer(inside, "me")
    assert "keep" in answer
    client.accept(answer)
    assert not client.should_send(at(3, 3))


def test_a_matcher_does_not_keep_regions_alive() -> None:
    m = fp.Matcher(space="planar")
    gone = weakref.ref(fp.SafeRegions(m))
    gc.collect()
    assert gone() is None
    m.subscribe("a", "n > 1")
    s = fp.SafeRegions(m)
    m.subscribe("b", "n > 2")
    assert s.version == 1


def test_bad_arguments() -> None:
    m = fp.Matcher(space="planar")
    bad: tuple[dict[str, Any], ...] = (
        *({"method": "best"}, {"mode": "loud"}, {"max_holes": 0}, {"max_objects": 0}),
    )
    for arguments in bad:
        with pytest.raises(fp.ModelError):
            fp.SafeRegions(m, **arguments)


@pytest.mark.parametrize("latitude", [0.0, 30.2, -67.0, 85.0])
def test_discs_on_the_ellipsoid_are_bounded_from_both_sides(latitude: float) -> None:
    rng = random.Random(latitude)
    m = fp.Matcher("wgs84")
    for radius in (0.5, 300.0, 20_000.0):
        zone = near_zone(NearFunction.S_DWITHIN, shapely.Point(10, latitude), radius, Space.WGS84)
        m.subscribe("a", f"S_DWITHIN(geometry, POINT(10 {latitude}), {radius})", replace=True)
        inner = zone.inner(10.0, latitude) if radius > 1 else None
        near = 0
        for _ in range(300):
            turn, away = rng.uniform(0, math.tau), radius * rng.choice((1.0, rng.uniform(0.9, 1.1)))
            lat = latitude + away * math.sin(turn) / 111_000
            lon = 10 + away * math.cos(turn) / (111_320 * math.cos(math.radians(latitude)))
            matches = m.match(at(lon, lat)) == ["a"]
            assert not (matches and zone.excludes(lon, lat))
            near += matches != zone.excludes(lon, lat)
            if inner is not None:
                assert matches or not fp.SafeRegion(True, (inner,)).contains(lon, lat)
        assert radius > 300 or near > 280  # the bounds are close
