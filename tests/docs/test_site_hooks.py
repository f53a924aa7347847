"""Links of a page lead to pages of the site, wherever the page is in the repository."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tools.site import hooks


def rewritten(uri: str, markdown: str) -> str:
    return hooks.on_page_markdown(markdown, SimpleNamespace(file=SimpleNamespace(src_uri=uri)))


@pytest.mark.parametrize(
    ("uri", "link", "on_the_site"),
    [
        ("events.md", "tracking.md#order", "tracking.md#order"),
        ("guides/spark-job.md", "../spark.md", "../spark.md"),
        ("events.md", "../decisions/0001-exact-relations-from-orientations.md",
         "decisions/0001-exact-relations-from-orientations.md"),
        ("guides/moving-subscriber.md", "../../src/fencepost/saferegion/client_rule.py",
         "../source/src/fencepost/saferegion/client_rule.py.md"),
        ("notebooks/tables.md", "spark.ipynb", "spark.md"),
        ("CHANGELOG.md", "docs/kernels.md", "kernels.md"),
        ("decisions/README.md", "0000-template.md", "0000-template.md"),
        ("CONTRIBUTING.md", "README.md", "index.md"),
        ("events.md", "no-such-page.md", "no-such-page.md"),  # for MkDocs to report
        ("events.md", "https://example.org/a.md", "https://example.org/a.md"),
    ],
)  # fmt: skip
def test_links(uri: str, link: str, on_the_site: str) -> None:
    assert rewritten(uri, f"[a]({link}) b") == f"[a]({on_the_site}) b"


def test_code_is_left_alone() -> None:
    code = "```python\nf[a](kernels.md)\n```"
    assert rewritten("CHANGELOG.md", code) == code


def test_drawings_become_part_of_the_page() -> None:
    html = '<p><img alt="a" src="pictures/match-pipeline.svg" /></p>'
    page = SimpleNamespace(file=SimpleNamespace(src_uri="how-it-works.md"))
    drawn = hooks.on_page_content(html, page)
    assert drawn.startswith("<p><svg")
    assert "currentColor" in drawn
    assert 'color="#6b7885"' not in drawn
