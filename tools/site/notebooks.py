"""`run` executes a Jupyter notebook, and `render` turns a notebook into a page.

A notebook is JSON: cells of Markdown and of Python. The last expression of a cell is shown, as
Jupyter shows it. `python -m tools.site.notebooks FILE...` runs notebooks and writes their outputs.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # differs in every run
_STYLE = re.compile(r"<style.*?</style>\n", re.DOTALL)  # pandas repeats it in every table


def run(notebook: dict[str, Any], names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Execute the cells of a notebook in order.

    Parameters
    ----------
    notebook : dict
        As `json.load` reads it.
    names : dict, optional
        The namespace in which the cells run.

    Returns
    -------
    dict
        The notebook with the outputs of this run.
    """
    names = {"__name__": "__main__"} if names is None else names
    cells = []
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            outputs = _run_cell("".join(cell["source"]), names, f"cell {number}")
            cell = {**cell, "execution_count": None, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


def _run_cell(source: str, names: dict[str, Any], name: str) -> list[dict[str, Any]]:
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(tree, name, "exec"), names)
        value = None
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(text)})
    if value is not None and not source.rstrip().endswith(";"):
        data = {"text/plain": _lines(_ADDRESS.sub("", repr(value)))}
        html = getattr(value, "_repr_html_", lambda: None)()
        if html is not None:
            data["text/html"] = _lines(_STYLE.sub("", html))
        result: dict[str, Any] = {
            "output_type": "execute_result",
            "execution_count": None,
            "metadata": {},
        }
        outputs.append({**result, "data": data})
    return outputs


def render(path: Path) -> str:
    """Return a notebook, with the outputs that it holds, as Markdown."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "text/html" in data:
                parts.append(f'<div class="output">{"".join(data["text/html"])}</div>')
            else:
                parts.append(f"```text\n{''.join(data['text/plain']).rstrip()}\n```")
    link = f'<a href="{path.name}" download>Download this notebook</a>'
    return "\n\n".join([*parts, link]) + "\n"


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Run the notebooks that the command line names, and write their outputs into them."""
    for path in map(Path, sys.argv[1:]):
        notebook = run(json.loads(path.read_text(encoding="utf-8")))
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        path.write_text(text + "\n", encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
