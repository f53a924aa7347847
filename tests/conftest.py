"""Hypothesis profiles, and the order of tests.

The profile `ci`, the default, always draws the same examples, so that the gate does not depend on
chance. HYPOTHESIS_PROFILE=explore draws many new examples. There is no deadline, because a first
call may compile a kernel.

With `--compile-kernels`, all kernels are compiled in the background while tests run. Tests that
start other processes begin when that is done: a server that compiles first would answer late.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = [HealthCheck.too_slow]

settings.register_profile(
    "ci",
    max_examples=60,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=_SLOW_IS_FINE,
)
settings.register_profile(
    "explore", max_examples=2000, deadline=None, suppress_health_check=_SLOW_IS_FINE
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run long tests first, so that processes finish at about the same time.

    Tests that must share a process come first, then other slow tests.
    """
    items.sort(
        key=lambda item: (
            item.get_closest_marker("xdist_group") is None,
            item.get_closest_marker("slow") is None,
        )
    )


# ------------------------------------------------------------------ kernels, compiled meanwhile

_START_PROCESSES = {
    "cli",
    "client",
    "delivery",
    "docs",
    "parity",
    "server",
    "spark",
    "test_warmup.py",
}
_LOCK = "FENCEPOST_TESTS_COMPILE_LOCK"  # its file is locked until the kernels are compiled
_compiling = pytest.StashKey[subprocess.Popen[bytes]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    help = "compile all kernels in the background while tests run"
    parser.addoption("--compile-kernels", action="store_true", help=help)


def pytest_sessionstart(session: pytest.Session) -> None:
    if not session.config.getoption("--compile-kernels") or hasattr(session.config, "workerinput"):
        return
    descriptor, path = tempfile.mkstemp(prefix="fencepost-tests-")
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.environ[_LOCK] = path
    command = [sys.executable, "-m", "fencepost.cli", "warmup"]
    session.config.stash[_compiling] = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[descriptor]
    )
    os.close(descriptor)


def pytest_unconfigure(config: pytest.Config) -> None:
    process = config.stash.get(_compiling, None)
    if process is not None:
        process.terminate()
        process.wait()
        Path(os.environ.pop(_LOCK)).unlink()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    path = os.environ.get(_LOCK)
    if path and item.path.relative_to(Path(__file__).parent).parts[0] in _START_PROCESSES:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # the background process holds it until it ends
