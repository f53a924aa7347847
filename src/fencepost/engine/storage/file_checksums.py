"""Checksums of the files of segments: CRC-32, which zlib computes at some gigabytes a second.

A file of at most `MAX_CHECKED_BYTES` is compared with its checksum whenever it is opened. A larger
file is mapped without being read, and `verification.verify` alone compares it.
"""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from fencepost.engine.storage.manifest import MANIFEST, SegmentEntry

MAX_CHECKED_BYTES = 64 * 2**20
_BLOCK_BYTES = 2**20


def checksum_of(path: Path) -> int:
    """Return the checksum of a file."""
    checksum = 0
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK_BYTES):
            checksum = crc32(block, checksum)
    return checksum


def checked_path(path: Path, entry: SegmentEntry, name: str, *, of_any_size: bool = False) -> Path:
    """Return the path of a file of a segment, after comparing the file with its checksum.

    Parameters
    ----------
    path : Path
        The folder of the index.
    entry : SegmentEntry
        The segment.
    name : str
        The name of the file in the folder of the segment.
    of_any_size : bool
        Whether to compare a file of more than `MAX_CHECKED_BYTES`, too.

    Raises
    ------
    ValueError
        If the file differs from its checksum; it names the file. An `OSError` if the file cannot
        be read.
    """
    file = path / entry.folder / name
    if name not in entry.checksums:
        raise ValueError(f"{MANIFEST}: $.segments has no checksum of {entry.folder}/{name}")
    if not of_any_size and file.stat().st_size > MAX_CHECKED_BYTES:
        return file
    if checksum_of(file) != entry.checksums[name]:
        raise ValueError(f"{entry.folder}/{name} differs from its checksum")
    return file
