"""The `kernel` decorator: compile with Numba, keep the machine code on disk.

Numba's own file cache looks at the file of a function but not at the files of the functions it
calls, so an edit in one kernel can leave stale code in another. Here the key of a kernel's machine
code contains a hash of its source file and of every file that the source file imports, directly or
indirectly. An edit therefore recompiles exactly the kernels that depend on it. Each compiled
signature is stored in its own file, named after its key, so processes that compile concurrently
share no index that could become inconsistent.

Numba compiles a kernel together with all kernels that it calls, and so once more into each of its
callers. Large kernels are therefore `outlined`: compiled once, and called by a symbol that is bound
to their address before the caller's machine code runs.

No global setting of Numba is changed, so other users of Numba in the process are unaffected.
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

_NO_BITCODE = llvm.parse_assembly("").as_bitcode()

_PACKAGE = Path(__file__).parents[2]
_KERNEL_FOLDERS = ("kernels", "papers")
_VERSIONS = f"python{sys.version_info[0]}.{sys.version_info[1]}-numba{numba.__version__}"


# `from package import names`, in parentheses or not: the only form of import in kernel files.
_IMPORTS = re.compile(r"^ *from (fencepost[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)


def kernel(function: Function) -> Function:
    """Compile `function` on its first call for each signature; release the GIL while it runs."""
    return _compiled(function, refcount=True)


def no_refcount(function: Function) -> Function:
    """Compile `function` as a `kernel` without reference counting.

    The kernel must not create arrays, nor receive any from the kernels that it calls. Numba calls a
    function for each assignment of an array to a name, even if the array has no reference count;
    these calls took half of the time of some kernels.
    """
    return _compiled(function, refcount=False)


def _compiled(function: Function, *, refcount: bool) -> Function:
    dispatcher = numba.njit(nogil=True, error_model="numpy", _nrt=refcount)(function)
    if not numba.config.DISABLE_JIT:
        dispatcher._cache = _KernelCache(function)
        dispatcher.get_call_template = functools.partial(_call_template, dispatcher)
        if not refcount:
            dispatcher.add_overload = functools.partial(_add_without_refcount, dispatcher)
    return dispatcher  # type: ignore[no-any-return]


def _add_without_refcount(dispatcher: Any, result: Any) -> None:
    """Add a compiled or loaded overload. Raise TypeError if it would leak arrays."""
    typemap = result.fndesc.typemap
    for expression, signature in (result.fndesc.calltypes or {}).items():
        if getattr(expression, "op", None) != "call" or not _has_refcount(signature.return_type):
            continue
        callee = typemap[expression.func.name]
        if isinstance(callee, types.Dispatcher):
            name = dispatcher.py_func.__qualname__
            raise TypeError(f"{name} is no_refcount, but gets arrays from {callee}: use @kernel")
    type(dispatcher).add_overload(dispatcher, result)


def _has_refcount(type: Any) -> bool:
    if isinstance(type, types.BaseTuple):
        return any(map(_has_refcount, type))
    return isinstance(type, types.Array | types.StructRef | types.ListType)


def _call_template(dispatcher: Any, args: Any, kws: Any) -> Any:
    """Return the call template for the types of arguments, constants taken as plain numbers.

    Numba would otherwise compile the kernel, and all kernels that it calls, once for each constant.
    """
    keywords = {name: unliteral(kind) for name, kind in kws.items()}
    return type(dispatcher).get_call_template(dispatcher, [*map(unliteral, args)], keywords)


def outlined(dispatcher: Function) -> Function:
    """Keep a kernel out of the machine code of its callers: for large kernels.

    A call costs a few nanoseconds more, and is never inlined.
    """
    if not numba.config.DISABLE_JIT:
        untyped: Any = dispatcher
        untyped.add_overload = functools.partial(_add_outlined, untyped, untyped.add_overload)
    return dispatcher


_SYMBOL = "fencepost."
_outlined: dict[str, tuple[str, str, Any]] = {}
"""From symbol to the module and name of the kernel, and the types of its arguments."""


def _add_outlined(dispatcher: Any, add: Callable[[Any], None], result: Any) -> None:
    """Add a compiled or loaded overload, and let other kernels call it by its symbol."""
    add(result)
    module, name = dispatcher.py_func.__module__, dispatcher.py_func.__qualname__
    argument_types = result.signature.args
    digest = hashlib.sha256(repr(argument_types).encode()).hexdigest()[:24]
    symbol = f"{_SYMBOL}{module}.{name}.{digest}"
    address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
    llvm.add_symbol(symbol, address)
    _outlined[symbol] = module, name, argument_types
    descriptor = copy.copy(result.fndesc)
    descriptor.mangled_name = symbol
    context = dispatcher.targetctx
    context.remove_user_function(result.entry_point)
    context.insert_user_function(result.entry_point, descriptor)


def _outlined_calls(library: Any) -> list[tuple[str, str, Any]]:
    """Return the outlined kernels that machine code calls."""
    names = (f.name for f in library._final_module.functions if f.is_declaration)
    return [_outlined[name] for name in names if name.startswith(_SYMBOL)]


def inlined(function: Function) -> Function:
    """Compile `function` into each kernel that calls it.

    For functions that a hot loop calls with whole `ShapeArrays`: as arguments of a real call these
    are a hundred machine words.
    """
    return numba.njit(nogil=True, error_model="numpy", inline="always")(function)  # type: ignore[no-any-return]


def entry(dispatcher: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a kernel's entry point for arguments of exactly these types.

    It does not check the types of its arguments, which saves half a microsecond a call.
    """
    if numba.config.DISABLE_JIT:
        return dispatcher  # type: ignore[no-any-return]
    argument_types = tuple(map(numba.typeof, arguments))
    dispatcher.compile(argument_types)
    return dispatcher.overloads[argument_types].entry_point  # type: ignore[no-any-return]


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Run Python's garbage collector less often, which saves a tenth of the time of compilation."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


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


