"""How many vertices a definition may have."""

from __future__ import annotations

import json

from fencepost.errors import ModelError
from fencepost.server.definitions import Definition
from fencepost.server.settings import Limits


def check_vertices(definition: Definition, limits: Limits) -> None:
    """Refuse a definition with too many vertices: each has a comma before it."""
    given = definition.asked.get("expression", definition.asked.get("composite"))
    text = given if isinstance(given, str) else json.dumps(given)
    if text.count(",") > 2 * limits.vertices:
        raise ModelError(f"it has more than {limits.vertices:,} vertices; simplify its geometries")
