"""`PageRun` finds outputs that differ from what a page shows, and outputs that it does not show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.page_blocks import PageRun, blocks_of

RIGHT = {
    "a comment": "```python\nprint(1 + 1)  # 2\n```\n",
    "more comments": "```python\nfor n in (1, 2):\n    print(n)\n# 1\n# 2\n```\n",
    "a value": "```python\nx = 2\nx + 1  # 3: one more\n```\n",
    "a block below": "```python\nprint('a')\nprint('b')\n```\n\n```text\na\nb\n```\n",
    "the rest": "```python\nfor n in range(9):\n    print(n)\n```\n```text\n0\n...\n```\n",
    "a command": "```sh\necho a\n```\n\n```text\na\n```\n",
    "a command, not shown": "```sh\necho a\n```\n",
    "names of an earlier block": "```python\ny = 1\n```\nthen\n```python\ny  # 1\n```\n",
    "exempt": '```python title="not run: needs a cluster"\nraise SystemExit\n```\n',
}
WRONG = {
    "a comment": "```python\nprint(1 + 1)  # 3\n```\n",
    "a value": "```python\nx = 2\nx + 1  # 4\n```\n",
    "not shown": "```python\nprint(1)\n```\n",
    "a block below": "```python\nprint('a')\n```\n\n```text\nb\n```\n",
    "nothing printed": "```python\nx = 1\n```\n\n```text\nb\n```\n",
    "a command": "```sh\necho a\n```\n\n```text\nb\n```\n",
    "a command that fails": "```sh\nfalse\necho a\n```\n",
    "a warning": "```python\nimport warnings, fencepost\n"
    "warnings.warn('w', fencepost.FencepostWarning)\n```\n",
}


def run(page: str, folder: Path) -> None:
    page_run = PageRun("page", folder)
    for block in blocks_of(page):
        if block.runs:
            page_run.run(block)


@pytest.mark.parametrize("page", RIGHT.values(), ids=RIGHT)
def test_right(page: str, tmp_path: Path) -> None:
    run(page, tmp_path)


@pytest.mark.parametrize("page", WRONG.values(), ids=WRONG)
def test_wrong(page: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run(page, tmp_path)
