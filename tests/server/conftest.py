"""What tests of the server share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.serving import Running, running


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    """A server that lets everybody do everything, with a folder of its own."""
    with running(tmp_path / "data") as found:
        yield found
