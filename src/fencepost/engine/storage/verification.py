"""`verify`: compares all files of a saved index with their checksums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from fencepost.engine.storage.file_checksums import checked_path
from fencepost.engine.storage.manifest import SegmentEntry, decode_manifest, read_manifest


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found.

    Attributes
    ----------
    files, bytes : int
        The number of files that the manifest names, and their size. A missing file has no bytes.
    damaged : tuple of (str, str)
        The name of each damaged file, and what is wrong with it.
    """

    files: int
    bytes: int
    damaged: tuple[tuple[str, str], ...]


def verify(path: Path) -> Verification:
    """Compare every file of an index with its checksum, whatever its size.

    The index is the newest version in the folder, with its router if Spark built it.

    Raises
    ------
    IndexingError
        If the folder holds no index, or a manifest is damaged.
    """
    while True:
        content = read_manifest(path)
        names, size, damaged = 0, 0, []
        for entry, name in _files(path, content):
            names += 1
            try:
                size += checked_path(path, entry, name, of_any_size=True).stat().st_size
            except (OSError, ValueError) as error:
                damaged.append((f"{entry.folder}/{name}", _reason(error)))
        if not damaged or read_manifest(path) == content:
            return Verification(names, size, tuple(damaged))


def _files(path: Path, content: bytes) -> Iterator[tuple[SegmentEntry, str]]:
    """Yield each file that a manifest names, with its segment."""
    manifest = decode_manifest(str(path), content)
    for entry in manifest.segments:
        for name in entry.checksums:
            yield entry, name
    if manifest.router is not None:
        router = read_manifest(path / manifest.router)
        for entry, name in _files(path / manifest.router, router):
            yield replace(entry, folder=f"{manifest.router}/{entry.folder}"), name


def _reason(error: OSError | ValueError) -> str:
    """Return why a file is damaged, without its name."""
    if isinstance(error, FileNotFoundError):
        return "is missing"
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return "differs from its checksum"
