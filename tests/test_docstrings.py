"""The examples in docstrings give what they show."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import fencepost

PACKAGE = Path(fencepost.__file__).parent
MODULES = sorted(
    ".".join(("fencepost", *path.relative_to(PACKAGE).with_suffix("").parts))
    for path in PACKAGE.rglob("*.py")
    if "    >>> " in path.read_text(encoding="utf-8")
)


def test_there_are_examples() -> None:
    assert "fencepost.engine.matcher" in MODULES


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    result = doctest.testmod(import_module(module))
    assert result.failed == 0
