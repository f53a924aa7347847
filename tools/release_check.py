"""Install the distributions of a folder in fresh environments, and try what users do first.

    python -m tools.release_check dist

Each step prints a line with its seconds. The first step that fails ends the check with its reason
and exit code 1. All files are in a temporary folder, which is removed in the end. Processes see
neither this checkout nor kernels that were compiled before, so the check counts what a user would
have to wait for.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.message import Message
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DEADLINE_S = 900  # of a command; only a fault takes so long
LICENCES = {"LICENSE", "THIRD_PARTY.md"}
VENDORED_LICENCE = "fencepost/server/static/vendor/leaflet/LICENSE"
PYTHON_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN_OUTPUT = re.compile(r"^print\(.*\)  # (.*)$", re.MULTILINE)
EVENT = {"kind": "taxi", "geometry": {"type": "Point", "coordinates": [5.3, 60.4]}}


class StepFailed(Exception):
    """Raised by a step, with the reason."""


def require(condition: bool, reason: str) -> None:
    """Fail the step unless the condition holds."""
    if not condition:
        raise StepFailed(reason)


class ReleaseCheck:
    """The steps of the check, on the distributions of one folder."""

    def __init__(self, distributions: Path, folder: Path) -> None:
        wheels, sources = [*distributions.glob("*.whl")], [*distributions.glob("*.tar.gz")]
        require(
            len(wheels) == len(sources) == 1,
            f"{distributions} must have one wheel and one source distribution; run: make wheel",
        )
        self.wheel, self.source = wheels[0].resolve(), sources[0].resolve()
        self.folder = folder
        self.kernels = folder / "kernels"  # what processes compile; with the user's cache
        self.pip_environment = {  # pip may keep downloads in the user's cache
            name: value for name, value in os.environ.items() if not name.startswith("PYTHON")
        }
        self.environment = self.pip_environment | {
            "FENCEPOST_CACHE_DIR": str(self.kernels),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "TMPDIR": str(folder),
            "NO_COLOR": "1",
        }

    def steps(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Yield the name of each step with its function, which returns what it found."""
        yield "the readme renders (twine check)", self.render_readme
        yield "metadata", self.read_metadata
        yield "licences are in both distributions", self.find_licences
        yield "the source distribution builds", self.build_source
        yield "install: no extra", lambda: self.install("plain")
        yield "import fencepost", self.import_package
        yield "the example of the readme", self.run_readme
        yield "what is missing is named", self.name_missing_extras
        yield "install: server", lambda: self.install("server", "server")
        yield "install: client", lambda: self.install("client", "client")
        yield "serve, subscribe, publish, tail", self.use_server
        yield "install: bench", lambda: self.install("bench", "bench")
        yield "benchmarks need a checkout", self.ask_for_benchmarks
        yield "install: spark", lambda: self.install("spark", "spark")
        yield "spark match", self.match_on_spark
        yield "install: plot, beside spark", lambda: self.install("spark", "plot")
        yield "demo", self.run_demo

    # ------------------------------------------------------------------------- distributions

    def metadata(self) -> Message:
        """Return the metadata of the wheel, with the readme as its payload."""
        with zipfile.ZipFile(self.wheel) as archive:
            name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
            return Parser().parsestr(archive.read(name).decode())

    def render_readme(self) -> str:
        """Check that a package index can show the readme."""
        files = [str(self.wheel), str(self.source)]
        self.run([sys.executable, "-m", "twine", "check", "--strict", *files])
        return f"{self.wheel.name}, {self.wheel.stat().st_size / 1e6:.1f} MB"

    def read_metadata(self) -> str:
        """Check what a package index shows beside the readme."""
        metadata = self.metadata()
        version = re.search(
            r'^__version__ = "(.*)"$', (ROOT / "src/fencepost/__init__.py").read_text("utf-8"), re.M
        )
        require(
            version is not None and metadata["Version"] == version[1],
            f"the wheel is of version {metadata['Version']}, the checkout is not",
        )
        changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
        require(
            f"\n## {metadata['Version']}" in changelog,
            f"CHANGELOG.md has no section {metadata['Version']}",
        )
        for field in ("Summary", "Requires-Python", "License-Expression", "Keywords"):
            require(bool(metadata[field]), f"the wheel's metadata has no {field}")
        classifiers = metadata.get_all("Classifier", [])
        require(len(classifiers) > 0, "the wheel's metadata has no classifier")
        links = metadata.get_all("Project-URL", [])
        return f"{metadata['Version']}, {len(classifiers)} classifiers, {len(links)} links"

    def find_licences(self) -> str:
        """Check that both distributions have our licence and those of vendored files."""
        with zipfile.ZipFile(self.wheel) as wheel, tarfile.open(self.source) as source:
            in_wheel = wheel.namelist()
            in_source = [name.partition("/")[2] for name in source.getnames()]
        kept = {n.rpartition("/")[2] for n in in_wheel if ".dist-info/licenses/" in n}
        require(kept >= LICENCES, f"the wheel lacks {sorted(LICENCES - kept)}")
        require(VENDORED_LICENCE in in_wheel, f"the wheel lacks {VENDORED_LICENCE}")
        wanted = {*LICENCES, f"src/{VENDORED_LICENCE}", "README.md", "CHANGELOG.md"}
        require(wanted <= {*in_source}, f"the source lacks {sorted(wanted - {*in_source})}")
        foreign = [n for n in in_wheel if not re.match(r"fencepost(-[^/]*\.dist-info)?/", n)]
        require(not foreign, f"the wheel has files outside the package: {foreign[:3]}")
        return f"{len(in_wheel)} files in the wheel, {len(in_source)} in the source"

    def build_source(self) -> str:
        """Build a wheel from the source distribution; it must have the same Python files."""
        out = self.folder / "built"
        self.pip("wheel", "--no-deps", "--wheel-dir", str(out), str(self.source))
        with (
            zipfile.ZipFile(self.wheel) as first,
            zipfile.ZipFile(next(out.glob("*.whl"))) as second,
        ):
            ours = {n for n in first.namelist() if not re.search(r"dist-info/|\.kernel$", n)}
            theirs = {n for n in second.namelist() if "dist-info/" not in n}
        require(ours == theirs, f"different files: {sorted(ours ^ theirs)[:3]}")
        return f"{len(theirs)} files"

    # -------------------------------------------------------------------------- environments

    def pip(self, *arguments: str) -> None:
        """Run the pip of this process's environment."""
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", *arguments]
        self.run(command, environment=self.pip_environment)

    def install(self, name: str, extra: str = "") -> str:
        """Install the wheel with an extra in the environment of that name, made if missing."""
        folder = self.folder / name
        if not folder.exists():
            self.run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        constraints = str(ROOT / "constraints.txt")
        self.pip(
            *("--python", str(folder / "bin" / "python"), "install", "--no-compile"),
            *("-c", constraints, "--build-constraint", constraints),
            "--config-settings=--build-option=--compression=stored",  # as in the Makefile
            f"fencepost[{extra}] @ {self.wheel.as_uri()}",
        )
        return f"{len([*folder.glob('lib/python*/site-packages/*.dist-info')])} packages"

    def run(
        self,
        command: Sequence[str],
        *,
        code: int = 0,
        given: str | None = None,
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the temporary folder; fail unless it exits with the code."""
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            input=given,
            cwd=self.folder,
            env=environment or self.environment,
            timeout=DEADLINE_S,
        )
        if done.returncode != code:
            shown = " ".join(command[:6])
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
            raise StepFailed(f"`{shown}` exited with {done.returncode}, not {code}:\n{tail}")
        return done

    def fencepost(
        self, name: str, *arguments: str, code: int = 0, given: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the command `fencepost` of an environment."""
        program = str(self.folder / name / "bin" / "fencepost")
        return self.run([program, *arguments], code=code, given=given)

    def python(self, name: str, program: str) -> str:
        """Run a program with the Python of an environment; return its output."""
        return self.run([str(self.folder / name / "bin" / "python"), "-c", program]).stdout

    def compiled(self) -> str:
        """Say how many kernels were compiled since the check began. A wheel has them all."""
        count = sum(1 for _ in self.kernels.rglob("*.kernel"))
        require(
            count == 0 or self.wheel.name.endswith("-none-any.whl"),
            f"{count} kernels were compiled, although the wheel has machine code",
        )
        return f"{count} kernels compiled so far"

    # ---------------------------------------------------------------------------- what users do

    def import_package(self) -> str:
        """Import the package; its files must be those that were installed."""
        program = "import fencepost as fp; print(fp.__version__, fp.__file__)"
        version, path = self.python("plain", program).split()
        require(Path(path).is_relative_to(self.folder), f"fencepost was imported from {path}")
        shown = self.fencepost("plain", "--version").stdout.split()
        require(shown == ["fencepost", version], f"--version printed {shown}, not {version}")
        return version

    def run_readme(self) -> str:
        """Run the Python code of the readme, as the package index shows it."""
        blocks = PYTHON_BLOCK.findall(str(self.metadata().get_payload()))
        require(len(blocks) > 0, "the readme has no Python code")
        for block in blocks:
            printed = self.python("plain", block).splitlines()
            require(printed == SHOWN_OUTPUT.findall(block), f"it printed {printed}")
        return self.compiled()

    def name_missing_extras(self) -> str:
        """Check that commands say which extra to install."""
        commands = {
            "server": ["serve", "--open"],
            "client": ["tail", "me"],
            "spark": ["spark", "match", "--events", "e", "--subscriptions", "s", "--out", "o"],
            "spark,plot": ["demo"],
        }
        for extra, command in commands.items():
            said = self.fencepost("plain", *command, code=1).stderr
            wanted = f"pip install 'fencepost[{extra}]'"
            require(said.count("\n") == 1 and wanted in said, f"{command[0]} said: {said}")
        return f"{len(commands)} commands"

    def use_server(self) -> str:
        """Serve in one environment, and use the server from another."""
        with self.serving() as address:
            for page in ("/", "/healthz", "/openapi.json"):
                with urllib.request.urlopen(address + page, timeout=DEADLINE_S) as answer:
                    require(answer.status == 200, f"{page} was answered with {answer.status}")
            at = ("--server", address)
            condition = "kind = 'taxi' AND S_INTERSECTS(geometry, BBOX(5, 60, 6, 61))"
            self.fencepost("client", "subscribe", "taxis", condition, "--subscriber", "me", *at)
            self.fencepost("client", "publish", "-", *at, given=json.dumps(EVENT) + "\n")
            tail = self.fencepost("client", "tail", "me", "--count", "1", "--json", *at).stdout
            require("taxis" in tail, f"tail printed {tail!r}")
        return self.compiled()

    @contextmanager
    def serving(self) -> Iterator[str]:
        """Run a server; yield its address when it is ready."""
        program = str(self.folder / "server" / "bin" / "fencepost")
        process = subprocess.Popen(
            [program, "serve", "--open", "--port", "0", "--data", str(self.folder / "data")],
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment,
        )
        try:
            assert process.stderr is not None
            said = ""
            for line in process.stderr:
                said += line
                if found := re.search(r"http://[\d.]+:\d+", said):
                    break
            else:
                raise StepFailed(f"the server ended: {said}")
            yield found[0]
        finally:
            process.terminate()
            process.communicate(timeout=DEADLINE_S)

    def ask_for_benchmarks(self) -> str:
        """Check that a wheel's `fencepost bench` says where benchmarks are."""
        said = self.fencepost("bench", "bench", "relate", code=1).stderr
        require("source checkout" in said and "Traceback" not in said, f"it said: {said}")
        return "said in one line"

    def match_on_spark(self) -> str:
        """Match a small table on Spark."""
        rows = [{"id": str(n), "expression": f"n = {n} OR n = 7"} for n in range(5)]
        events = [{"n": n} for n in range(10)]
        for name, table in (("subscriptions", rows), ("events", events)):
            text = "".join(json.dumps(row) + "\n" for row in table)
            (self.folder / f"{name}.ndjson").write_text(text, encoding="utf-8")
        files = ("--subscriptions", "subscriptions.ndjson", "--events", "events.ndjson")
        done = self.fencepost("spark", "spark", "match", *files, "--out", "matches", "--json")
        matches = json.loads(done.stdout)["match"]["matches"]
        require(matches == 10, f"{matches} matches instead of 10")
        return self.compiled()

    def run_demo(self) -> str:
        """Run the demonstration, which compares Spark with a matcher in one process."""
        self.fencepost("spark", "demo", "--out", "city")
        for name in ("city.png", "city.html", "matches.parquet"):
            require((self.folder / "city" / name).stat().st_size > 0, f"{name} is empty")
        return self.compiled()


def main() -> int:
    """Run all steps; return the exit code."""
    parser = argparse.ArgumentParser(description="Check the distributions of a release.")
    parser.add_argument("distributions", type=Path, help="folder that `make wheel` wrote")
    arguments = parser.parse_args()
    name = "the distributions"
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fencepost-release-") as folder:
        try:
            for name, step in ReleaseCheck(arguments.distributions, Path(folder)).steps():
                begun = time.monotonic()
                found = step()
                seconds = time.monotonic() - begun
                print(f"ok   {seconds:6.1f} s  {name}: {found}", flush=True)
        except (StepFailed, OSError, subprocess.TimeoutExpired) as error:
            print(f"FAILED: {name}: {error}", file=sys.stderr)
            return 1
    print(f"ready to publish, after {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
