"""The warm-up calls every kernel that Python calls, so that no kernel compiles later."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import numba
import pytest

import fencepost
import fencepost.kernels
import fencepost.papers
from fencepost import warmup

PACKAGE = Path(fencepost.__file__).parent
DECORATORS = {
    f"fencepost.kernels.runtime.compilation.{name}"
    for name in ("kernel", "no_refcount", "outlined", "inlined")
}


def dispatchers_imported() -> dict[str, Any]:
    """Return the kernels, by name, that modules without kernels of their own import."""
    kernels: dict[str, Any] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = {
            f"{node.module}.{alias.name}": alias.name for node in imports for alias in node.names
        }
        if "kernels" in path.relative_to(PACKAGE).parts or DECORATORS & names.keys():
            continue  # kernels are compiled with the kernels that call them
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
            kernels.update((key, kernel) for key, kernel in parts if is_kernel(kernel))
    return kernels


def is_kernel(value: object) -> bool:
    return hasattr(value, "py_func") and hasattr(value, "overloads")


def outlined_kernels() -> dict[str, Any]:
    """Return the kernels, by name, that other kernels call late."""
    kernels = {}
    for package in (fencepost.kernels, fencepost.papers):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if is_kernel(value) and getattr(value, "returns", None) is not None:
                    kernels[f"{value.__module__}.{name}"] = value
    return kernels


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_every_kernel_is_compiled_and_none_twice() -> None:
    for _, step in warmup.steps():
        step()
    called, outlined = dispatchers_imported(), outlined_kernels()
    assert len(called) > 50
    assert len(outlined) > 40
    missing = [name for name, kernel in called.items() if not kernel.overloads]
    missing += [name for name, kernel in outlined.items() if not kernel.has_machine_code]
    assert not missing, f"the warm-up does not call {', '.join(sorted(missing))}"
    repeated = {name: warmup.run_step(k) for k, (name, _) in enumerate(warmup.steps())}
    assert not any(repeated.values()), repeated


def test_names_of_steps_are_unique() -> None:
    names = [name for name, _ in warmup.steps()]
    assert len(set(names)) == len(names)
