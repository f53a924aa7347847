"""Standing questions about places, matched against a stream of events.

The public names, nothing else. They are loaded when first used: what needs the compiler costs
a third of a second to import, and `fencepost --help` should not pay for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fencepost.errors import (
    DeliveryError,
    FencepostError,
    GeometryError,
    GeometryProblem,
    IndexingError,
    LanguageError,
    ModelError,
    StoreError,
)
from fencepost.model.relation import Relation

if TYPE_CHECKING:
    from fencepost.composite.model import Composite
    from fencepost.composite.notation import parse_ops4st, render_ops4st
    from fencepost.language.ops4st.event import parse_ops4st_event
    from fencepost.match.explain import Explanation
    from fencepost.match.matcher import Matcher
    from fencepost.match.relate import relate, relate_one_to_many, relate_pairs
    from fencepost.match.simplify import simplify
    from fencepost.saferegion.client import SafeClient, SafeRegion
    from fencepost.saferegion.regions import SafeRegions

__all__ = [
    "Composite",
    "DeliveryError",
    "Explanation",
    "FencepostError",
    "GeometryError",
    "GeometryProblem",
    "IndexingError",
    "LanguageError",
    "Matcher",
    "ModelError",
    "Relation",
    "SafeClient",
    "SafeRegion",
    "SafeRegions",
    "StoreError",
    "parse_ops4st",
    "parse_ops4st_event",
    "relate",
    "relate_one_to_many",
    "relate_pairs",
    "render_ops4st",
    "simplify",
]

_LOADED_WHEN_USED = {
    "Composite": "fencepost.composite.model",
    "Explanation": "fencepost.match.explain",
    "Matcher": "fencepost.match.matcher",
    "SafeClient": "fencepost.saferegion.client",
    "SafeRegion": "fencepost.saferegion.client",
    "SafeRegions": "fencepost.saferegion.regions",
    "parse_ops4st": "fencepost.composite.notation",
    "parse_ops4st_event": "fencepost.language.ops4st.event",
    "relate": "fencepost.match.relate",
    "relate_one_to_many": "fencepost.match.relate",
    "relate_pairs": "fencepost.match.relate",
    "render_ops4st": "fencepost.composite.notation",
    "simplify": "fencepost.match.simplify",
}

if not TYPE_CHECKING:  # a type checker that saw this would let every misspelt name pass

    def __getattr__(name: str) -> object:
        if name not in _LOADED_WHEN_USED:
            raise AttributeError(f"module 'fencepost' has no attribute {name!r}")
        value = getattr(import_module(_LOADED_WHEN_USED[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
