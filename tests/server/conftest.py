"""Fixtures of the server's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.serving import Running, running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    """Yield a server without keys, in a new folder."""
    with running(tmp_path / "data") as server:
        yield server
