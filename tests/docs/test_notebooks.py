"""The notebooks under docs/ run, and give the outputs that they show."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tools.site import notebooks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
SPARK = {"spark.ipynb"}
WITHOUT_SPARK = sorted({path.name for path in FOLDER.glob("*.ipynb")} - SPARK)
MAX_BYTES = 30_000  # small enough to review


def check(name: str) -> None:
    notebook = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    again = notebooks.run(notebook)
    for cell, cell_again in zip(notebook["cells"], again["cells"], strict=True):
        source = "".join(cell["source"])
        assert cell.get("outputs") == cell_again.get("outputs"), f"{name}: {source}"


@pytest.mark.parametrize("name", WITHOUT_SPARK)
def test_a_notebook_runs(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", sorted(SPARK))
def test_a_notebook_on_spark_runs(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    check(name)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.name)
def test_outputs_are_small(path: Path) -> None:
    assert path.stat().st_size < MAX_BYTES


def cell(kind: str, source: str, *outputs: Any) -> dict[str, Any]:
    return {"cell_type": kind, "source": [source], "outputs": list(outputs)}


def test_outputs_are_those_of_jupyter() -> None:
    source = "print('a')\nx = 1\nx + 1"
    ran = notebooks.run({"cells": [cell("markdown", "# T"), cell("code", source)]})
    printed, value = ran["cells"][1]["outputs"]
    assert printed == {"output_type": "stream", "name": "stdout", "text": ["a\n"]}
    assert (value["output_type"], value["data"]) == ("execute_result", {"text/plain": ["2"]})


def test_a_semicolon_hides_a_value() -> None:
    assert notebooks.run({"cells": [cell("code", "1 + 1;")]})["cells"][0]["outputs"] == []


def test_a_page_of_a_notebook(tmp_path: Path) -> None:
    table = {"output_type": "execute_result", "data": {"text/plain": ["t"], "text/html": ["<b>"]}}
    printed = {"output_type": "stream", "name": "stdout", "text": ["a\n"]}
    cells = [cell("markdown", "# T"), cell("code", "f()", printed, table)]
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    page = notebooks.render(path)
    assert page.startswith("# T\n\n```python\nf()\n```\n\n```text\na\n```\n\n")
    assert '<div class="output"><b></div>' in page
    assert 'href="n.ipynb"' in page
