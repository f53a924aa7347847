"""`KnownVersions`: which version of an index a matcher holds, by folder.

A version is the digest of a manifest. Each save writes segments under new names, so two versions
have the same manifest only if neither has a subscription.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from fencepost.errors import IndexingError


class KnownVersions:
    """The version of the index that a matcher was opened from or last saved, by folder."""

    def __init__(self) -> None:
        self._versions: dict[str, bytes] = {}

    def copy(self) -> KnownVersions:
        """Return a copy, which later versions of this one are not added to."""
        copied = KnownVersions()
        copied._versions = dict(self._versions)
        return copied

    def add(self, path: Path, manifest: bytes) -> None:
        """Keep the version of the index in a folder that now has this manifest."""
        self._versions[os.path.realpath(path)] = sha256(manifest).digest()

    def check(self, path: Path, manifest: bytes) -> None:
        """Raise an `IndexingError` unless the manifest of a folder is of the version kept."""
        known = self._versions.get(os.path.realpath(path))
        if known is None:
            raise IndexingError(
                f"there is an index in {path} already, and this matcher was not opened from it; "
                "save to another folder, or give overwrite=True to replace it"
            )
        if known != sha256(manifest).digest():
            raise IndexingError(
                f"the index in {path} has changed since this matcher was opened from it or saved "
                "to it; open it again and repeat the changes, save to another folder, or give "
                "overwrite=True to lose the changes of others"
            )
