"""`served`: runs a server in a separate process."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PEAK_MEMORY = re.compile(r"VmHWM:\s+(\d+) kB")
_COMMAND = (
    "import sys; from fencepost.cli.entry_point import main; "
    "sys.argv[0] = 'fencepost'; sys.exit(main())"
)


class Process:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url = url

    def peak_memory_bytes(self) -> int:
        """Return the peak of the server's memory so far."""
        match = _PEAK_MEMORY.search(Path(f"/proc/{self._process.pid}/status").read_text())
        assert match is not None
        return int(match[1]) * 1024


@contextmanager
def served(folder: Path) -> Iterator[Process]:
    """Serve a folder on loopback, without keys, and yield the process."""
    process = subprocess.Popen(
        [sys.executable, "-c", _COMMAND, "serve", "--open", "--data", str(folder),
         "--space", "planar", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        address = re.search(r"http://\S+", line)
        assert address is not None, line + process.stderr.read()
        yield Process(process, address[0])
    finally:
        process.terminate()
        process.wait(60)
        if process.stderr is not None:
            process.stderr.close()
