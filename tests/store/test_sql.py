"""All SQL statements are in the package `store`; other packages call its functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import fencepost

SOURCES = Path(fencepost.__file__).parent
STORE = SOURCES / "store"
EXECUTE_METHODS = {"execute", "executemany", "executescript"}


def statements(source: str) -> Iterator[str]:
    """Yield the uses of SQLite in a module."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr=name)) if name in EXECUTE_METHODS:
                yield f"line {node.lineno}: {name}()"
            case ast.Import(names=names) if any(name.name == "sqlite3" for name in names):
                yield f"line {node.lineno}: import sqlite3"
            case ast.ImportFrom(module="sqlite3"):
                yield f"line {node.lineno}: from sqlite3"


def test_statements_are_found() -> None:
    uses = [use for path in STORE.glob("*.py") for use in statements(path.read_text("utf-8"))]
    assert len(uses) > 40


def test_other_packages_have_no_statements() -> None:
    uses = [
        f"{path.relative_to(SOURCES)}, {use}"
        for path in sorted(SOURCES.rglob("*.py"))
        if STORE not in path.parents
        for use in statements(path.read_text("utf-8"))
    ]
    assert uses == []
