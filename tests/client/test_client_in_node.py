"""The JavaScript client in a real Node, against real servers."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.client.cutting import Cutting
from tests.client.test_restart import JAVASCRIPT, NO_NODE, NODE
from tests.server.serving import Running, running
from tests.waiting import WAIT_S

TESTS = Path(__file__).with_name("client.test.mjs")


@pytest.mark.skipif(NODE is None, reason=NO_NODE)
def test_in_node(server: Running, tmp_path: Path) -> None:
    served = server.http.get("/client.js")
    assert served.headers["content-type"].startswith("text/javascript")
    assert served.content == JAVASCRIPT.read_bytes()
    with (
        running(tmp_path / "locked", open_access=False) as locked,
        Cutting(server.url) as line,
    ):
        line.cut_after_request(b"POST /v1/events", times=1)
        environment = {
            **os.environ,
            "CLIENT": JAVASCRIPT.as_uri(),
            "SERVER": server.url,
            "LOCKED": locked.url,
            "KEY": locked.key("subscribe"),
            "CUTTING": line.url,
        }
        ran = subprocess.run(
            [str(NODE), "--test", str(TESTS)],
            env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stdout
        assert line.cuts == 1
