"""The `kernel` decorator: compile with Numba, keep the machine code on disk.

Numba's own file cache looks at the file of a function but not at the files of the functions it
calls, so an edit in one kernel can leave stale code in another. Here the folder is named after
a hash of every file that may hold kernels, and each compiled signature is a file of its own,
named after its key: no index to fall out of step when two processes compile at once.

Numba is told nothing globally, so other users of Numba in the process keep their settings.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.serialize import dumps
from numba.core.types import unliteral  # type: ignore[attr-defined]

Function = TypeVar("Function", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent.parent
_KERNEL_FOLDERS = ("kernels", "papers")


def kernel(function: Function) -> Function:
    """Compile `function` on its first call for each signature; release the GIL while it runs."""
    dispatcher = numba.njit(nogil=True, error_model="numpy")(function)
    if not numba.config.DISABLE_JIT:
        dispatcher._cache = _KernelCache(function)
        dispatcher.get_call_template = functools.partial(_call_template, dispatcher)
    return dispatcher  # type: ignore[no-any-return]


def _call_template(dispatcher: Any, args: Any, kws: Any) -> Any:
    """What a kernel calls: compiled for any number, where it is called with a constant.

    Numba would compile it once more for each constant, and so all that it calls.
    """
    plain = {name: unliteral(kind) for name, kind in kws.items()}
    return type(dispatcher).get_call_template(dispatcher, [*map(unliteral, args)], plain)


def inlined(function: Function) -> Function:
    """Compile `function` into each kernel that calls it.

    For what a hot loop calls with whole `ShapeArrays`: as arguments of a real call they are a
    hundred machine words.
    """
    return numba.njit(nogil=True, error_model="numpy", inline="always")(function)  # type: ignore[no-any-return]


@functools.cache
def source_hash() -> str:
    """A short name for the present state of every kernel's source and of Numba."""
    digest = hashlib.sha256(numba.__version__.encode())
    for folder in _KERNEL_FOLDERS:
        for path in sorted((_PACKAGE / folder).rglob("*.py")):
            digest.update(str(path.relative_to(_PACKAGE)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def cache_folder() -> Path:
    """Where compiled kernels are kept: below FENCEPOST_CACHE_DIR, else the user's cache folder."""
    chosen = os.environ.get("FENCEPOST_CACHE_DIR")
    candidates = [Path(chosen)] if chosen else [_user_cache() / "fencepost"]
    candidates.append(Path(tempfile.gettempdir()) / f"fencepost-{os.getuid()}")
    for base in candidates:
        folder = base / f"kernels-{source_hash()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    return Path(tempfile.mkdtemp(prefix="fencepost-"))


def _user_cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


class _KernelLocator(_CacheLocator):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        self._line = function.__code__.co_firstlineno
        self._py_file = function.__code__.co_filename

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return source_hash()

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _KernelLocator:
        return cls(py_func)


class _KernelCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_KernelLocator,)


class _SignatureFiles:
    """One file a signature. No lock is needed: a file appears whole or not at all."""

    def __init__(self, base: str) -> None:
        self._base = base

    def flush(self) -> None:
        for path in cache_folder().glob(f"{self._base}.*.nbc"):
            path.unlink(missing_ok=True)

    def save(self, key: object, data: object) -> None:
        path = self._path(key)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(dumps(data))
        os.replace(temporary, path)

    def load(self, key: object) -> Any:
        try:
            return pickle.loads(self._path(key).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def _path(self, key: object) -> Path:
        return (
            cache_folder()
            / f"{self._base}.{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.nbc"
        )


class _KernelCache(FunctionCache):  # type: ignore[misc]
    _impl_class = _KernelCacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        module = function.__module__.removeprefix("fencepost.")
        self._cache_file = _SignatureFiles(f"{module}.{function.__qualname__}")
