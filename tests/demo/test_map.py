"""The map of the demonstration: whole, right, and loading nothing from outside."""

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
from fencepost.demo.city import Question
from fencepost.demo.map import write_map
from fencepost.engine import Matcher

# HTML lets these stand without an end.
VOID = {"meta", "input", "br", "link", "img"}


class Page(HTMLParser):
    """What is in a page: tags with their attributes, and the text of each script and cell."""

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
    found: dict[str, Any] = json.loads(page.scripts[0])
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A map of the demonstration's own city, and what should be on it."""
    rng = np.random.default_rng(3)
    asked, happened = city.questions(rng), city.events(rng)
    matcher = Matcher()
    matcher.subscribe_many([{"id": q.id, "expression": q.expression} for q in asked])
    found = matcher.match_batch(happened, sort=True).to_pylist()
    pairs = [(happened[row["event"]]["id"], row["subscription"]) for row in found]
    path = tmp_path_factory.mktemp("map") / "city.html"
    write_map(path, asked, happened, pairs)
    return {"path": path, "asked": asked, "happened": happened, "pairs": pairs}


def test_the_map_holds_what_happened(made: dict[str, Any]) -> None:
    page = read(made["path"])
    data = data_of(page)
    questions, events = ([row[0] for row in data[name]] for name in ("questions", "events"))
    assert questions == [q.id for q in made["asked"]]
    assert events == [e["id"] for e in made["happened"]]
    shown = [(events[event], questions[question]) for event, question in data["pairs"]]
    assert shown == made["pairs"]
    for q, row in zip(made["asked"], data["questions"], strict=True):
        at = data["places"][row[2]]
        drawn = Point(at[:2]).buffer(at[2]) if q.kind == "rider" else None
        if drawn is None:
            assert np.abs(np.array(at) - np.array(q.place.exterior.coords[:-1])).max() < 0.06
        else:
            assert drawn.hausdorff_distance(q.place) < 0.2
    districts = {row[2] for row in data["questions"] if row[1] == "reader"}
    assert len(districts) <= city.DISTRICTS


def test_the_map_counts_right(made: dict[str, Any]) -> None:
    page = read(made["path"])
    head, *rows = page.rows
    assert head == ["events", "all", "matched", "matches"]
    kinds = {event["id"]: event["kind"] for event in made["happened"]}
    for kind, *numbers in rows:
        own = [p for p in made["pairs"] if kind in ("all", kinds[p[0]])]
        events = [k for k in kinds.values() if kind in ("all", k)]
        told = [len(events), len({event for event, _ in own}), len(own)]
        assert numbers == [f"{number:,}" for number in told]
    assert [row[0] for row in rows] == ["post", "taxi", "warning", "all"]
    assert f"{len(made['pairs']):,} matches" in page.title


def test_the_map_loads_nothing_and_is_small(made: dict[str, Any]) -> None:
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


def test_everything_to_operate_has_a_name(made: dict[str, Any]) -> None:
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


def test_texts_cannot_leave_the_data(tmp_path: Path) -> None:
    text = "</script><script>alert('1')</script> $title ${data} <!-- é \u2028"
    asked = [Question("q", text, text, "warehouse", box(0, 0, 1, 1))]
    happened = [{"id": "e", "kind": "post", "geometry": Point(0.5, 0.5), "text": text}]
    write_map(tmp_path / "city.html", asked, happened, [("e", "q")])
    page = read(tmp_path / "city.html")
    assert len(page.scripts) == 2
    data = data_of(page)
    assert data["questions"][0][3:] == [text, text]
    assert data["events"][0][3] == text
