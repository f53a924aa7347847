"""The `kernel` decorator: compile with Numba, keep the machine code on disk.

Numba's own file cache looks at the file of a function but not at the files of the functions it
calls, so an edit in one kernel can leave stale code in another. Here the key of a kernel's machine
code holds a hash of its file and of every file that this one imports, however indirectly, so an
edit compiles again what depends on it and nothing else. Each compiled signature is a file of its
own, named after its key: no index to fall out of step when two processes compile at once.

A kernel is compiled together with all that it calls, and so once more into each kernel that calls
it, and into each that calls those. What is large is therefore `separate`: compiled once, and called
by a name that is given its address before a caller's machine code is used.

Numba is told nothing globally, so other users of Numba in the process keep their settings.
"""

from __future__ import annotations

import copy
import functools
import gc
import hashlib
import importlib
import os
import pickle
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numba

from fencepost.kernels.runtime.numba_internals import (
    CacheLocator,
    CompileResultCacheImpl,
    FunctionCache,
    dumps,
    llvm,
    types,
    unliteral,
)

Function = TypeVar("Function", bound=Callable[..., Any])

_NO_CODE = llvm.parse_assembly("").as_bitcode()

_PACKAGE = Path(__file__).parents[2]
_KERNEL_FOLDERS = ("kernels", "papers")
_VERSIONS = f"python{sys.version_info[0]}.{sys.version_info[1]}-numba{numba.__version__}"


