"""Names that a package offers, each loaded from its module when it is first used.

Importing a package then costs nothing: what needs the compiler loads it when it is wanted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazy_getattr(
    package: str, modules: Mapping[str, Sequence[str] | None]
) -> Callable[[str], object]:
    """The `__getattr__` of a package that offers names of its modules, and whole modules.

    No name may be that of another module of the package: importing that module would set the name.

    Parameters
    ----------
    package
        The full name of the package.
    modules
        For each module within the package, which of its names are offered; None offers the module.
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
