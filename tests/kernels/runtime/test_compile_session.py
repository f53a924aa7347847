"""What is said while kernels compile: in programs, on terminals and in notebooks."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from tests.kernels.runtime.own_process import REPORT, environment, lines_of, run

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")

LOGGED = """
import logging
records = []
logging.getLogger("fencepost").addHandler(type("Keep", (logging.Handler,), {
    "emit": lambda self, record: records.append((record.levelname, record.getMessage()))
})())
"""
NOTEBOOK = """
import sys, types
shown = []
class Display:
    def __init__(self, data):
        shown.append(data["text/plain"])
    def update(self, data, raw):
        shown.append(data["text/plain"])
def display(data, raw, display_id):
    return Display(data)
sys.modules["ipykernel"] = types.ModuleType("ipykernel")
sys.modules["IPython.display"] = types.SimpleNamespace(display=display)
"""


def test_one_line_says_that_kernels_compile_and_what_to_do(tmp_path: Path) -> None:
    done = run(tmp_path, REPORT)
    lines_of(done)
    [line] = done.stderr.splitlines()
    assert line.startswith("Compiling kernels for this processor")
    assert '"fencepost warmup"' in line
    assert run(tmp_path, REPORT).stderr == ""


def test_a_program_hears_it_through_logging(tmp_path: Path) -> None:
    done = run(tmp_path, LOGGED + REPORT + "print(records)")
    assert "[('WARNING', 'Compiling kernels for this processor" in lines_of(done)[-1]
    assert done.stderr == ""


def test_a_terminal_shows_each_kernel_and_is_left_clean(tmp_path: Path) -> None:
    terminal, program_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", REPORT],
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=program_end,
    )
    os.close(program_end)
    shown = b""
    try:
        while part := os.read(terminal, 4096):
            shown += part
    except OSError:  # the process has closed its end
        pass
    os.close(terminal)
    assert process.wait() == 0
    assert b"Compiling kernel 1: own_kernels.choose" in shown
    assert b"own_kernels.total" in shown
    assert shown.endswith(b"\r\x1b[K")


def test_a_notebook_shows_each_kernel_in_one_place(tmp_path: Path) -> None:
    *_, shown = lines_of(run(tmp_path, NOTEBOOK + REPORT + "print(shown)"))
    assert "Compiling kernel 1: own_kernels.choose" in shown
    assert shown.endswith("'Compiled 3 kernels']")
