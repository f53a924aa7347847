"""A standalone Spark cluster for tests: a master and workers, each a process of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import WAIT_S, until

LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for processes that do not live long
_DEPLOY = "org.apache.spark.deploy"


class Cluster:
    """A master and two workers of a core each; `url` is where the master is."""

    def __init__(self, folder: Path, memory: str = "1g") -> None:
        import pyspark

        folder.mkdir()
        self._folder = folder
        self._spark = Path(pyspark.__file__).parent
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("master", f"{_DEPLOY}.master.Master", "--port", "0")
        found = self._logged("master", r"Starting Spark master at (spark://\S+)")
        self.url: str = found.group(1)
        for number in range(2):
            own = f"worker-{number}"
            self._start(
                *(own, f"{_DEPLOY}.worker.Worker", "--cores", "1", "--memory", memory),
                *("--work-dir", str(folder / own), self.url),
            )
        for number in range(2):
            self._logged(f"worker-{number}", "Successfully registered with master")

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

    def _logged(self, name: str, pattern: str) -> re.Match[str]:
        log = self._folder / f"{name}.log"
        until(lambda: re.search(pattern, log.read_text()) is not None, WAIT_S)
        found = re.search(pattern, log.read_text())
        assert found is not None
        return found

    def stop(self) -> None:
        """End workers, which end their executors, and the master."""
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
    """Kill a process and all that it started, which Spark spreads over process groups."""

    def gone() -> bool:
        for pid in members(leader):
            kill(pid)
        return not members(leader)

    until(gone)


def kill(pid: int) -> None:
    """Kill a process that may have ended."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def children(parent: int) -> list[int]:
    """The processes that a process started."""
    return [pid for pid, fields in _processes() if fields[1] == str(parent)]


def parent(pid: int) -> int:
    """The process that started a process."""
    return next(int(fields[1]) for found, fields in _processes() if found == pid)


def members(leader: int) -> list[int]:
    """The processes of a session that run."""
    return [pid for pid, fields in _processes() if fields[3] == str(leader) and fields[0] != "Z"]


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Processes, and what `/proc` says of them: state, parent, group, session and more."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
