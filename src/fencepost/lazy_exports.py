"""Lazy exports of packages: each name is loaded from its module when it is first used.

So importing a package loads none of its modules, and the compiler only when a name needs it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazy_getattr(
    package: str, modules: Mapping[str, Sequence[str] | None]
) -> Callable[[str], object]:
    """Return the `__getattr__` of a package that exports names of its modules, or whole modules.

    A name must differ from those of the other modules: importing a module sets its name.

    Parameters
    ----------
    package
        The full name of the package.
    modules
        The names to export by module, relative to the package; None exports the module itself.
    """
    module_of = {name: module for module, names in modules.items() for name in names or [module]}

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = import_module(f"{package}.{module_of[name]}")
        if modules[module_of[name]] is not None:
            value = getattr(value, name)
        setattr(sys.modules[package], name, value)
        return value

    return load
