"""Without an extra, commands and names say which one to install, in a line and not a traceback."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fencepost import FencepostError
from fencepost.extras import PACKAGES, requires_extra

ROOT = Path(__file__).resolve().parents[1]
EVERY_PACKAGE = {module for packages in PACKAGES.values() for module in packages}

CLIENT = "a client of the server needs httpx; install it with: pip install 'fencepost[client]'"
PYSPARK = "needs pyspark; install it with: pip install 'fencepost[spark]'"
COMMANDS = {
    "serve --open": "fencepost serve needs uvicorn; "
    "install it with: pip install 'fencepost[server]'",
    "publish events.ndjson": CLIENT,
    "subscribe taxis kind=1": CLIENT,
    "tail me": CLIENT,
    "spark match --events e --subscriptions s --out o": f"fencepost spark match {PYSPARK}",
    "spark submit --master local job.py": f"fencepost spark submit {PYSPARK}",
    "demo --out city": "the demonstration needs pyspark and matplotlib; "
    "install them with: pip install 'fencepost[spark,plot]'",
    "bench relate": "fencepost bench needs matplotlib; "
    "install it with: pip install 'fencepost[bench]'",
}
NAMES = {
    "fp.Client": CLIENT,
    "fp.AsyncClient": CLIENT,
    "spark.match": f"fencepost.spark.match {PYSPARK}",
    "spark.session()": f"fencepost.spark {PYSPARK}",
}


def run_without(packages: set[str], program: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a process in which no package of an extra can be imported."""
    hide = f"import sys\nfor name in {sorted(packages)}: sys.modules[name] = None\n"
    return subprocess.run(
        [sys.executable, "-c", hide + program],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


def run_command(packages: set[str], command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    arguments = ["fencepost", *command.split()]
    program = f"sys.argv = {arguments}\nfrom fencepost.cli.entry_point import main\nmain()"
    return run_without(packages, program, cwd)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_what_to_install(command: str, tmp_path: Path) -> None:
    ran = run_command(EVERY_PACKAGE, command, tmp_path)
    assert ran.stderr == f"error: {COMMANDS[command]}\n"
    assert ran.returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_names_say_what_to_install(tmp_path: Path) -> None:
    lines = ["import fencepost as fp", "from fencepost import spark"]
    for name in NAMES:
        lines += [f"try: {name}", "except fp.FencepostError as error: print(error)"]
    ran = run_without(EVERY_PACKAGE, "\n".join(lines), tmp_path)
    assert ran.stdout.splitlines() == [*NAMES.values()], ran.stderr


@pytest.mark.parametrize("module", ["aiomqtt", "httpcore", "httptools", "paho", "starlette"])
def test_a_package_that_is_imported_later_is_named(module: str, tmp_path: Path) -> None:
    ran = run_command({module}, "serve --open", tmp_path)
    package = PACKAGES["server"][module]
    assert f"needs {package}; install it with: pip install 'fencepost[server]'" in ran.stderr
    assert ran.returncode == 1


@pytest.mark.parametrize("command", ["--version", "--help", "serve --help", "keys list", "bench"])
def test_other_commands_need_no_extra(command: str, tmp_path: Path) -> None:
    ran = run_command(EVERY_PACKAGE, command, tmp_path)
    assert "needs" not in ran.stderr
    assert "Traceback" not in ran.stderr


def test_an_old_package_is_to_be_upgraded() -> None:
    wrong = pytest.raises(FencepostError, match=r"newer version of httpx.*pip install --upgrade")
    with wrong, requires_extra("the sender", "client"):
        from httpx import no_such_name  # type: ignore[attr-defined]  # noqa: F401


def test_other_imports_fail_as_usual() -> None:
    wrong = pytest.raises(ModuleNotFoundError, match="no_such_package")
    with wrong, requires_extra("the sender", "client"):
        import no_such_package  # type: ignore[import-not-found]  # noqa: F401


def test_packages_are_those_of_the_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {
        extra: {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}
        for extra, requirements in project["optional-dependencies"].items()
    }
    assert {extra: set(packages.values()) for extra, packages in PACKAGES.items()} == declared
