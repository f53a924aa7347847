"""The code of README.md and of every page under docs/ runs as pasted, and prints what it shows."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.page_blocks import NOT_RUN, Block, PageRun, blocks_of
from tests.server.serving import Running, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    str(path.relative_to(ROOT)): blocks_of(path.read_text(encoding="utf-8"))
    for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
}
SERVER = "http://127.0.0.1:8080"
SHARED = ("/shared/", "/data/")  # folders of a cluster in examples
REASONS = {"not run: needs an MQTT broker", "not run: needs a cluster", "not run: needs DuckDB"}


def uses(blocks: list[Block], *texts: str) -> bool:
    return any(text in block.code for block in blocks if block.runs for text in texts)


def pages(*, spark: bool, server: bool = False) -> list[str]:
    """Return the pages whose code uses Spark, or else those that use a server or not."""
    return [
        name
        for name, blocks in PAGES.items()
        if any(block.runs for block in blocks)
        and uses(blocks, "fencepost import spark", "pyspark") == spark
        and (spark or needs_server(blocks) == server)
    ]


def needs_server(blocks: list[Block]) -> bool:
    return uses(blocks, SERVER, "fencepost publish", "fencepost tail")


def run_page(name: str, folder: Path, replaced: dict[str, str], patch: pytest.MonkeyPatch) -> None:
    patch.chdir(folder)
    log = logging.getLogger("fencepost")
    level = log.level
    run = PageRun(name, folder, replaced)
    try:
        for block in PAGES[name]:
            if block.runs:
                run.run(block)
    finally:
        log.setLevel(level)  # docs/kernels.md sets it


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path / "fencepost-data") as server:
        yield server


@pytest.mark.parametrize("name", pages(spark=False))
def test_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(name, tmp_path, {}, monkeypatch)


@pytest.mark.parametrize("name", pages(spark=False, server=True))
def test_a_page_about_the_server_runs(
    name: str, server: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_page(name, tmp_path, {SERVER: server.url}, monkeypatch)


def on_spark() -> list[Any]:
    """Return the pages that use Spark; streams are slow."""
    return [
        pytest.param(name, marks=[pytest.mark.slow] if uses(PAGES[name], "readStream") else [])
        for name in pages(spark=True)
    ]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", on_spark())
def test_a_page_about_spark_runs(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced = {folder: f"{tmp_path}{folder}" for folder in SHARED}
    run_page(name, tmp_path, replaced, monkeypatch)


@pytest.mark.parametrize("name", PAGES)
def test_python_is_marked_as_python(name: str) -> None:
    """Code in a block without a language would escape these tests."""
    unmarked = [block.line for block in PAGES[name] if not block.language and is_code(block.code)]
    assert unmarked == []


def is_code(text: str) -> bool:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    kinds = (ast.Import, ast.ImportFrom, ast.Assign, ast.FunctionDef, ast.For)
    return any(isinstance(statement, kinds) for statement in tree.body)


@pytest.mark.parametrize("name", PAGES)
def test_a_block_that_does_not_run_says_why(name: str) -> None:
    titles = {block.title for block in PAGES[name] if block.title.startswith(NOT_RUN)}
    assert titles <= REASONS
