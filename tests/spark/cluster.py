"""Provides `cluster`: a standalone Spark cluster of processes on this machine, for tests."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import WAIT_S, until

LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for short-lived processes
_PACKAGE = "org.apache.spark.deploy"


class Cluster:
    """A master, at `url`, and two workers with one core each."""

    def __init__(self, folder: Path, memory: str = "1g") -> None:
        import pyspark

        folder.mkdir()
        self._folder = folder
        self._spark = Path(pyspark.__file__).parent
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("master", f"{_PACKAGE}.master.Master", "--port", "0")
        found = self._wait_for_log("master", r"Starting Spark master at (spark://\S+)")
        self.url: str = found.group(1)
        for number in range(2):
            own = f"worker-{number}"
            self._start(
                *(own, f"{_PACKAGE}.worker.Worker", "--cores", "1", "--memory", memory),
                *("--work-dir", str(folder / own), self.url),
            )
        for number in range(2):
            self._wait_for_log(f"worker-{number}", "Successfully registered with master")

    def _start(self, name: str, *command: str) -> None:
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": LIGHT}
        environment["SPARK_DAEMON_MEMORY"] = "256m"
        main, *options = command
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [
                        *(str(self._spark / "bin" / "spark-class"), main),
                        *("--host", "127.0.0.1", "--webui-port", "0", *options),
                    ],
                    stdout=log,
                    stderr=log,
                    env=environment,
                    cwd=self._folder,
                    start_new_session=True,
                )
            )

    def _wait_for_log(self, name: str, pattern: str) -> re.Match[str]:
        log = self._folder / f"{name}.log"
        until(lambda: re.search(pattern, log.read_text()) is not None, WAIT_S)
        found = re.search(pattern, log.read_text())
        assert found is not None
        return found

    def stop(self) -> None:
        """Stop the workers, which stop their executors, and the master."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(WAIT_S)
            finally:
                kill_session(process.pid)


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    made = Cluster(folder)
    try:
        yield made
    finally:
        made.stop()


def kill_session(leader: int) -> None:
    """Kill all processes of a session; Spark spreads its processes over several process groups."""

    def gone() -> bool:
        for pid in session_members(leader):
            kill(pid)
        return not session_members(leader)

    until(gone)


def kill(pid: int) -> None:
    """Kill a process, if it still runs."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def children(parent: int) -> list[int]:
    """Return the child processes of a process."""
    return [pid for pid, fields in _processes() if fields[1] == str(parent)]


def parent(pid: int) -> int:
    """Return the parent of a process."""
    return next(int(fields[1]) for found, fields in _processes() if found == pid)


def session_members(leader: int) -> list[int]:
    """Return the running processes of a session."""
    return [pid for pid, fields in _processes() if fields[3] == str(leader) and fields[0] != "Z"]


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Yield all processes, with the fields of `/proc`: state, parent, group, session and more."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
