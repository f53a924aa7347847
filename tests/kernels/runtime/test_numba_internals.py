"""What of Numba's inside is used is there, and where it is not, somebody is told."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from fencepost.kernels import cache_folder, kernel, struct_ref
from fencepost.kernels.runtime import numba_internals
from fencepost.kernels.runtime.compilation import no_refcount

ROOT = Path(__file__).parents[3]


@no_refcount
def first_of(array: Any) -> Any:
    return array[0]


@pytest.fixture(scope="module")
def compiled() -> Any:
    """A kernel that was compiled here, for an array."""
    first_of(np.ones(1))
    return first_of


def result_of(dispatcher: Any) -> Any:
    [result] = dispatcher.overloads.values()
    return result


# By object: the attributes that modules of `kernels.runtime` read, call or replace.
READ = [
    (
        "dispatcher",
        lambda kernel: kernel,
        [
            "_compiling_counter", "add_overload", "fold_argument_types", "overloads", "py_func",
            "targetctx", "targetdescr", "targetoptions", "typingctx",
        ],
    ),
    (
        "function descriptor",
        lambda kernel: result_of(kernel).fndesc,
        [
            "args", "env_name", "llvm_cpython_wrapper_name", "llvm_func_name", "mangled_name",
            "modname", "qualname", "calltypes", "typemap",
        ],
    ),
    (
        "code library",
        lambda kernel: result_of(kernel).library,
        [
            "_ensure_finalized", "_finalize_final_module", "_final_module", "_finalized",
            "_get_compiled_object", "_get_module_for_linking", "_linking_libraries",
            "_raise_if_finalized", "_set_compiled_object", "enable_object_caching",
            "get_pointer_to_function",
        ],
    ),
    (
        "target context",
        lambda kernel: kernel.targetctx,
        ["_defns", "call_conv", "codegen", "get_executable", "get_python_api",
         "insert_user_function", "refresh"],
    ),
    (
        "call conventions",
        lambda kernel: kernel.targetctx.call_conv,
        ["call_function", "get_function_type", "return_status_propagate"],
    ),
    (
        "code generator",
        lambda kernel: kernel.targetctx.codegen(),
        ["_engine", "create_library", "set_env"],
    ),
    ("engine", lambda kernel: kernel.targetctx.codegen()._engine, ["_defined_symbols"]),
    ("environments", lambda kernel: numba_internals.Environment, ["_memo"]),
    (
        "flags",
        lambda kernel: numba_internals.Flags(),
        ["no_compile", "no_cfunc_wrapper", "no_cpython_wrapper"],
    ),
]  # fmt: skip


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@pytest.mark.parametrize(("named", "find", "attributes"), READ, ids=[own[0] for own in READ])
def test_attributes_that_are_read_exist(
    compiled: Any, named: str, find: Any, attributes: list[str]
) -> None:
    missing = [name for name in attributes if not hasattr(find(compiled), name)]
    assert not missing, f"Numba {numba.__version__}: the {named} has no longer {missing}"


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_handle_is_where_compiled_code_looks_for_it() -> None:
    """The third field of what Numba keeps about memory has its address."""
    read: Any = kernel(lambda held: held.arrays[0])
    assert read(struct_ref((np.full(1, 7.0),)))[0] == 7.0


def test_the_versions_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"numba{numba_internals.TESTED}" in project["dependencies"]
    low, high = map(numba_internals.version_of, re.findall(r"[\d.]+", numba_internals.TESTED))
    assert low <= numba_internals.version_of(importlib.metadata.version("numba")) < high


def import_with(change: str) -> subprocess.CompletedProcess[str]:
    """A process that changes Numba before Fencepost is imported."""
    program = (
        f"import numba, numba.core.imputils\n{change}\nimport fencepost.kernels.runtime.compilation"
    )
    command = [sys.executable, "-W", "always", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_missing_name_is_an_error_that_says_which_and_what_to_install() -> None:
    done = import_with("del numba.core.imputils.impl_ret_borrowed")
    assert done.returncode != 0
    assert "impl_ret_borrowed" in done.stderr
    assert f'pip install "numba{numba_internals.TESTED}"' in done.stderr


@pytest.mark.parametrize("version", ["0.60.0", "0.69.0rc1", "1.0"])
def test_an_untested_version_is_a_warning_that_names_the_range(version: str) -> None:
    done = import_with(f"numba.__version__ = {version!r}")
    assert done.returncode == 0, done.stderr
    assert "RuntimeWarning" in done.stderr
    assert f"this is Numba {version}" in done.stderr
    assert f"numba{numba_internals.TESTED}" in done.stderr


def test_a_tested_version_is_no_warning() -> None:
    done = import_with("numba.__version__ = '0.61.2'")
    assert done.returncode == 0
    assert done.stderr == ""


def test_machine_code_of_versions_lies_apart() -> None:
    assert f"numba{numba.__version__}" in cache_folder().name
