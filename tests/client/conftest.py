"""What tests of the clients share."""

from __future__ import annotations

from typing import Any

import pytest

from tests.client.driving import KINDS
from tests.server.conftest import server

__all__ = ["make_client", "server"]


@pytest.fixture(params=sorted(KINDS))
def make_client(request: pytest.FixtureRequest) -> Any:
    """Makes one client or the other."""
    return KINDS[request.param]
