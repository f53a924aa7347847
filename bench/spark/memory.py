"""How much memory the Python workers of Spark take, told by /proc.

Of a process *all* is what the system calls RSS: its own memory and the pages of files that it has
mapped and touched, which the system may drop at any time and which processes share. *Own* is what
is in no file (RssAnon). The peak of the first is the system's; that of the second is the largest of
looks 20 times a second.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

_EVERY_S = 0.05
_DAEMON = b"pyspark.daemon"


@dataclass(slots=True)
class Peaks:
    """By process: the most bytes in all, and of its own."""

    everything: dict[int, int] = field(default_factory=dict)
    own: dict[int, int] = field(default_factory=dict)

    def look(self) -> None:
        """Look at the workers once."""
        for pid in _workers():
            with suppress(OSError):  # it has ended
                status = Path(f"/proc/{pid}/status").read_text()
                found = dict(re.findall(r"^(VmHWM|RssAnon):\s+(\d+) kB$", status, re.MULTILINE))
                if found:
                    for kept, name in ((self.everything, "VmHWM"), (self.own, "RssAnon")):
                        kept[pid] = max(kept.get(pid, 0), int(found[name]) * 1024)

    def plain(self) -> dict[str, object]:
        """The numbers, for JSON."""
        return {
            "workers": len(self.everything),
            "all_bytes": sorted(self.everything.values(), reverse=True),
            "own_bytes": sorted(self.own.values(), reverse=True),
        }


@contextmanager
def watched() -> Iterator[Peaks]:
    """The peaks of the workers that are there meanwhile; the system's are reset before."""
    peaks, done = Peaks(), Event()
    for pid in _workers():
        with suppress(OSError):
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew

    def look() -> None:
        while not done.wait(_EVERY_S):
            peaks.look()

    thread = Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        peaks.look()
        done.set()
        thread.join()


def _workers() -> list[int]:
    """Processes that a daemon of PySpark below this process has made."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                stat = (folder / "stat").read_text()
                parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    own = {os.getpid()}
    while True:
        more = {pid for pid, parent in parents.items() if parent in own} - own
        if not more:
            break
        own |= more
    daemons = {pid for pid in own if _DAEMON in _command(pid)}
    return [pid for pid in own if parents.get(pid) in daemons]


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