@functools.cache
def cache_folder() -> Path:
    """Return the folder of machine code: below FENCEPOST_CACHE_DIR or the user's cache folder."""
    configured = os.environ.get("FENCEPOST_CACHE_DIR")
    candidates = [Path(configured)] if configured else [_user_cache() / "fencepost"]
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
        return _outlined_calls(result.library), defined, super().reduce(result)

    def rebuild(self, context: Any, payload: Any) -> Any:
        """Load machine code. Its bitcode is parsed only if another kernel links it.

        Parsing the bitcode takes longer than all other steps together.
        """
        calls, defined, ((library, kind, (machine_code, bitcode)), *rest) = payload
        for module, name, argument_types in calls:
            getattr(importlib.import_module(module), name).compile(argument_types)
        context.codegen()._engine._defined_symbols.update(defined)
        result = super().rebuild(context, ((library, kind, (machine_code, _NO_BITCODE)), *rest))
        result.library._get_module_for_linking = functools.cache(
            functools.partial(llvm.parse_bitcode, bitcode)
        )
        return result


class _SignatureFiles:
    """A file for each signature. No lock is needed, as a file is renamed when it is complete."""

    def __init__(self, base: str, source: str) -> None:
        self._base = base
        self._source = source

    def flush(self) -> None:
        for path in cache_folder().glob(f"{self._base}.*.nbc"):
            path.unlink(missing_ok=True)

    def save(self, key: object, data: object) -> None:
        path = self._path(key)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(descriptor, "wb") as file:
            file.write(dumps(data))
        os.replace(temporary, path)

    def load(self, key: object) -> Any:
        try:
            return pickle.loads(self._path(key).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def _path(self, key: object) -> Path:
        identity = repr((self._source, key, _fields_in(key)))
        digest = hashlib.sha256(identity.encode()).hexdigest()[:24]
        return cache_folder() / f"{self._base}.{digest}.nbc"


def _fields_in(key: Any) -> list[tuple[str, ...]]:
    """Return the field names of all named tuples in a signature: Numba's key lacks their order."""
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
