"""Machine code for other processors: never run where an instruction is missing."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from fencepost.kernels.runtime.processors import BASELINES, Processor
from tests.kernels.runtime.own_process import (
    ALL,
    NONE,
    REPORT,
    code_files,
    environment,
    lines_of,
    run,
)

pytestmark = [
    pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="masks features of x86-64"),
]

V3, GENERIC = BASELINES["x86_64"]
NATIVE_ONLY = (
    "from fencepost.kernels.runtime import processors; processors.use_native_code_only()\n"
)
QEMU = shutil.which("qemu-x86_64")


def folders_of(folder: Path) -> set[str]:
    """Return the names of the folders of processors that have code."""
    return {path.parent.name for path in code_files(folder)}


@pytest.mark.parametrize("processor", [V3, GENERIC], ids=lambda processor: processor.name)
def test_code_for_a_baseline_is_kept_by_its_name_and_used(
    tmp_path: Path, processor: Processor
) -> None:
    compiled = run(tmp_path, REPORT, processor.environment())
    assert lines_of(compiled) == ALL
    assert folders_of(tmp_path) == {processor.name}
    assert lines_of(run(tmp_path, REPORT)) == NONE


def test_code_for_the_very_processor_is_kept_apart_and_preferred(tmp_path: Path) -> None:
    lines_of(run(tmp_path, REPORT, V3.environment()))
    assert lines_of(run(tmp_path, NATIVE_ONLY + REPORT)) == ALL
    [native] = folders_of(tmp_path) - {V3.name}
    used = REPORT + "print({path.parent.name for path in loaded_files()})"
    assert lines_of(run(tmp_path, used)) == [*NONE, f"{{{native!r}}}"]


@pytest.mark.parametrize("missing", ["avx2", "fma", "bmi2"])
def test_code_is_not_loaded_where_a_feature_is_masked(tmp_path: Path, missing: str) -> None:
    lines_of(run(tmp_path, REPORT, V3.environment()))
    features = f"+{',+'.join(sorted(V3.features - {missing}))},-{missing}"
    masked = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": features}
    assert lines_of(run(tmp_path, REPORT, masked)) == ALL
    assert len(folders_of(tmp_path)) == 2


def test_code_for_few_features_has_no_others(tmp_path: Path) -> None:
    """Wide loops are where a compiler would use them; `ymm` are the registers of AVX."""
    program = """
import numpy as np
from fencepost.kernels.runtime.compilation import kernel
import own_kernels
own_kernels.total(np.arange(4))
from fencepost.kernels.runtime.numba_internals import llvm
[kernel] = own_kernels.total.overloads.values()
print("ymm" in kernel.library.get_asm_str())
"""
    assert lines_of(run(tmp_path, program, V3.environment())) == ["True"]
    assert lines_of(run(tmp_path, program, GENERIC.environment())) == ["False"]


@pytest.mark.slow
@pytest.mark.skipif(QEMU is None, reason="qemu-user is missing")
def test_a_processor_without_avx2_runs_generic_code(tmp_path: Path) -> None:
    """An emulated processor of 2012 stops at an instruction that it lacks."""
    for processor in (V3, GENERIC):
        lines_of(run(tmp_path, REPORT, processor.environment()))
    used = REPORT + "print({path.parent.name for path in loaded_files()})"
    assert QEMU is not None
    done = subprocess.run(
        [QEMU, "-cpu", "IvyBridge", sys.executable, "-c", used],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert lines_of(done) == [*NONE, f"{{{GENERIC.name!r}}}"]
