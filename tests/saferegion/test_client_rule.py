"""The rule of the client in Python and in JavaScript, with one table of cases for both."""

from __future__ import annotations

import ast
import json
import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from fencepost.saferegion import client_rule as module
from fencepost.saferegion.client_rule import SafeClient, SafeRegion, json_value, point_of
from tests.waiting import WAIT_S

FILE = Path(module.__file__)
SCRIPT = FILE.parent / "static" / "safe-client.js"


def point(x: float, y: float) -> dict[str, object]:
    return {"type": "Point", "coordinates": [x, y]}


REGION = SafeRegion(
    True,
    (("box", 0.0, 0.0, 10.0, 10.0), ("round", 5.0, 5.0, 1.0, 0.5, 25.0)),
    (("round", 5.0, 5.0, 1.0, 1.0, 1.0), ("planes", 6.0, 6.0, 8.0, 8.0, 1.0, 1.0, 2.0)),
    {"kind": "taxi", "n": 1, "tags": ["a", 2], "gone": None},
    at=(2.0, 5.0),
    version=3,
    number=7,
)
SAME = {"kind": "taxi", "n": 1, "tags": ["a", 2]}
ANSWER = REGION.to_json()
START = {**SAME, "geometry": point(2, 5)}
Step = tuple[str, Any]
# The steps of a client, and for each event whether it was sent.
STORIES: list[tuple[list[Step], list[bool]]] = [
    ([("event", START), ("event", START)], [True, True]),
    ([("event", START), ("accept", ANSWER), ("event", START)], [True, False]),
    (
        [("event", START), ("accept", REGION.to_keep_json((2.0, 5.0))), ("event", START)],
        [True, True],
    ),
    (
        [
            *(("event", START), ("accept", ANSWER), ("event", {**START, "geometry": point(5, 5)})),
            *(("event", START), ("accept", REGION.to_keep_json((2.0, 5.0))), ("event", START)),
        ],
        [True, True, True, False],
    ),
    (
        [("event", START), ("accept", ANSWER), ("withdraw", 4), ("event", START)],
        [True, True],
    ),
    ([("event", START), ("accept", ANSWER), ("withdraw", 3), ("event", START)], [True, False]),
    ([("event", START), ("withdraw", 4), ("accept", ANSWER), ("event", START)], [True, True]),
    (
        [("event", {**START, "geometry": point(3, 5)}), ("accept", ANSWER), ("event", START)],
        [True, True],
    ),
    (
        [
            *(("event", START), ("accept", ANSWER)),
            ("event", {"type": "Feature", "properties": SAME, "geometry": point(2, 5)}),
        ],
        [True, False],
    ),
    (
        [
            ("event", START),
            ("accept", SafeRegion(False, at=(2.0, 5.0)).to_json()),
            ("event", START),
        ],
        [True, True],
    ),
]
# Events after the region was accepted, and whether each is sent.
EVENTS: list[tuple[dict[str, Any], bool]] = [
    ({**SAME, "geometry": point(2, 5)}, False),
    ({**SAME, "geometry": point(2, 5), "speed": 3}, False),
    ({**SAME, "geometry": "POINT (2 5)"}, False),
    ({**SAME, "geometry": " point(2.0 5e0) "}, False),
    ({**SAME, "geometry": "POINT (2 5 1)"}, True),
    ({**SAME, "geometry": "POINT EMPTY"}, True),
    ({**SAME, "geometry": {"type": "Point", "coordinates": [2, 5, 1]}}, False),
    ({**SAME, "geometry": {"type": "Point", "coordinates": []}}, True),
    ({**SAME, "geometry": {"type": "Point", "coordinates": ["2", "5"]}}, True),
    ({**SAME, "geometry": {"type": "MultiPoint", "coordinates": [[2, 5]]}}, True),
    ({**SAME, "geometry": None}, True),
    (SAME, True),
    ({**SAME, "geometry": point(5, 5)}, True),
    ({**SAME, "geometry": point(6, 5)}, True),
    ({**SAME, "geometry": point(6.01, 5)}, False),
    ({**SAME, "geometry": point(6.5, 6.5)}, True),
    ({**SAME, "geometry": point(7, 7)}, True),
    ({**SAME, "geometry": point(7.5, 7.5)}, False),
    ({**SAME, "geometry": point(0, 0)}, True),
    ({**SAME, "geometry": point(5, 10)}, False),
    ({**SAME, "geometry": point(5, 10.001)}, True),
    ({**START, "kind": "bus"}, True),
    ({**START, "kind": None}, True),
    ({**START, "n": 1.0}, False),
    ({**START, "n": True}, True),
    ({**START, "n": "1"}, True),
    ({**START, "tags": ["a", 2.0]}, False),
    ({**START, "tags": ["a"]}, True),
    ({**START, "tags": {"0": "a", "1": 2}}, True),
    ({**START, "gone": None}, False),
    ({**START, "gone": 0}, True),
    ({**START, "gone": []}, True),
]
BEGIN: list[Step] = [("event", START), ("accept", ANSWER)]
STORIES += [([*BEGIN, ("event", event)], [True, sent]) for event, sent in EVENTS]


