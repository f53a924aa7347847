"""Outlined kernels: compiled when they are first called, once, and by themselves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.runtime.own_process import (
    ALL,
    NONE,
    REPORT,
    code_files,
    environment,
    lines_of,
    run,
)

_CATCH = """
import numpy as np
import own_kernels as own
for _ in range(2):
    try:
        print("not refused:", own.choose(np.arange(4), True))
    except TypeError as error:
        print(error)
print(own.choose(np.arange(4), False))
"""

_IN_THREADS = """
import threading
import numpy as np
import own_kernels as own
from fencepost.kernels.runtime.compile_session import compiled_kernels
own.choose(np.arange(4), False)  # compiles all but `never_right`
answers = []
def call():
    for _ in range(100):
        try:
            own.choose(np.arange(4), True)
        except TypeError as error:
            answers.append("float64" in str(error))
threads = [threading.Thread(target=call) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(answers), all(answers))
"""

_INTERRUPTED = """
import numpy as np
import own_kernels as own
from fencepost.kernels.runtime.kernel_dispatcher import KernelDispatcher
address = KernelDispatcher.late_address
def interrupted(kernel, arguments):
    raise KeyboardInterrupt("now")
KernelDispatcher.late_address = interrupted
try:
    own.choose(np.arange(4), False)
except KeyboardInterrupt as error:
    print("interrupted", error)
KernelDispatcher.late_address = address
print(own.choose(np.arange(4), False))
"""


def test_a_kernel_is_compiled_when_it_is_called_and_kept(tmp_path: Path) -> None:
    assert lines_of(run(tmp_path, REPORT)) == ALL
    assert lines_of(run(tmp_path, REPORT)) == NONE
    names = [path.name.split(".")[1] for path in code_files(tmp_path / "cache")]
    assert names == ["choose", "total", "twice"]


def test_a_missing_file_is_compiled_alone(tmp_path: Path) -> None:
    lines_of(run(tmp_path, REPORT))
    [file] = (path for path in code_files(tmp_path) if ".total." in path.name)
    file.unlink()
    assert lines_of(run(tmp_path, REPORT)) == ["12.0", "compiled: total", "loaded: 1"]


def test_a_caller_has_no_copy(tmp_path: Path) -> None:
    lines_of(run(tmp_path, REPORT))
    [caller] = (path for path in code_files(tmp_path) if ".choose." in path.name)
    machine_code = caller.read_bytes()
    assert b"fencepost.late.own_kernels.total" in machine_code
    assert b"_ZN11own_kernels5total" not in machine_code


def test_an_error_while_a_kernel_compiles_reaches_the_caller(tmp_path: Path) -> None:
    """Also the second time: the caller asks for the kernel again."""
    *errors, answer = lines_of(run(tmp_path, _CATCH))
    declared = "never_right returns array(int64, 1d, C), but is declared to return float64"
    assert errors == [declared, declared]
    assert answer == "12.0"


def test_errors_in_threads_reach_their_callers(tmp_path: Path) -> None:
    assert lines_of(run(tmp_path, _IN_THREADS)) == ["400 True"]


def test_an_interrupted_call_can_be_repeated(tmp_path: Path) -> None:
    assert lines_of(run(tmp_path, _INTERRUPTED)) == ["interrupted now", "12.0"]


def test_two_processes_at_once_compile_each_kernel_once(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", REPORT],
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert [lines[0] for lines in outputs] == ["12.0", "12.0"]
    compiled = [name for lines in outputs for name in lines[1].split()[1:]]
    assert sorted(compiled) == ["choose", "total", "twice"]


def test_uncompiled_kernels_are_plain_functions(tmp_path: Path) -> None:
    program = "import numpy as np, own_kernels as own; print(own.choose(np.arange(4), False))"
    assert lines_of(run(tmp_path, program, {"NUMBA_DISABLE_JIT": "1"})) == ["12.0"]


def test_a_kernel_that_uses_variables_of_a_function_is_refused() -> None:
    from fencepost.kernels import kernel

    factor = 2
    with pytest.raises(TypeError, match="uses variables of an enclosing function"):
        kernel(lambda value: value * factor)
