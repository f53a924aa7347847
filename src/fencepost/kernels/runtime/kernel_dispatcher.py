"""Kernels: functions that are compiled, or loaded from disk, in the form in which they are needed.

Numba compiles a kernel together with all kernels that it calls, and again into each of its callers.
`KernelDispatcher` compiles a kernel in three forms instead (`code_files.Form`): machine code with a
door for Python, if Python calls it; bitcode, if other kernels call it, which LLVM optimises once
only, in those; and machine code without such a door, if other kernels call it late.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

from fencepost.kernels.runtime import compile_session
from fencepost.kernels.runtime.code_cache import KernelCache
from fencepost.kernels.runtime.code_files import CodeFile, Form, Header
from fencepost.kernels.runtime.late_calls import late_call, slot_of, slots_in
from fencepost.kernels.runtime.numba_internals import (
    CPUDispatcher,
    Environment,
    Flags,
    JITCodeLibrary,
    PythonFunctionDescriptor,
    as_dtype,
    compile_extra,
    from_dtype,
    global_compiler_lock,
    llvm,
    lookup_environment,
    sigutils,
    types,
    typing,
    unliteral,
)
from fencepost.kernels.runtime.type_text import TypeTable, types_of

_ENVIRONMENT_PREFIX = "_ZN08NumbaEnv"


class _BitcodeLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code that is linked into the kernels that call it, and never runs by itself."""

    def finalize(self) -> None:
        """Link in the kernels that this one calls. Optimisation is left to the callers."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._final_module.verify()
        self._finalized = True


@dataclasses.dataclass(frozen=True, eq=False)
class CompiledKernel:
    """One form of a kernel, for arguments of certain types, with the names that Numba reads."""

    signature: Any
    fndesc: Any
    library: Any
    entry_point: Any = None
    objectmode: bool = False


class KernelDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A kernel, as Python and other kernels call it.

    Parameters
    ----------
    function : without variables of an enclosing function
    refcount : whether arrays are counted; see `compilation.no_refcount`
    """

    def __init__(self, function: Callable[..., Any], *, refcount: bool) -> None:
        if function.__closure__:
            raise TypeError(f"{function.__qualname__} uses variables of an enclosing function")
        options = {"nopython": True, "nogil": True, "error_model": "numpy", "_nrt": refcount}
        super().__init__(function, targetoptions=options)
        self._refcount = refcount
        self._files = KernelCache(function)
        self._linkable: dict[tuple[Any, ...], CompiledKernel] = {}
        self._late: dict[tuple[Any, ...], CompiledKernel] = {}
        self._late_keys: dict[tuple[Any, ...], tuple[Any, Any]] = {}
        self.returns: Any = None
        """What the kernel returns if it is called late; None if it is linked into its callers."""

    def __reduce__(self) -> str:
        """Pickle the kernel by its name."""
        return self.py_func.__qualname__  # type: ignore[no-any-return]

    @property
    def has_machine_code(self) -> bool:
        """Whether this process can run the kernel for some types of arguments."""
        return bool(self.overloads or self._late)

    def compile(self, sig: Any) -> Any:
        """Return the entry point from Python for types of arguments, compiled if necessary."""
        arguments, _ = sigutils.normalize_signature(sig)
        arguments = tuple(arguments)
        with global_compiler_lock:
            if arguments not in self.overloads:
                self.add_overload(self._loaded_or_compiled(arguments, Form.CALLABLE))
            return self.overloads[arguments].entry_point

    def late_address(self, arguments: tuple[Any, ...]) -> int:
        """Return the address of the machine code that other kernels call."""
        with global_compiler_lock:
            kernel = self.overloads.get(arguments) or self._late.get(arguments)
            if kernel is None:
                kernel = self._late[arguments] = self._loaded_or_compiled(arguments, Form.LATE)
            library, name = kernel.library, kernel.fndesc.llvm_func_name
            return library.get_pointer_to_function(name)  # type: ignore[no-any-return]

    # ------------------------------------------------------------------- calls by other kernels

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how Numba types a call: for exactly these arguments.

        Constants are taken as plain numbers. Numba would otherwise compile the kernel, and all
        kernels that it calls, once for each constant.
        """
        keywords = {name: unliteral(kind) for name, kind in kws.items()}
        pysig, arguments = self.fold_argument_types([*map(unliteral, args)], keywords)
        arguments = tuple(arguments)
        name = self.py_func.__name__
        signature, _ = self._called(arguments)
        template = typing.make_concrete_template(f"{name} as called", name, [signature])
        return template, pysig, arguments, {}

    def get_overload(self, sig: Any) -> Any:
        """Return the key with which Numba finds the code generator of a call."""
        arguments, _ = sigutils.normalize_signature(sig)
        _, key = self._called(tuple(arguments))
        return key

    def _called(self, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the signature of a call, and the key of its code generator."""
        with global_compiler_lock:
            if self.returns is not None:
                return self._called_late(arguments)
            if arguments not in self._linkable:
                kernel = self._loaded_or_compiled(arguments, Form.LINKABLE)
                self.targetctx.insert_user_function(kernel, kernel.fndesc, [kernel.library])
                self._linkable[arguments] = kernel
            kernel = self._linkable[arguments]
            return kernel.signature, kernel

    def _called_late(self, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
        if arguments not in self._late_keys:
            function = self.py_func
            slot = slot_of(function.__module__, function.__qualname__, arguments, self)
            generate = late_call(slot, self.returns)
            self.targetctx._defns[slot.symbol].append(generate, generate.signature)
            signature = typing.signature(self.returns, *arguments)
            self._late_keys[arguments] = signature, slot.symbol
        return self._late_keys[arguments]

    # --------------------------------------------------------------------- loading and compiling

    def _loaded_or_compiled(self, arguments: tuple[Any, ...], form: Form) -> CompiledKernel:
        content = self._files.load(arguments, form)
        if content is None:
            with self._files.lock(arguments, form):
                content = self._files.load(arguments, form)  # another process may have kept it
                if content is None:
                    return self._compiled(arguments, form)
        return self._from_file(content, arguments, form)

    def _compiled(self, arguments: tuple[Any, ...], form: Form) -> CompiledKernel:
        function = self.py_func
        with compile_session.compiling(f"{function.__module__}.{function.__qualname__}"):
            with self._compiling_counter:
                kernel = self._compile(arguments, form)
            library = kernel.library
            if form is not Form.LINKABLE:
                library._ensure_finalized()
            environments = _environments_in(library._final_module)
            self._files.save(arguments, form, _file_of(kernel, form, environments))
            return self._runnable(kernel, form, environments)

    def _compile(self, arguments: tuple[Any, ...], form: Form) -> CompiledKernel:
        flags = Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = flags.no_cfunc_wrapper = True
        flags.no_cpython_wrapper = form is not Form.CALLABLE
        codegen, name = self.targetctx.codegen(), self.py_func.__qualname__
        if form is Form.LINKABLE:
            library = _BitcodeLibrary(codegen, name)
        else:
            library = codegen.create_library(name)
        library.enable_object_caching()
        result = compile_extra(
            self.typingctx, self.targetctx, self.py_func, arguments, None, flags, {}, library
        )
        if not self._refcount:
            self._check_without_refcount(result.fndesc)
        returned = result.signature.return_type
        if self.returns is not None and returned != self.returns:
            raise TypeError(f"{name} returns {returned}, but is declared to return {self.returns}")
        signature = typing.signature(unliteral(returned), *arguments)
        return CompiledKernel(signature, result.fndesc, library)

    def _check_without_refcount(self, descriptor: Any) -> None:
        """Raise TypeError if the kernel would leak arrays."""
        for expression, signature in (descriptor.calltypes or {}).items():
            is_call = getattr(expression, "op", None) == "call"
            if not is_call or not _has_refcount(signature.return_type):
                continue
            callee = descriptor.typemap[expression.func.name]
            if isinstance(callee, types.Dispatcher):
                name = self.py_func.__qualname__
                raise TypeError(
                    f"{name} is no_refcount, but gets arrays from {callee}: use @kernel"
                )

    def _from_file(
        self, content: CodeFile, arguments: tuple[Any, ...], form: Form
    ) -> CompiledKernel:
        self.targetctx.refresh()  # prepares Numba's memory management
        header = content.header
        table = types_of(header.types)
        for module, name, argument_types in header.late_calls:
            slot_of(module, name, tuple(table[k] for k in argument_types))
        descriptor = PythonFunctionDescriptor(
            native=True,
            modname=header.module,
            qualname=header.name,
            unique_name=header.name,
            doc="",
            typemap=None,
            restype=table[header.returns],
            calltypes=None,
            args=tuple(header.parameters),
            kws=(),
            mangler=lambda *_, **__: header.mangled_name,
            argtypes=arguments,
            env_name=header.environment,
        )
        codegen = self.targetctx.codegen()
        if form is Form.LINKABLE:
            library = _BitcodeLibrary(codegen, header.name)
            library._final_module = llvm.parse_bitcode(content.bitcode)
            library._finalized = True
        else:
            library = codegen.create_library(header.name)
            library.enable_object_caching()
            library._set_compiled_object(content.machine_code)
            library._finalize_final_module()
            symbols = {descriptor.llvm_func_name, descriptor.llvm_cpython_wrapper_name}
            codegen._engine._defined_symbols.update(symbols)
        signature = typing.signature(table[header.returns], *arguments)
        kernel = CompiledKernel(signature, descriptor, library)
        environments = [
            _environment(module, name, [as_dtype(table[k]) for k in dtypes])
            for module, name, dtypes in header.environments
        ]
        return self._runnable(kernel, form, environments)

    def _runnable(
        self, kernel: CompiledKernel, form: Form, environments: list[Any]
    ) -> CompiledKernel:
        """Return the kernel with all that its machine code needs to run."""
        if form is Form.LINKABLE:
            return kernel
        codegen = self.targetctx.codegen()
        for environment in environments:
            codegen.set_env(environment.env_name, environment)
        if form is Form.LATE:
            return kernel
        descriptor = kernel.fndesc
        environment = _environment(descriptor.modname, descriptor.env_name, [])
        entry_point = self.targetctx.get_executable(kernel.library, descriptor, environment)
        return dataclasses.replace(kernel, entry_point=entry_point)


def _file_of(kernel: CompiledKernel, form: Form, environments: list[Any]) -> CodeFile:
    table = TypeTable()
    library, descriptor = kernel.library, kernel.fndesc
    if form is Form.LINKABLE:
        code, module = b"", library._get_module_for_linking()
        bitcode = module.as_bitcode()
    else:
        code, module, bitcode = library._get_compiled_object(), library._final_module, b""
    header = Header(
        module=descriptor.modname,
        name=descriptor.qualname,
        mangled_name=descriptor.mangled_name,
        parameters=list(descriptor.args),
        types=table.entries,
        arguments=table.add_all(kernel.signature.args),
        returns=table.add(kernel.signature.return_type),
        late_calls=[
            [slot.module, slot.name, table.add_all(slot.argument_types)]
            for slot in slots_in(module)
        ],
        environments=[
            [each.globals["__name__"], each.env_name, table.add_all(map(from_dtype, each.consts))]
            for each in environments
        ],
        environment=descriptor.env_name,
    )
    return CodeFile(header, code, bitcode)


def _environments_in(module: Any) -> list[Any]:
    """Return Numba's environments, with the dtypes of results, that LLVM code refers to."""
    found = []
    for variable in module.global_variables:
        if variable.name.startswith(_ENVIRONMENT_PREFIX):
            environment = lookup_environment(variable.name)
            # Functions that Numba makes have no module, and need no environment.
            if environment is not None and "__name__" in environment.globals:
                found.append(environment)
    return found


def _environment(module: str, name: str, dtypes: list[Any]) -> Any:
    """Return the environment of this process with a name."""
    found = lookup_environment(name)
    if found is None:
        found = Environment(importlib.import_module(module).__dict__)
        found.env_name = name
        found.consts[:] = dtypes
        Environment._memo[name] = found
    return found


def _has_refcount(type: Any) -> bool:
    if isinstance(type, types.BaseTuple):
        return any(map(_has_refcount, type))
    return isinstance(type, types.Array | types.StructRef | types.ListType)
