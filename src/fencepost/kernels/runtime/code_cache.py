"""Compiled kernels on disk: read from any folder of code, and kept in the user's.

Each form of a kernel, for arguments of certain types, has a file of its own, named after a hash of
all that its code depends on. A file is renamed when it is complete, so readers see only whole
files, and processes share no index that could become inconsistent. Processes that need the same
kernel at the same time compile it once: the others wait for its lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fencepost.kernels.runtime.code_files import SUFFIX, CodeFile, Form
from fencepost.kernels.runtime.code_folders import LOGGER, readable_folders, writable_folder
from fencepost.kernels.runtime.processors import compiled_processor, usable_processors
from fencepost.kernels.runtime.source_hashes import source_hash
from fencepost.kernels.runtime.type_text import TypeTable

_loaded: list[Path] = []


def loaded_files() -> list[Path]:
    """Return the files of machine code that this process loaded, in that order."""
    return list(_loaded)


class KernelCache:
    """The files of one kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        module = function.__module__.removeprefix("fencepost.")
        self._base = f"{module}.{function.__qualname__}"
        self._line = function.__code__.co_firstlineno
        self._source_file = Path(function.__code__.co_filename)

    def load(self, argument_types: tuple[Any, ...], form: Form) -> CodeFile | None:
        """Return the content of the file with a form, the best for this processor, or None."""
        name = self._file_name(argument_types, form)
        for processor in usable_processors():
            for folder in readable_folders():
                path = folder / processor.name / name
                try:
                    content = CodeFile.from_bytes(path.read_bytes())
                except OSError:
                    continue
                except ValueError as error:
                    LOGGER.warning("%s is compiled again: %s.", path, error)
                    continue
                _loaded.append(path)
                return content
        return None

    def save(self, argument_types: tuple[Any, ...], form: Form, content: CodeFile) -> None:
        """Keep a file in the user's folder, if there is one."""
        folder = _folder_of_processor()
        if folder is None:
            return
        path = folder / self._file_name(argument_types, form)
        try:
            descriptor, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content.to_bytes())
                os.chmod(temporary, 0o644)
                os.replace(temporary, path)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            LOGGER.warning("A compiled kernel is not kept: %s: %s.", path, error.strerror)

    @contextlib.contextmanager
    def lock(self, argument_types: tuple[Any, ...], form: Form) -> Iterator[None]:
        """Hold the lock of a file while the body compiles it, if files can be kept and locked."""
        descriptor = _lock_file()
        if descriptor is None:
            yield
            return
        name = self._file_name(argument_types, form)
        position = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) >> 1
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX, 1, position)
        except OSError:  # no locks on this file system, or a deadlock by a clash of positions
            yield
            return
        try:
            yield
        finally:
            fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, position)

    @functools.cache  # noqa: B019 - kernels live as long as the process
    def _file_name(self, argument_types: tuple[Any, ...], form: Form) -> str:
        table = TypeTable()
        arguments = table.add_all(argument_types)
        key = (source_hash(self._source_file), self._line, form.value, table.entries, arguments)
        digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:24]
        return f"{self._base}.{digest}{SUFFIX}"


def _folder_of_processor() -> Path | None:
    """Return the folder for code of this process, made if it is missing; None if it cannot be."""
    folder = writable_folder()
    if folder is None:
        return None
    folder = folder / compiled_processor().name
    try:
        folder.mkdir(mode=0o755, exist_ok=True)
    except OSError:
        return None
    return folder


_lock_of: dict[tuple[int, Path], int] = {}


def _lock_file() -> int | None:
    """Return the descriptor of this process for locks; each byte of the file is one lock.

    It stays open: closing a descriptor gives up all locks of the process on the file.
    """
    folder = _folder_of_processor()
    if folder is None:
        return None
    key = (os.getpid(), folder)
    if key not in _lock_of:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            _lock_of[key] = os.open(folder / "locks", flags, 0o644)
        except OSError:
            return None
    return _lock_of[key]
