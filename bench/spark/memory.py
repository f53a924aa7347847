"""Measures the peak memory of Spark's Python workers through /proc.

*All* memory of a process is its RSS: anonymous memory, and the resident pages of mapped files,
which processes share and the system may drop at any time. *Own* memory is the anonymous part
(RssAnon). The system records the peak of the former; the peak of the latter is sampled 20 times a
second.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

_SAMPLE_INTERVAL_S = 0.05
_DAEMON = b"pyspark.daemon"


@dataclass(slots=True)
class MemoryPeaks:
    """The peak memory of each process id, in bytes."""

    everything: dict[int, int] = field(default_factory=dict)
    own: dict[int, int] = field(default_factory=dict)

    def sample(self) -> None:
        """Read the memory of all workers once."""
        for pid in _workers():
            with suppress(OSError):  # it has ended
                status = Path(f"/proc/{pid}/status").read_text()
                values_kb = dict(re.findall(r"^(VmHWM|RssAnon):\s+(\d+) kB$", status, re.MULTILINE))
                if values_kb:
                    for peak, name in ((self.everything, "VmHWM"), (self.own, "RssAnon")):
                        peak[pid] = max(peak.get(pid, 0), int(values_kb[name]) * 1024)

    def plain(self) -> dict[str, object]:
        """Return the numbers for JSON."""
        return {
            "workers": len(self.everything),
            "all_bytes": sorted(self.everything.values(), reverse=True),
            "own_bytes": sorted(self.own.values(), reverse=True),
        }


@contextmanager
def peak_memory() -> Iterator[MemoryPeaks]:
    """Measure the peaks of the workers while the context lasts; resets the system's peaks first."""
    peaks, done = MemoryPeaks(), Event()
    for pid in _workers():
        with suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # resets VmHWM

    def sample_until_done() -> None:
        while not done.wait(_SAMPLE_INTERVAL_S):
            peaks.sample()

    thread = Thread(target=sample_until_done, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        peaks.sample()
        done.set()
        thread.join()


def _workers() -> list[int]:
    """Return the process ids of PySpark workers below this process: the children of daemons."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                stat = (folder / "stat").read_text()
                parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    descendants = {os.getpid()}
    while True:
        children = {pid for pid, parent in parents.items() if parent in descendants} - descendants
        if not children:
            break
        descendants |= children
    daemons = {pid for pid in descendants if _DAEMON in _command(pid)}
    return [pid for pid in descendants if parents.get(pid) in daemons]


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
