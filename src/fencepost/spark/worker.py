"""The indexes that a Spark worker process has mapped: opened once, kept while unchanged."""

from __future__ import annotations

from pathlib import Path

from fencepost.match.matcher import Matcher

_OPEN: dict[str, tuple[tuple[int, int], Matcher]] = {}


def matcher(path: str) -> Matcher:
    """The matcher of a saved index, mapped on first use and again after the index was rewritten."""
    state = (Path(path) / "manifest.json").stat()
    version = (state.st_ino, state.st_mtime_ns)
    kept = _OPEN.get(path)
    if kept is None or kept[0] != version:
        kept = version, Matcher.open(path)
        _OPEN[path] = kept
    return kept[1]
