"""What is said while kernels compile, and how an interruption ends it.

Compilation can take half a minute, so the first kernel that must be compiled is announced by a
warning of the logger "fencepost", which Python prints to standard error unless the program handles
it. On a terminal a line then shows which kernel is compiled; a notebook shows it below the cell.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fencepost.kernels.runtime.code_folders import LOGGER, VERSIONS, other_versions_shipped

_ANNOUNCEMENT = (
    "Compiling kernels for this processor, once: about half a minute before the first match, two"
    ' minutes for all of them. "fencepost warmup" compiles them ahead of time.'
)
_INTERRUPTED = "while kernels were compiled; those that were finished are kept"
_ERASE_LINE = "\r\x1b[K"


@dataclass
class _Session:
    depth: int = 0
    started: float = 0.0
    announces: bool = True
    announced: bool = False
    compiled: list[str] = field(default_factory=list)
    display: Any = None


_session = _Session()


@contextmanager
def compiling(name: str) -> Iterator[None]:
    """Say that a kernel is compiled while the body compiles it."""
    with _outermost():
        _show(name)
        yield
        _session.compiled.append(name)


def compiled_kernels() -> list[str]:
    """Return the names of the kernels that this process compiled, in that order."""
    return list(_session.compiled)


def announce_nothing() -> None:
    """Compile without saying so from now on: the caller says it."""
    _session.announces = False


@contextmanager
def _outermost() -> Iterator[None]:
    """Begin and end the compilation that all others in the body are part of."""
    if _session.depth:
        _session.depth += 1
        try:
            yield
        finally:
            _session.depth -= 1
        return
    _session.depth, _session.started = 1, time.monotonic()
    threshold = gc.get_threshold()
    gc.set_threshold(200_000, 20, 20)  # collections took a tenth of the time
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_INTERRUPTED) from None
    finally:
        gc.set_threshold(*threshold)
        _session.depth = 0
        _clear()


def _show(name: str) -> None:
    """Announce the first kernel that is compiled, and show the name of each to people."""
    if not _session.announces:
        return
    if not _session.announced:
        _session.announced = True
        LOGGER.warning("%s%s", _ANNOUNCEMENT, _why_not_shipped())
    text = f"Compiling kernel {len(_session.compiled) + 1}: {name}"
    if _notebook():
        if _session.display is None:
            _session.display = _notebook().display({"text/plain": text}, raw=True, display_id=True)
        else:
            _session.display.update({"text/plain": text}, raw=True)
    elif sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"{_ERASE_LINE}{text[:78]}")
        sys.stderr.flush()


def _why_not_shipped() -> str:
    """Return which versions the code in the package is for, if these are others."""
    shipped = other_versions_shipped()
    if not shipped:
        return ""
    names = " and ".join(shipped)
    return f" (The installed package has compiled kernels for {names}; this is {VERSIONS}.)"


def _clear() -> None:
    """Remove what shows the kernel that is compiled."""
    if not _session.announces:
        return
    if _session.display is not None:
        count = len(_session.compiled)
        _session.display.update({"text/plain": f"Compiled {count} kernels"}, raw=True)
    elif sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(_ERASE_LINE)
        sys.stderr.flush()


def _notebook() -> Any:
    """Return IPython's module of displays if this process is the kernel of a notebook."""
    if "ipykernel" not in sys.modules:
        return None
    return sys.modules.get("IPython.display")
