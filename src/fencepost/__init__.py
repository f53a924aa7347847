"""Location-aware publish/subscribe: the public names of Fencepost.

A name is loaded when it is first used. Modules that need the compiler take a third of a second to
import, which `fencepost --help` and clients need not wait for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.errors import (
    DeliveryError,
    FencepostError,
    FencepostWarning,
    GeometryError,
    GeometryProblem,
    IndexingError,
    LanguageError,
    ModelError,
    RequestRefused,
    StoreError,
    Unreachable,
)
from fencepost.geometry.relation import Relation
from fencepost.lazy_exports import lazy_getattr

__version__ = "0.2.0"

if TYPE_CHECKING:
    from fencepost.client.optional_clients import AsyncClient, Client
    from fencepost.composite.detection import Detection
    from fencepost.composite.detector import Detector
    from fencepost.composite.model import Composite
    from fencepost.delivery.webhook_signature import verify_webhook
    from fencepost.engine.explain.explanation import Explanation
    from fencepost.engine.matcher import Matcher
    from fencepost.engine.relate import relate, relate_one_to_many, relate_pairs
    from fencepost.engine.simplify import simplify, simplify_many
    from fencepost.saferegion.client_rule import SafeClient, SafeRegion
    from fencepost.saferegion.safe_regions import SafeRegions
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
    "FencepostWarning",
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

if not TYPE_CHECKING:  # hidden from type checkers, which would let every misspelt name pass
    __getattr__ = lazy_getattr(
        __name__,
        {
            "client.optional_clients": ["AsyncClient", "Client"],
            "composite.detection": ["Detection"],
            "composite.detector": ["Detector"],
            "composite.model": ["Composite"],
            "delivery.webhook_signature": ["verify_webhook"],
            "engine.explain.explanation": ["Explanation"],
            "engine.matcher": ["Matcher"],
            "engine.relate": ["relate", "relate_one_to_many", "relate_pairs"],
            "engine.simplify": ["simplify", "simplify_many"],
            "saferegion.client_rule": ["SafeClient", "SafeRegion"],
            "saferegion.safe_regions": ["SafeRegions"],
            "tracking.notification": ["Notification"],
            "tracking.roaming": ["Encounter", "Roaming"],
            "tracking.tracker": ["Tracker"],
        },
    )


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
