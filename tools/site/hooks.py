"""Hooks of MkDocs: pages that are made while the site is built, and links that leave `docs/`.

The repository's other documents are read where they are: a page under `docs/` may link to
`../decisions/0014-joining-composites.md`, to a report of a benchmark or to a module, and the site
has a page for each. So links work in the repository and on the site.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from tools.site import command_line, http, notebooks

ROOT = Path(__file__).resolve().parents[2]
# What is made for a page, below what its file says.
GENERATED: dict[str, Callable[[], str]] = {
    "reference/command-line.md": command_line.render,
    "reference/http.md": http.render,
}
ALWAYS = ("CHANGELOG.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "decisions/README.md")

_NOT_SEARCHED = "---\nsearch: {exclude: true}\n---\n\n"
_IMAGES = (".png", ".svg")
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")  # no URL, no section alone
_DRAWING = re.compile(r'<img [^>]*src="([^":]+\.svg)"[^>]*>')
_FENCE = re.compile(r"^(```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: Any) -> Files:
    """Add notebooks, and every document and module that a page links to."""
    for notebook in sorted(ROOT.glob("docs/**/*.ipynb")):
        uri = _site_uri(str(notebook.relative_to(ROOT)))
        files.append(File.generated(config, uri, content=notebooks.render(notebook)))
    queue = list(ALWAYS)
    for file in files.documentation_pages():
        queue += _outside(f"docs/{file.src_uri}", file.content_string)
    known: set[str] = set()
    while queue:
        path = queue.pop()
        if path in known or not (ROOT / path).is_file():
            continue
        known.add(path)
        if path.endswith(_IMAGES):
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
            continue
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.endswith(".md"):
            queue += _outside(path, text)
        else:
            text = f"{_NOT_SEARCHED}# `{path}`\n\n```{Path(path).suffix[1:]}\n{text}```\n"
        files.append(File.generated(config, _site_uri(path), content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Add what is generated for a page, and point its links at pages of the site."""
    uri = page.file.src_uri
    if uri in GENERATED:
        markdown = f"{markdown}\n{GENERATED[uri]()}"
    path = uri if (ROOT / uri).is_file() else f"docs/{uri}"
    folder = posixpath.dirname(uri)

    def site_link(link: re.Match[str]) -> str:
        target = _repository_path(path, link[1])
        if not (ROOT / target).is_file():
            return link[1]
        return posixpath.relpath(_site_uri(target), folder or ".")

    return "".join(
        part if part.startswith("```") else _LINK.sub(site_link, part)
        for part in _FENCE.split(markdown)
    )


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Put drawings into the page itself, where their `currentColor` is that of the text."""
    folder: Path = ROOT / "docs" / posixpath.dirname(page.file.src_uri)

    def drawing(image: re.Match[str]) -> str:
        return (folder / image[1]).read_text(encoding="utf-8").replace(' color="#6b7885"', "")

    return _DRAWING.sub(drawing, html)


def _outside(path: str, text: str) -> Iterator[str]:
    """Yield the paths in the repository, outside `docs/`, to which a document links."""
    for link in _LINK.findall(_FENCE.sub("", text)):
        target = _repository_path(path, link)
        if not target.startswith(("docs/", "..")):
            yield target


def _repository_path(path: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def _site_uri(path: str) -> str:
    """Return where the site has a file of the repository."""
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/").replace(".ipynb", ".md")
    return path if path.endswith((".md", *_IMAGES)) else f"source/{path}.md"