def test_python() -> None:
    for steps, expected in STORIES:
        client = SafeClient()
        sent = []
        for step, value in steps:
            if step == "event":
                sent.append(client.should_send(value))
            else:
                getattr(client, step)(value)
        assert sent == expected, steps
        assert client.sent == sum(sent)
        assert client.kept_back == len(sent) - sum(sent)


@pytest.mark.skipif(
    shutil.which("node") is None,
    reason="NOT TESTED: node is not installed; run: apt-get install nodejs",
)
def test_javascript() -> None:
    program = """
    const { SafeClient } = require(process.argv[1]);
    const stories = JSON.parse(require("fs").readFileSync(0, "utf8"));
    const answers = stories.map((steps) => {
      const client = new SafeClient();
      const sent = [];
      for (const [step, value] of steps) {
        if (step === "event") sent.push(client.shouldSend(value));
        else client[step](value);
      }
      return sent;
    });
    console.log(JSON.stringify(answers));
    """
    stories = json.dumps([steps for steps, _ in STORIES])
    ran = subprocess.run(
        ["node", "-e", program, str(SCRIPT)],
        input=stories, capture_output=True, text=True, check=True, timeout=WAIT_S,
    )  # fmt: skip
    assert json.loads(ran.stdout) == [expected for _, expected in STORIES]


def test_json_there_and_back() -> None:
    assert SafeRegion.from_json(ANSWER) == REGION
    nowhere = SafeRegion(False)
    assert SafeRegion.from_json(nowhere.to_json()) == nowhere
    for bad in ("{}", "[]", "null", '{"format": 2}'):
        with pytest.raises(ValueError, match="not a safe region"):
            SafeRegion.from_json(bad)


def test_odd_values_of_python() -> None:
    assert point_of(shapely.Point(1, 2)) == (1.0, 2.0)
    assert point_of(shapely.Point()) is None
    assert point_of({"type": "Point", "coordinates": [10**400, 0]}) is None
    assert json_value(np.int64(3)) == 3
    assert json_value(float("nan")) is None
    assert json_value((1, 2)) == [1, 2]
    for unusable in (2**53, math.inf, object(), {1: 2}, [object()], b"a"):
        assert json_value(unusable) is module.UNUSABLE
    assert not REGION.contains(math.nan, 5)
    assert not SafeRegion(True).contains(math.inf, 0)
    assert SafeRegion(True).contains(1e300, 0)


def test_the_client_needs_the_standard_library_only() -> None:
    tree = ast.parse(FILE.read_text())
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names] if isinstance(node, ast.Import)
            else []
        )
    }  # fmt: skip
    assert imported <= sys.stdlib_module_names
