"""The warm-up calls every kernel that Python calls, so that none compiles later."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import numba
import pytest

import fencepost
from fencepost import warmup
from fencepost.kernels import cache_folder

PACKAGE = Path(fencepost.__file__).parent
DECORATORS = {
    f"fencepost.kernels.runtime.compilation.{name}"
    for name in ("kernel", "no_refcount", "outlined", "inlined")
}


def dispatchers_imported() -> dict[str, Any]:
    """Return by name the kernels that are imported by modules without kernels of their own."""
    dispatchers: dict[str, Any] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = {f"{n.module}.{alias.name}": alias.name for n in imports for alias in n.names}
        if "kernels" in path.relative_to(PACKAGE).parts or DECORATORS & names.keys():
            continue  # a kernel is compiled together with the kernels that it calls
        attributes = {
            (node.value.id, node.attr)
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        for whole, name in names.items():
            module, _, _ = whole.rpartition(".")
            if not module.startswith(("fencepost.kernels", "fencepost.papers")):
                continue
            value = getattr(importlib.import_module(module), name)
            parts = [(whole, value)]
            parts += [
                (f"{whole}.{part}", getattr(value, part, None))
                for owner, part in attributes
                if owner == name
            ]
            dispatchers.update((key, part) for key, part in parts if is_kernel(part))
    return dispatchers


def is_kernel(value: object) -> bool:
    return hasattr(value, "py_func") and hasattr(value, "overloads")


def code_files() -> set[str]:
    return {path.name for path in cache_folder().glob("*.nbc")}


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_every_kernel_called_from_python_is_compiled_and_none_twice() -> None:
    for _, step in [*warmup.steps_beside(), *warmup.steps()]:
        step()
    kernels = dispatchers_imported()
    assert len(kernels) > 50
    missing = sorted(name for name, kernel in kernels.items() if not kernel.overloads)
    assert not missing, f"the warm-up does not call {', '.join(missing)}"
    before = code_files()
    for _, step in [*warmup.steps(), *warmup.steps_beside()]:
        step()
    assert code_files() - before == set()


def test_steps_have_distinct_names() -> None:
    names = [name for name, _ in [*warmup.steps(), *warmup.steps_beside()]]
    assert len(set(names)) == len(names)
