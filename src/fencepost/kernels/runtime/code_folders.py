"""The folders of machine code: where it is looked for, and where new code is kept.

Looked for in this order: the folder in the installed package, which a wheel brings along;
`FENCEPOST_CACHE_DIR`; the user's cache folder. Code that was compiled is kept in the first of the
last two that can be written to. A folder that cannot be written to is still read.

Machine code is executed, so a folder is used only if it belongs to the user or to root and nobody
else can write to it. A folder that is not used for this reason is named in a warning.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import stat
import sys
import tempfile
from pathlib import Path

import numba

LOGGER = logging.getLogger("fencepost")

VERSIONS = f"python{sys.version_info[0]}.{sys.version_info[1]}-numba{numba.__version__}"
"""The versions that machine code depends on: the name of a folder in each folder of code."""

SHIPPED_FOLDER = Path(__file__).parents[2] / "machine_code"
"""The folder of machine code in the installed package."""


@functools.cache
def readable_folders() -> tuple[Path, ...]:
    """Return the folders in which code is looked for, without those that are not trusted."""
    shipped = _trusted(SHIPPED_FOLDER)
    return tuple(dict.fromkeys([*shipped, *_trusted(*_cache_folders())]))


@functools.cache
def cache_folder() -> Path:
    """Return the preferred folder of compiled code, whether or not it exists."""
    return _cache_folders()[0] / VERSIONS


@functools.cache
def writable_folder() -> Path | None:
    """Return the folder in which compiled code is kept; None, with a warning, if there is none."""
    for base in _cache_folders():
        folder = base / VERSIONS
        try:
            base.parent.mkdir(parents=True, exist_ok=True)
            base.mkdir(mode=0o755, exist_ok=True)
            folder.mkdir(mode=0o755, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and not distrust(base) and not distrust(folder):
            readable_folders.cache_clear()  # the folder may be new
            return folder
    LOGGER.warning(
        "Compiled kernels are not kept: %s cannot be written to. Set FENCEPOST_CACHE_DIR to a"
        " folder of yours.",
        " and ".join(map(str, _cache_folders())),
    )
    return None


def other_versions_shipped() -> list[str]:
    """Return the versions that the installed package has code for, if this is none of them."""
    if not SHIPPED_FOLDER.is_dir():
        return []
    versions = sorted(path.name for path in SHIPPED_FOLDER.iterdir())
    return [] if VERSIONS in versions else versions


def distrust(folder: Path) -> str:
    """Return why code in a folder must not be run; an empty text if it may."""
    try:
        found = folder.stat()
    except OSError:
        return ""  # there is nothing in it
    if found.st_uid not in {0, os.getuid()}:
        return f"belongs to user {found.st_uid}; it must belong to you or to root"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        return f'can be written to by others (mode {mode:o}): run "chmod go-w {folder}"'
    return ""


def _trusted(*bases: Path) -> list[Path]:
    """Return the folders of this version in existing folders, if they may be used."""
    found = []
    for base in bases:
        folder = base / VERSIONS
        if not folder.is_dir():
            continue
        for part in (base, folder):
            reason = distrust(part)
            if reason:
                LOGGER.warning("Compiled kernels in %s are not used: %s %s.", base, part, reason)
                break
        else:
            found.append(folder)
    return found


def _cache_folders() -> list[Path]:
    """Return where the user's code may be kept, the preferred folder first."""
    configured = os.environ.get("FENCEPOST_CACHE_DIR")
    folders = [Path(configured).absolute()] if configured else []
    with contextlib.suppress(RuntimeError):  # the user has no home
        folders.append(_user_cache() / "fencepost")
    folders.append(Path(tempfile.gettempdir()) / f"fencepost-{os.getuid()}")
    return folders


def _user_cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
