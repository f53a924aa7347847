"""Manifests that a test has changed, written with the checksum that docs/format.md specifies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32


def write_manifest(path: Path, manifest: object) -> None:
    """Write JSON as a manifest; an object of any fields gets a checksum that holds."""
    if not isinstance(manifest, dict):
        path.write_text(json.dumps(manifest))
        return
    fields: dict[str, Any] = {name: manifest[name] for name in manifest if name != "crc32"}
    content = json.dumps(fields).removesuffix("}")
    path.write_text(f'{content},"crc32":{crc32(content.encode())}}}')
