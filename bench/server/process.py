"""A server in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = re.compile(r"VmHWM:\s+(\d+) kB")
_COMMAND = (
    "import sys; from fencepost.cli.entry_point import main; "
    "sys.argv[0] = 'fencepost'; sys.exit(main())"
)


class Process:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self.url = url

    def most_memory(self) -> int:
        """The most bytes that it had in memory so far."""
        found = _MEMORY.search(Path(f"/proc/{self._process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) * 1024


@contextmanager
def served(folder: Path) -> Iterator[Process]:
    """Serve a folder on loopback, without keys."""
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
