"""Every statement stands in `store`; all else calls its functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import fencepost

SOURCES = Path(fencepost.__file__).parent
STORE = SOURCES / "store"
EXECUTING = {"execute", "executemany", "executescript"}


def statements(source: str) -> Iterator[str]:
    """What of a module touches SQLite."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name in EXECUTING:
                yield f"line {node.lineno}: {name}()"
            case ast.Import(names=names) if any(one.name == "sqlite3" for one in names):
                yield f"line {node.lineno}: import sqlite3"
            case ast.ImportFrom(module="sqlite3"):
                yield f"line {node.lineno}: from sqlite3"


def test_statements_are_found() -> None:
    found = [one for path in STORE.glob("*.py") for one in statements(path.read_text("utf-8"))]
    assert len(found) > 40


def test_no_statement_stands_elsewhere() -> None:
    found = [
        f"{path.relative_to(SOURCES)}, {one}"
        for path in sorted(SOURCES.rglob("*.py"))
        if STORE not in path.parents
        for one in statements(path.read_text("utf-8"))
    ]
    assert found == []
