"""The map of the demonstration: it is complete and correct, and loads no other file."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shapely.geometry import Point, box

from fencepost.demo import city
from fencepost.demo.city import CitySubscription
from fencepost.demo.map import write_map
from fencepost.engine import Matcher

# Elements without an end tag.
VOID = {"meta", "input", "br", "link", "img"}


class Page(HTMLParser):
    """The tags of a page with their attributes, and the text of each script and cell."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.scripts: list[str] = []
        self.rows: list[list[str]] = []
        self.title = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")
        elif tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        inner = self.open[-1] if self.open else ""
        if inner == "script":
            self.scripts[-1] += data
        elif inner in ("td", "th"):
            self.rows[-1].append(data)
        elif inner == "title":
            self.title += data


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    return page


def data_of(page: Page) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(page.scripts[0])
    return data


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A map of the demonstration's city, and the data that it should show."""
    rng = np.random.default_rng(3)
    subscriptions, events = city.make_subscriptions(rng), city.make_events(rng)
    matcher = Matcher()
    matcher.subscribe_many([{"id": s.id, "expression": s.expression} for s in subscriptions])
    rows = matcher.match_batch(events, sort=True).to_pylist()
    pairs = [(events[row["event"]]["id"], row["subscription"]) for row in rows]
    path = tmp_path_factory.mktemp("map") / "city.html"
    write_map(path, subscriptions, events, pairs)
    return {"path": path, "subscriptions": subscriptions, "events": events, "pairs": pairs}


def test_the_map_has_all_subscriptions_events_and_matches(made: dict[str, Any]) -> None:
    page = read(made["path"])
    data = data_of(page)
    subscriptions, events = ([row[0] for row in data[name]] for name in ("subscriptions", "events"))
    assert subscriptions == [s.id for s in made["subscriptions"]]
    assert events == [e["id"] for e in made["events"]]
    shown = [(events[event], subscriptions[row]) for event, row in data["pairs"]]
    assert shown == made["pairs"]
    for s, row in zip(made["subscriptions"], data["subscriptions"], strict=True):
        area = data["areas"][row[2]]
        if s.kind == "rider":
            assert area == [s.geometry.x, s.geometry.y, s.reach_m]
        else:
            assert area == [list(at) for at in s.geometry.exterior.coords[:-1]]
    for event, row in zip(made["events"], data["events"], strict=True):
        if event["kind"] != "warning":
            assert row[2] == [event["geometry"].x, event["geometry"].y]
    districts = {row[2] for row in data["subscriptions"] if row[1] == "reader"}
    assert len(districts) <= city.DISTRICTS


def test_the_map_has_the_right_counts(made: dict[str, Any]) -> None:
    page = read(made["path"])
    head, *rows = page.rows
    assert head == ["events", "all", "matched", "matches"]
    kinds = {event["id"]: event["kind"] for event in made["events"]}
    for kind, *numbers in rows:
        kind_pairs = [p for p in made["pairs"] if kind in ("all", kinds[p[0]])]
        events = [k for k in kinds.values() if kind in ("all", k)]
        expected = [len(events), len({event for event, _ in kind_pairs}), len(kind_pairs)]
        assert numbers == [f"{number:,}" for number in expected]
    assert [row[0] for row in rows] == ["post", "taxi", "warning", "all"]
    assert f"{len(made['pairs']):,} matches" in page.title


def test_the_map_loads_no_other_file_and_is_small(made: dict[str, Any]) -> None:
    text = made["path"].read_text(encoding="utf-8")
    page = read(made["path"])
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "audio", "video")
        assert not {"src", "href", "srcset", "action"} & set(attributes)
    (policy,) = (
        attributes["content"]
        for tag, attributes in page.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert not re.search(r"https?://|url\(|@import|\bimport\b|fetch\(|XMLHttpRequest", text)
    assert made["path"].stat().st_size < 2_000_000


def test_every_control_has_an_accessible_name(made: dict[str, Any]) -> None:
    page = read(made["path"])
    html = next(attributes for tag, attributes in page.tags if tag == "html")
    assert html["lang"] == "en"
    canvas = next(attributes for tag, attributes in page.tags if tag == "canvas")
    assert canvas["tabindex"] == "0"
    assert canvas["aria-label"]
    fields = [attributes["id"] for tag, attributes in page.tags if tag == "input"]
    labelled = [attributes.get("for") for tag, attributes in page.tags if tag == "label"]
    assert set(fields) <= set(labelled)
    assert any(attributes.get("aria-live") == "polite" for _, attributes in page.tags)


def test_texts_cannot_break_out_of_the_data(tmp_path: Path) -> None:
    text = "</script><script>alert('1')</script> $title ${data} <!-- é \u2028"
    subscriptions = [CitySubscription("q", text, text, "warehouse", box(0, 0, 1, 1))]
    events = [{"id": "e", "kind": "post", "geometry": Point(0.5, 0.5), "text": text}]
    write_map(tmp_path / "city.html", subscriptions, events, [("e", "q")])
    page = read(tmp_path / "city.html")
    assert len(page.scripts) == 2
    data = data_of(page)
    assert data["subscriptions"][0][3:] == [text, text]
    assert data["events"][0][3] == text
