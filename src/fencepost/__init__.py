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
    RequestRefused,
    StoreError,
    Unreachable,
)
from fencepost.model.relation import Relation

if TYPE_CHECKING:
    from fencepost.client.clients import AsyncClient, Client
    from fencepost.composite.detection import Detection
    from fencepost.composite.detector import Detector
    from fencepost.composite.model import Composite
    from fencepost.deliver.signing import verify_webhook
    from fencepost.match.explain import Explanation
    from fencepost.match.matcher import Matcher
    from fencepost.match.relate import relate, relate_one_to_many, relate_pairs
    from fencepost.match.simplify import simplify
    from fencepost.match.simplify_many import simplify_many
    from fencepost.saferegion.client import SafeClient, SafeRegion
    from fencepost.saferegion.regions import SafeRegions
    from fencepost.tracking.notification import Notification
    from fencepost.tracking.roaming import Encounter, Roaming
    from fencepost.tracking.tracker import Tracker

__all__ = [
    "AsyncClient",
    "Client",
    "Composite",
    "DeliveryError",
    "Detection",
    "Detector",
    "Encounter",
    "Explanation",
    "FencepostError",
    "GeometryError",
    "GeometryProblem",
    "IndexingError",
    "LanguageError",
    "Matcher",
    "ModelError",
    "Notification",
    "Relation",
    "RequestRefused",
    "Roaming",
    "SafeClient",
    "SafeRegion",
    "SafeRegions",
    "StoreError",
    "Tracker",
    "Unreachable",
    "relate",
    "relate_one_to_many",
    "relate_pairs",
    "simplify",
    "simplify_many",
    "verify_webhook",
]

_LOADED_WHEN_USED = {
    "AsyncClient": "fencepost.client.clients",
    "Client": "fencepost.client.clients",
    "Composite": "fencepost.composite.model",
    "Detection": "fencepost.composite.detection",
    "Detector": "fencepost.composite.detector",
    "Encounter": "fencepost.tracking.roaming",
    "Explanation": "fencepost.match.explain",
    "Matcher": "fencepost.match.matcher",
    "Notification": "fencepost.tracking.notification",
    "Roaming": "fencepost.tracking.roaming",
    "Tracker": "fencepost.tracking.tracker",
    "SafeClient": "fencepost.saferegion.client",
    "SafeRegion": "fencepost.saferegion.client",
    "SafeRegions": "fencepost.saferegion.regions",
    "relate": "fencepost.match.relate",
    "relate_one_to_many": "fencepost.match.relate",
    "relate_pairs": "fencepost.match.relate",
    "simplify": "fencepost.match.simplify",
    "simplify_many": "fencepost.match.simplify_many",
    "verify_webhook": "fencepost.deliver.signing",
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