# `from package import names`, in parentheses or not; nothing else imports in files of kernels.
_IMPORTS = re.compile(r"^ *from (fencepost[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


def kernel(function: Function) -> Function:
    """Compile `function` on its first call for each signature; release the GIL while it runs."""
    return _compiled(function, counted=True)


def no_refcount(function: Function) -> Function:
    """A `kernel` that makes no arrays, nor gets any from those it calls.

    Who uses the arrays that it is given is not counted. Else there is a call each time that a name
    is given to one, if only to find that nobody counts it, and that was half of some kernels' time.
    """
    return _compiled(function, counted=False)


def _compiled(function: Function, *, counted: bool) -> Function:
    dispatcher = numba.njit(nogil=True, error_model="numpy", _nrt=counted)(function)
    if not numba.config.DISABLE_JIT:
        dispatcher._cache = _KernelCache(function)
        dispatcher.get_call_template = functools.partial(_call_template, dispatcher)
        if not counted:
            dispatcher.add_overload = functools.partial(_add_without_refcount, dispatcher)
    return dispatcher  # type: ignore[no-any-return]


def _add_without_refcount(dispatcher: Any, result: Any) -> None:
    """Take up what was compiled or loaded, unless it would leave arrays that nobody frees."""
    known = result.fndesc.typemap
    for expression, signature in (result.fndesc.calltypes or {}).items():
        if getattr(expression, "op", None) != "call" or not _is_counted(signature.return_type):
            continue
        called = known[expression.func.name]
        if isinstance(called, types.Dispatcher):
            name = dispatcher.py_func.__qualname__
            raise TypeError(f"{name} is uncounted, and gets arrays from {called}: make it a kernel")
    type(dispatcher).add_overload(dispatcher, result)


def _is_counted(kind: Any) -> bool:
    if isinstance(kind, types.BaseTuple):
        return any(map(_is_counted, kind))
    return isinstance(kind, types.Array | types.StructRef | types.ListType)


def _call_template(dispatcher: Any, args: Any, kws: Any) -> Any:
    """What a kernel calls: compiled for any number, where it is called with a constant.

    Numba would compile it once more for each constant, and so all that it calls.
    """
    plain = {name: unliteral(kind) for name, kind in kws.items()}
    return type(dispatcher).get_call_template(dispatcher, [*map(unliteral, args)], plain)


def outlined(dispatcher: Function) -> Function:
    """Let those that call a kernel hold no copy of it: for what is large.

    A call costs a few nanoseconds more, and is never inlined.
    """
    if not numba.config.DISABLE_JIT:
        whole: Any = dispatcher
        whole.add_overload = functools.partial(_add_outlined, whole, whole.add_overload)
    return dispatcher


_SYMBOL = "fencepost."
_outlined: dict[str, tuple[str, str, Any]] = {}
"""By symbol: the module and name of a kernel, and the types of its arguments."""


def _add_outlined(dispatcher: Any, add: Callable[[Any], None], result: Any) -> None:
    """Take up what was compiled or loaded, and let kernels call it by its symbol."""
    add(result)
    module, name = dispatcher.py_func.__module__, dispatcher.py_func.__qualname__
    kinds = result.signature.args
    symbol = f"{_SYMBOL}{module}.{name}.{hashlib.sha256(repr(kinds).encode()).hexdigest()[:24]}"
    address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
    llvm.add_symbol(symbol, address)
    _outlined[symbol] = module, name, kinds
    described = copy.copy(result.fndesc)
    described.mangled_name = symbol
    context = dispatcher.targetctx
    context.remove_user_function(result.entry_point)
    context.insert_user_function(result.entry_point, described)


def _symbols_in(library: Any) -> list[tuple[str, str, Any]]:
    """The separate kernels that machine code calls."""
    names = (f.name for f in library._final_module.functions if f.is_declaration)
    return [_outlined[name] for name in names if name.startswith(_SYMBOL)]


def inlined(function: Function) -> Function:
    """Compile `function` into each kernel that calls it.

    For what a hot loop calls with whole `ShapeArrays`: as arguments of a real call they are a
    hundred machine words.
    """
    return numba.njit(nogil=True, error_model="numpy", inline="always")(function)  # type: ignore[no-any-return]


def entry(dispatcher: Any, *arguments: Any) -> Callable[..., Any]:
    """A kernel for arguments of the very types of these, which it does not look at: half a
    microsecond less a call.
    """
    if numba.config.DISABLE_JIT:
        return dispatcher  # type: ignore[no-any-return]
    kinds = tuple(map(numba.typeof, arguments))
    dispatcher.compile(kinds)
    return dispatcher.overloads[kinds].entry_point  # type: ignore[no-any-return]


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Let Python look for garbage less often: a tenth of the time that compiling takes."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@functools.cache
def source_hash(path: Path) -> str:
    """A short name for the present state of a file's source and of all that it imports."""
    digest = hashlib.sha256()
    for file in sorted(_imported_files(path)):
        digest.update(_hash_of(file))
    return digest.hexdigest()[:16]


@functools.cache
def _hash_of(path: Path) -> bytes:
    named = os.path.relpath(path, _PACKAGE).encode()
    return hashlib.sha256(named + b"\0" + path.read_bytes()).digest()


def _imported_files(path: Path) -> set[Path]:
    """A file and, of those that may hold kernels, each that it imports, however indirectly."""
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


@functools.cache
def cache_folder() -> Path:
    """Where compiled kernels are kept: below FENCEPOST_CACHE_DIR, else the user's cache folder."""
    chosen = os.environ.get("FENCEPOST_CACHE_DIR")
    candidates = [Path(chosen)] if chosen else [_user_cache() / "fencepost"]
    candidates.append(Path(tempfile.gettempdir()) / f"fencepost-{os.getuid()}")
    for base in candidates:
        folder = base / f"kernels-{_VERSIONS}"
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


class _KernelLocator(CacheLocator):  # type: ignore[misc]
    def __init__(self, function: Callable[..., Any]) -> None:
        self._line = function.__code__.co_firstlineno
        self._py_file = function.__code__.co_filename

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return source_hash(Path(self._py_file))

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> _KernelLocator:
        return cls(py_func)


class _KernelCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_KernelLocator,)

    def reduce(self, result: Any) -> Any:
        module = result.library._get_module_for_linking()
        parts = (*module.functions, *module.global_variables)
        defined = [part.name for part in parts if not part.is_declaration]
        return _symbols_in(result.library), defined, super().reduce(result)

    def rebuild(self, context: Any, payload: Any) -> Any:
        """Load machine code; the code that it was made of is read only if somebody compiles it in.

        Reading that takes longer than all else.
        """
        called, defined, ((library, kind, (machine_code, code)), *others) = payload
        for module, name, kinds in called:
            getattr(importlib.import_module(module), name).compile(kinds)
        context.codegen()._engine._defined_symbols.update(defined)
        result = super().rebuild(context, ((library, kind, (machine_code, _NO_CODE)), *others))
        result.library._get_module_for_linking = functools.cache(
            functools.partial(llvm.parse_bitcode, code)
        )
        return result


class _SignatureFiles:
    """One file a signature. No lock is needed: a file appears whole or not at all."""

    def __init__(self, base: str, source: str) -> None:
        self._base = base
        self._source = source

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
        whole = repr((self._source, key, _fields_in(key)))
        digest = hashlib.sha256(whole.encode()).hexdigest()[:24]
        return cache_folder() / f"{self._base}.{digest}.nbc"


def _fields_in(key: Any) -> list[tuple[str, ...]]:
    """The names of the fields of all named tuples in a signature: Numba's key lacks their order."""
    if isinstance(key, types.NamedTuple | types.NamedUniTuple):
        inner = key.types if isinstance(key, types.NamedTuple) else (key.dtype,)
        return [tuple(key.fields), *(names for kind in inner for names in _fields_in(kind))]
    if isinstance(key, types.StructRef):
        return [names for _, kind in key._fields for names in _fields_in(kind)]
    if isinstance(key, tuple | list | types.BaseTuple):
        return [names for kind in key for names in _fields_in(kind)]
    if isinstance(key, types.ListType):
        return _fields_in(key.dtype)
    return []


class _KernelCache(FunctionCache):  # type: ignore[misc]
    _impl_class = _KernelCacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        module = function.__module__.removeprefix("fencepost.")
        self._cache_file = _SignatureFiles(
            f"{module}.{function.__qualname__}", self._impl.locator.get_source_stamp()
        )
