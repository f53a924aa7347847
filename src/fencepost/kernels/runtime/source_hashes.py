"""Hash the sources that a kernel depends on, so that an edit recompiles what it changes.

The hash of a file covers its source and that of all kernel files that it imports, directly or
indirectly. Numba's own file cache looks at the file of a function only, so that an edit in one
kernel can leave stale machine code in another.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from pathlib import Path

_PACKAGE = Path(__file__).parents[2]
_KERNEL_FOLDERS = ("kernels", "papers")

# `from package import names`, in parentheses or not: the only form of import in kernel files.
_IMPORTS = re.compile(r"^ *from (fencepost[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


@functools.cache
def source_hash(path: Path) -> str:
    """Return a short hash of a file's source and of all kernel files that it imports."""
    digest = hashlib.sha256()
    for file in sorted(_imported_files(path)):
        digest.update(_hash_of(file))
    return digest.hexdigest()[:16]


@functools.cache
def _hash_of(path: Path) -> bytes:
    name = os.path.relpath(path, _PACKAGE).encode()
    return hashlib.sha256(name + b"\0" + path.read_bytes()).digest()


def _imported_files(path: Path) -> set[Path]:
    """Return a file and all kernel files that it imports, directly or indirectly."""
    reached: set[Path] = set()
    waiting = {path}
    while waiting:
        file = waiting.pop()
        reached.add(file)
        waiting |= _imports_of(file) - reached
    return reached


@functools.cache
def _imports_of(path: Path) -> frozenset[Path]:
    names: set[str] = set()
    for package, imported in _IMPORTS.findall(path.read_text()):
        names.add(package)
        names.update(f"{package}.{name}" for name in re.findall(r"\w+", imported))
    roots = tuple(f"{_PACKAGE.name}.{folder}." for folder in _KERNEL_FOLDERS)
    files = (
        _PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py")
        for name in names
        if name.startswith(roots)
    )
    return frozenset(file for file in files if file.is_file())
