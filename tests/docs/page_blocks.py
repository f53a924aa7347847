"""`PageRun` runs the code of a page as a reader would paste it, and compares what the page shows.

Blocks run from the top of the page to its end, Python in one namespace, `sh` in one folder. A page
shows an output in one of these ways:

- `print(x)  # text`: what the line prints; more lines as comments right below the statement
- `m.match(event)  # ['a']: a note`: the value of an expression, and anything after it
- a block ```text right below the code: all that the block prints and does not show in comments,
  including warnings of Fencepost. A last line `...` stands for any number of lines.

A block that cannot run says why in its title: ```python title="not run: needs an MQTT broker".
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import sys
import tokenize
import warnings
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencepost import FencepostWarning
from tests.waiting import WAIT_S

_FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]*)"')
NOT_RUN = "not run: "


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page; `shown` is the text of the ```text block right below it."""

    language: str
    title: str
    code: str
    line: int
    shown: str | None

    @property
    def runs(self) -> bool:
        """Whether the block is code that the page does not exempt."""
        return self.language in {"python", "sh"} and not self.title.startswith(NOT_RUN)


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page in Markdown."""
    matches = list(_FENCE.finditer(page))
    blocks = []
    for match, below in zip(matches, [*matches[1:], None], strict=False):
        adjacent = below is not None and not page[match.end() : below.start()].strip()
        shown = below[3] if below is not None and adjacent and below[1] == "text" else None
        title = _TITLE.search(match[2])
        line = page.count("\n", 0, match.start(3))
        blocks.append(Block(match[1], title[1] if title else "", match[3], line, shown))
    return blocks


@dataclass
class PageRun:
    """A run of the blocks of a page, in a folder.

    Attributes
    ----------
    name : str
    folder : Path
        The working folder of commands; Python runs in that of the process.
    replaced : mapping of str to str
        What the test puts in place of an address or a folder that a reader would have.
    """

    name: str
    folder: Path
    replaced: Mapping[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def run(self, block: Block) -> None:
        """Run a block, and compare its output with what the page shows."""
        code = block.code
        for text, replacement in self.replaced.items():
            code = code.replace(text, replacement)
        if block.language == "sh":
            printed = self._run_shell(code)
        else:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", FencepostWarning)
                printed = "".join(self._run_python(code, block.line))
            printed += "".join(f"FencepostWarning: {warning.message}\n" for warning in caught)
            assert block.shown is not None or not printed, self._at(
                block.line, f"the page does not show this output: {printed}"
            )
        if block.shown is not None:
            check(printed.splitlines(), block.shown.splitlines(), self._at(block.line, "output"))

    def _run_python(self, code: str, first: int) -> Iterator[str]:
        """Run statements one by one; yield what they print and do not show in comments."""
        comments, alone = _comments(code)
        lines = code.splitlines()
        for statement in ast.parse(code, self.name).body:
            begin, end = statement.lineno, statement.end_lineno or 0
            ast.increment_lineno(statement, first)
            with redirect_stdout(io.StringIO()) as output:
                value = self._evaluate(statement)
            printed = output.getvalue()
            shown = [
                comments[line] for line in range(begin, end + 1)
                if line in comments and ("print(" in lines[line - 1] or line == end)
            ]  # fmt: skip
            while (end := end + 1) in alone:
                shown.append(comments[end])
            if printed and shown:
                check(printed.splitlines(), shown, self._at(first + begin, "output"))
            else:
                yield printed
            note = comments.get((statement.end_lineno or 0) - first)
            if value is not None and note is not None and not printed:
                text = repr(value)
                place = self._at(first + begin, f"the value is {text}, the page has {note}")
                assert note.startswith(text), place

    def _evaluate(self, statement: ast.stmt) -> object:
        if isinstance(statement, ast.Expr):
            expression = ast.Expression(statement.value)
            value: object = eval(compile(expression, self.name, "eval"), self.names)
            return value
        exec(compile(ast.Module([statement], []), self.name, "exec"), self.names)
        return None

    def _run_shell(self, code: str) -> str:
        start = f'set -e\nfencepost() {{ "{sys.executable}" -m fencepost.cli "$@"; }}\n'
        server = self.replaced.get("http://127.0.0.1:8080", "")
        done = subprocess.run(
            ["bash", "-c", start + code],
            capture_output=True, text=True, timeout=WAIT_S, check=False, cwd=self.folder,
            env={**os.environ, "FENCEPOST_SERVER": server, "NO_COLOR": "1", "COLUMNS": "200"},
        )  # fmt: skip
        assert done.returncode == 0, f"{self.name}: {code}{done.stderr}"
        return done.stdout

    def _at(self, line: int, what: str) -> str:
        return f"{self.name}:{line}: {what}"


def _comments(code: str) -> tuple[dict[int, str], set[int]]:
    """Return the comments of code by line, and the lines that have nothing else."""
    comments, alone = {}, set()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.removeprefix("#").removeprefix(" ")
            if not token.line[: token.start[1]].strip():
                alone.add(token.start[0])
    return comments, alone


def check(printed: list[str], shown: list[str], what: str) -> None:
    """Check that lines are those that a page shows, where `...` at the end stands for the rest."""
    if shown[-1:] == ["..."]:
        shown = shown[:-1]
        printed = printed[: len(shown)]
    printed, shown = ([line.rstrip() for line in lines] for lines in (printed, shown))
    assert printed == shown, "\n".join([f"{what}: the page shows", *shown, "printed:", *printed])
