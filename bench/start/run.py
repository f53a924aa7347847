"""`run`: the time from the start of a process to its first answer, in fresh environments.

Each process starts with an empty home and no cache of compiled kernels. The wheel and the peers are
installed by pip as a user would. The checkout is measured with the packages of the wheel's
environment, so that only the compiled kernels differ.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from bench.report import Report, Table, log_axis
from fencepost.errors import FencepostError

_CHECKOUT = Path(__file__).resolve().parents[2]
_ROUNDS = 3

_MATCH = """
import fencepost as fp
m = fp.Matcher({space})
m.subscribe("a", "{expression}")
print(m.match({event}), flush=True)
"""
CASES = {
    "point in a polygon": _MATCH.format(
        space="",
        expression="S_INTERSECTS(geometry, POLYGON((0 0, 4 0, 0 4, 0 0)))",
        event={"geometry": "POINT (1 1)"},
    ),
    "two keywords": _MATCH.format(
        space="",
        expression="A_CONTAINS(text, ('ipad', 'repair'))",
        event={"text": "iPad repair, 60 euros!"},
    ),
    "distance on the ellipsoid": _MATCH.format(
        space="space='wgs84'",
        expression="S_DWITHIN(geometry, POINT(13.40 52.52), 2000)",
        event={"geometry": "POINT (13.41 52.53)"},
    ),
}
"""By name, a program that prints the first match."""

_SQL = (
    "SELECT ST_Intersects(ST_GeomFromText('POLYGON ((0 0, 4 0, 0 4, 0 0))'), ST_Point(1, 1))"
    " AS inside"
)
PEERS = {
    "SedonaDB": (
        ["apache-sedona[db]"],
        f"""
import sedona.db
answer = sedona.db.connect().sql({_SQL!r}).to_arrow_table()
assert answer.to_pylist() == [{{"inside": True}}]
print(True, flush=True)
""",
    ),
    "DuckDB": (
        ["duckdb", "duckdb-extension-spatial", "duckdb-extensions"],
        f"""
import duckdb
from duckdb_extensions import import_extension
import_extension("spatial")
connection = duckdb.connect()
connection.load_extension("spatial")
print(*connection.sql({_SQL!r}).fetchone(), flush=True)
""",
    ),
}
"""By name, the packages of a peer, and a program that prints whether a point is in a polygon."""


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a process, until its first answer was read."""

    seconds: float
    processor_seconds: float
    """Of the whole process, its end included."""

    memory_mb: float


def run(wheel: Path, quick: bool = False) -> Report:
    """Install a wheel and the peers, and measure all of them by turns.

    quick : without the checkout, which compiles for minutes.
    """
    if not wheel.is_file():
        raise FencepostError(f'there is no wheel {wheel}; "make wheel" builds one in dist/')
    with _fresh_environments(wheel) as (own, peers):
        programs: dict[str, Callable[[], Start]] = {}
        for name, (_, program) in PEERS.items():
            programs[f"{name}: point in a polygon"] = _starter(peers, program)
        for name, program in CASES.items():
            programs[f"wheel: {name}"] = _starter(own, program)
        starts: dict[str, list[Start]] = {name: [] for name in programs}
        for _ in range(_ROUNDS):
            for name, start in programs.items():
                starts[name].append(start())
        if not quick:
            for name, program in CASES.items():
                start = _starter(own, program, PYTHONPATH=str(_CHECKOUT / "src"))
                starts[f"source, nothing cached: {name}"] = [start()]
        versions = _versions(own) | _versions(peers)
    return _report(starts, versions)


@contextmanager
def _fresh_environments(wheel: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the interpreters of two new environments: of the wheel, and of the peers."""
    with tempfile.TemporaryDirectory(prefix="fencepost-start-") as folder:
        interpreters = []
        packages = [name for names, _ in PEERS.values() for name in names]
        for name, wanted in (("own", [str(wheel.resolve())]), ("peers", packages)):
            place = Path(folder) / name
            _quietly([sys.executable, "-m", "venv", str(place)])
            python = place / "bin" / "python"
            _quietly([str(python), "-m", "pip", "install", "-q", *wanted])
            interpreters.append(python)
        yield interpreters[0], interpreters[1]


def _quietly(command: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FencepostError(f"{' '.join(command):.200} failed: {done.stderr[-1_000:]}")


def _starter(python: Path, program: str, **variables: str) -> Callable[[], Start]:
    """Return a function that runs a program with an empty home, and measures it."""

    def start() -> Start:
        with tempfile.TemporaryDirectory(prefix="fencepost-home-") as home:
            own = {"HOME": home, "TMPDIR": home, "PATH": os.environ["PATH"], **variables}
            began = time.perf_counter()
            process = subprocess.Popen(
                [str(python), "-c", program],
                env=own,
                cwd=home,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            assert process.stdout is not None
            assert process.stderr is not None
            answer = process.stdout.readline()
            seconds = time.perf_counter() - began
            errors = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            process.stdout.close()
            process.stderr.close()
        if process.returncode or answer.strip() not in {b"['a']", b"True"}:
            raise FencepostError(f"a first answer was {answer!r}: {errors[-1_000:].decode()}")
        return Start(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)

    return start


def _versions(python: Path) -> dict[str, str]:
    program = (
        "from importlib.metadata import distributions\n"
        "for each in distributions(): print(each.name, each.version)"
    )
    done = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=True)
    wanted = {"fencepost", "numba", "sedonadb", "duckdb"}
    pairs = (line.split() for line in done.stdout.splitlines())
    return {name: number for name, number in pairs if name in wanted}


def _report(starts: dict[str, list[Start]], versions: dict[str, str]) -> Report:
    rows = []
    for name, each in starts.items():
        best = min(each, key=lambda start: start.seconds)
        first = f"{each[0].seconds:.2f}"
        row = [first, f"{best.seconds:.2f}", f"{best.processor_seconds:.1f}"]
        rows.append([name, *row, f"{best.memory_mb:,.0f}"])
    values: dict[str, Any] = {
        "versions": versions,
        "starts": {
            name: [
                {
                    "seconds": round(start.seconds, 3),
                    "processor_seconds": round(start.processor_seconds, 3),
                    "memory_mb": round(start.memory_mb, 1),
                }
                for start in each
            ]
            for name, each in starts.items()
        },
    }

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        names = list(starts)[::-1]
        best = [min(start.seconds for start in starts[name]) for name in names]
        colour_of = {"wheel": "tab:blue", "source, nothing cached": "#9ecae1"}
        colours = [colour_of.get(name.partition(":")[0], "tab:grey") for name in names]
        bars = axes.barh(names, best, color=colours)
        axes.bar_label(bars, [f"{seconds:.2g} s" for seconds in best], padding=4)
        axes.set_xlabel("seconds from the start of a process to its first answer")
        axes.set_xlim(0.1, 2 * max(best))
        log_axis(axes.xaxis)
        axes.grid(axis="y", visible=False)

    return Report(
        name="first-answer",
        title="From the start of a process to its first answer",
        values=values,
        tables=[
            Table(
                "Fresh environments, an empty home, nothing cached",
                [
                    "process",
                    "first run, s",
                    f"best of {_ROUNDS}, s",
                    "processor time, s",
                    "memory, MB",
                ],
                rows,
            )
        ],
        draw=draw,
        notes=[
            "Versions: " + ", ".join(f"{name} {number}" for name, number in versions.items()) + ".",
            "The peers say whether a point is in a polygon; they have no subscriptions.",
            "A process from source runs once: it compiles its kernels.",
        ],
    )
