"""`Child`: a server in its own process, which can be killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx

from tests.waiting import WAIT_S

_PROGRAM = """
import sys
from pathlib import Path
from fencepost.server.server_process import serve
from fencepost.server import Settings
settings = Settings(Path(sys.argv[1]), space=sys.argv[2], open_access=True)
serve(settings, "127.0.0.1", 0, lambda address: print(address, flush=True))
"""


class Child:
    """A server in a child process.

    Attributes
    ----------
    url : str
    http : httpx.Client
    """

    def __init__(self, folder: Path, space: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(folder), space], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, "the server did not start"
        self.http = httpx.Client(base_url=self.url, timeout=WAIT_S)

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()

    def close(self) -> None:
        """Kill the process and wait until it ends."""
        self.http.close()
        self._process.kill()
        self._process.wait(WAIT_S)
        assert self._process.stdout is not None
        self._process.stdout.close()
