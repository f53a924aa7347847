"""What a prompt and a notebook show: one line, and self-contained HTML."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp
from tests.engine.strategies import EVENTS, EXPRESSIONS, examples

BAD = "<script>alert('x')</script>&\"'"
NOON = {"time": "2024-05-01T12:00:00Z"}
SVG = "{http://www.w3.org/2000/svg}"


def parsed(shown: Any) -> ElementTree.Element:
    """Return the HTML of an object, which must be well-formed and self-contained."""
    html = shown._repr_html_()
    root = ElementTree.fromstring(html)
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    allowed = {"div", "span", "b", "code", "table", "tr", "th", "td"}
    assert tags <= allowed | {"svg", "g", "path", "circle", "text", "title"}
    for element in root.iter():
        assert not {name for name in element.attrib if name.startswith("on") or "href" in name}
        assert "url(" not in element.get("style", "")
    addresses = set(re.findall(r"https?://[^\"' ]+", html.replace("&#x27;", "'")))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    return root


def texts(root: ElementTree.Element) -> str:
    return " ".join("".join(root.itertext()).split())


def city(count: int) -> fp.Matcher:
    m = fp.Matcher()
    corners = np.random.default_rng(1).uniform((12, 52), (14, 53), (count, 2))
    boxes = np.hstack([corners, corners + 0.1])
    m.subscribe_columns(range(count), regions={"geometry": (boxes, "S_INTERSECTS")})
    return m


def test_a_matcher() -> None:
    m = city(1000)
    m.subscribe(BAD, f"kind = '{BAD.replace(chr(39), chr(39) * 2)}'")
    assert repr(m) == "<Matcher: 1,001 subscriptions, space 'wgs84', index 'auto'>"
    root = parsed(m)
    assert "subscriptions 1,001" in texts(root)
    assert "Drawn: 300 of 1,001 subscriptions; without a geometry: 1." in texts(root)
    assert len(root.findall(f".//{SVG}g")) == 299


def test_an_empty_matcher() -> None:
    root = parsed(fp.Matcher(space="planar"))
    assert root.find(f".//{SVG}svg") is None
    assert "subscriptions 0" in texts(root)


def test_every_kind_of_geometry() -> None:
    m = fp.Matcher(space="planar")
    for number, geometry in enumerate(
        [
            "POINT(1 1)",
            "MULTIPOINT(1 1, 50 60)",
            "LINESTRING(0 0, 90 50, 10 60)",
            "POLYGON((0 0, 90 0, 90 90, 0 90, 0 0), (10 10, 20 10, 20 20, 10 20, 10 10))",
            "BBOX(0, 0, 0.001, 0.001)",
        ]
    ):
        m.subscribe(number, f"S_INTERSECTS(geometry, {geometry})")
        m.subscribe(f"near {number}", f"S_DWITHIN(geometry, {geometry}, 9)")
    root = parsed(m)
    assert "area 2line 1point 2within a distance 5" in texts(root)
    titles = {title.text for title in root.iter(f"{SVG}title")}
    assert "near 0: S_DWITHIN(geometry, POINT(1 1), 9.0)" in titles
    # The lines are drawn last: small shapes over large ones.
    assert len(root.findall(f".//{SVG}g")) == 10


@examples(40)
@given(st.lists(EXPRESSIONS, max_size=8), EVENTS)
def test_any_subscription_and_explanation(expressions: list[Any], event: Any) -> None:
    m = fp.Matcher(space="planar")
    for number, expression in enumerate(expressions):
        m.subscribe(number, expression)
    parsed(m)
    for number in range(len(expressions)):
        explanation = m.explain(event, number)
        assert repr(explanation) == str(explanation)
        parsed(explanation)


def test_an_explanation() -> None:
    m = fp.Matcher()
    m.subscribe("a", "kind = 'x' AND NOT (n > 1 OR m < 2)")
    explanation = m.explain({"kind": BAD, "n": 1}, "a")
    assert repr(explanation).splitlines()[0].startswith("false ")
    root = parsed(explanation)
    assert "It does not match" in texts(root)
    assert f"kind is {BAD!r}"[:20] in texts(root)
    assert "unknown" in texts(root)


def test_trackers() -> None:
    m = city(2)
    tracker = fp.Tracker(m, BAD, ["exit", "enter"])
    tracker.push({BAD: 7, "geometry": "POINT (0 0)", **NOON})
    assert repr(tracker) == f"<Tracker: 1 objects by {BAD!r}, on enter, exit>"
    assert "objects 1" in texts(parsed(tracker))
    roaming = fp.Roaming("boat", 5)
    assert repr(roaming) == "<Roaming: 0 objects by 'boat', 0 pairs within 5 m>"
    assert repr(fp.SafeRegions(m)) == (
        "<SafeRegions: mode 'silence', 0 regions issued, of <Matcher: 2 subscriptions, space "
        "'wgs84', index 'auto'>>"
    )


@pytest.mark.parametrize(
    "places", [("POINT (1 1)",) * 3, ("POINT (179 1)", "POINT (-179 9)", "POINT (180 5)")]
)
def test_a_detection(places: tuple[str, ...]) -> None:
    members = {name: f"kind = '{name}'" for name in "abc"}
    detector = fp.Detector([fp.Composite(BAD, members=members, within_s=60)])
    assert repr(detector) == "<Detector: 1 composites, 0 live members>"
    for name, place in zip("abc", places, strict=True):
        found = detector.push({"id": f"<{name}>", "kind": name, "geometry": place, **NOON})
    [detection] = found
    assert repr(detection) == (
        f"<Detection {BAD!r}: a='<a>', b='<b>', c='<c>', at 2024-05-01T12:00:00Z>"
    )
    root = parsed(detection)
    assert "<b>" in texts(root)
    assert root.find(f".//{SVG}svg") is not None
