"""The command line: help, results, errors, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.table import Table
from typer.testing import CliRunner

import fencepost
from fencepost.cli import entry_point
from fencepost.errors import FencepostError

runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})


def stand_in(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    """Replace a module by a stub, so that no test waits for the compiler."""
    module = ModuleType(name)
    for key, value in members.items():
        setattr(module, key, value)
    monkeypatch.setitem(sys.modules, name, module)
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        monkeypatch.setattr(sys.modules[parent], child, module, raising=False)


@pytest.fixture
def relate_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    def render(result: dict[str, object]) -> Table:
        table = Table("pairs", "verified")
        table.add_row(str(result["pairs"]), str(result["verify"]))
        return table

    stand_in(monkeypatch, "bench.micro.relate", run=lambda **options: options, render=render)


class TestHelp:
    @pytest.mark.parametrize(
        "command", ["index", "match", "explain", "stats", "demo", "warmup", "bench"]
    )
    def test_help_names_each_command(self, command: str) -> None:
        result = runner.invoke(entry_point.app, ["--help"])
        assert result.exit_code == 0
        assert f"fencepost {command}" in result.output
        assert "Exit codes" in result.output

    def test_commands_are_grouped(self) -> None:
        result = runner.invoke(entry_point.app, ["--help"])
        assert result.output.index(" Matching ") < result.output.index(" Tools ")

    @pytest.mark.parametrize(
        "command",
        [["index"], ["match"], ["explain"], ["stats"], ["demo"], ["warmup"], ["bench", "relate"]],
    )
    def test_each_command_shows_an_example(self, command: list[str]) -> None:
        result = runner.invoke(entry_point.app, [*command, "--help"])
        assert result.exit_code == 0
        assert "Examples" in result.output
        assert "fencepost " + " ".join(command) in result.output

    def test_help_does_not_load_the_compiler(self) -> None:
        program = (
            "import sys; from typer.testing import CliRunner\n"
            "from fencepost.cli.entry_point import app\n"
            "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
            "print([name for name in ('numba', 'pyarrow', 'shapely') if name in sys.modules])"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == "[]"

    def test_version(self) -> None:
        result = runner.invoke(entry_point.app, ["--version"])
        assert result.exit_code == 0
        assert result.output == f"fencepost {fencepost.__version__}\n"


class TestExitCodes:
    def test_2_for_an_unknown_command(self) -> None:
        assert runner.invoke(entry_point.app, ["nonsense"]).exit_code == 2

    def test_2_for_an_unknown_option(self) -> None:
        assert runner.invoke(entry_point.app, ["warmup", "--nonsense"]).exit_code == 2

    def test_2_for_a_value_out_of_range(self) -> None:
        assert runner.invoke(entry_point.app, ["bench", "relate", "--pairs", "0"]).exit_code == 2

    def test_1_and_one_line_for_a_refusal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(out: Path, seed: int) -> None:
            raise FencepostError(f"cannot write to {out} [reason]")

        stand_in(monkeypatch, "fencepost.demo", run=refuse)
        result = runner.invoke(entry_point.app, ["demo", "--out", "x" * 200])
        assert result.exit_code == 1
        assert result.stdout == ""
        assert result.stderr == f"error: cannot write to {'x' * 200} [reason]\n"

    def test_1_for_a_full_disk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(out: Path, seed: int) -> None:
            raise OSError(28, "No space left on device")

        stand_in(monkeypatch, "fencepost.demo", run=fail)
        result = runner.invoke(entry_point.app, ["demo"])
        assert result.exit_code == 1
        assert result.stderr == "error: [Errno 28] No space left on device\n"

    def test_141_for_a_reader_that_closed_the_pipe(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(out: Path, seed: int) -> None:
            raise BrokenPipeError

        stand_in(monkeypatch, "fencepost.demo", run=fail)
        result = runner.invoke(entry_point.app, ["demo"])
        assert result.exit_code == 141
        assert result.output == ""

    def test_130_for_an_interruption(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(out: Path, seed: int) -> None:
            raise KeyboardInterrupt

        stand_in(monkeypatch, "fencepost.demo", run=interrupt)
        result = runner.invoke(entry_point.app, ["demo"])
        assert result.exit_code == 130
        assert "Traceback" not in result.output

    def test_other_exceptions_are_not_hidden(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(out: Path, seed: int) -> None:
            raise ZeroDivisionError

        stand_in(monkeypatch, "fencepost.demo", run=fail)
        assert isinstance(runner.invoke(entry_point.app, ["demo"]).exception, ZeroDivisionError)


class TestDemo:
    def test_passes_folder_and_seed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: list[tuple[Path, int]] = []
        stand_in(monkeypatch, "fencepost.demo", run=lambda out, seed: calls.append((out, seed)))
        assert runner.invoke(entry_point.app, ["demo"]).exit_code == 0
        assert (
            runner.invoke(entry_point.app, ["demo", "--out", "here", "--seed", "7"]).exit_code == 0
        )
        assert calls == [(Path("demo-out"), 0), (Path("here"), 7)]


@pytest.mark.usefixtures("relate_benchmark")
class TestBench:
    def test_json(self) -> None:
        result = runner.invoke(entry_point.app, ["bench", "relate", "--verify", "10", "--json"])
        assert result.exit_code == 0
        assert json.loads(result.stdout) == {"pairs": 20_000, "seed": 0, "verify": 10}

    def test_table(self) -> None:
        result = runner.invoke(entry_point.app, ["bench", "relate", "--pairs", "77"])
        assert result.exit_code == 0
        assert "77" in result.stdout

    @pytest.mark.parametrize("arguments", [["relate"], ["--help"], []])
    def test_without_a_checkout_the_error_says_where_benchmarks_are(
        self, arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(entry_point, "_CHECKOUT", tmp_path)
        result = runner.invoke(entry_point.app, ["bench", *arguments])
        assert result.exit_code == 1
        assert "benchmarks come with a source checkout" in result.stderr
        assert str(tmp_path) in result.stderr.replace("\n", "")

    def test_an_unknown_benchmark_is_named(self) -> None:
        result = runner.invoke(entry_point.app, ["bench", "nonsense"])
        assert result.exit_code == 2
        assert "nonsense" in result.stderr
