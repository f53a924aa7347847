"""The JavaScript client in a real Chromium: keys in headers, streams through fetch."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.server.serving import running

CHROMIUM = shutil.which("chromium")
PROGRAM = """
async ([key, number]) => {
  const { Client } = await import("/client.js");
  const client = new Client(undefined, { key });
  await client.subscribe("here", "n > 0", { subscriber: "browser" });
  await client.publish([{ n: number }, { n: 0 }]);
  for await (const message of client.messages("browser")) return message.data.event.n;
}
"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="NOT TESTED: run: apt-get install chromium")
def test_in_chromium(tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="NOT TESTED: no playwright")
    with running(tmp_path / "data", open_access=False) as server, sync_api.sync_playwright() as p:
        key = server.key("publish", "subscribe")
        browser = p.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
        )
        try:
            page = browser.new_page()
            page.goto(f"{server.url}/openapi.json")
            assert page.evaluate(PROGRAM, [key, 7]) == 7
            refused = page.evaluate(f"({PROGRAM})([null, 1]).catch((error) => error.status)")
            assert refused == 401
        finally:
            browser.close()
        messages = server.client(key).get("/v1/subscribers/browser/messages").json()
        assert [one["data"]["event"]["n"] for one in messages] == [7]
