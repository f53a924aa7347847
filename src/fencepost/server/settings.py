"""What can be set about a server, and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request, tenant or connection may ask for.

    Attributes
    ----------
    body_bytes : int
        Of a request.
    expression_chars : int
        Of an expression or a composite.
    vertices : int
        Of all geometries of a subscription, and of an event.
    subscriptions : int
        Of a tenant.
    requests_per_s : float
        Of a key, on average over `burst` requests; 0 for no limit.
    burst : int
    connections : int
        WebSockets and server-sent events of a tenant at once.
    body_seconds : float
        In which a request must have come.
    track_rules : int
        Different sets of rules for tracked objects, of a tenant.
    tracked_objects : int
        Objects that are remembered under one of them; those beyond are not tracked.
    composites : int
        Of a tenant.
    composite_members : int
        Of one of them, those of composites within included.
    live_members : int
        Events that are kept for composites of a tenant, once for each part they can play.
    detections_per_event : int
        How many detections of a composite one event completes at most.
    safe_regions : int
        Of a tenant, that are remembered; those beyond are withdrawn.
    """

    body_bytes: int = 16 << 20
    expression_chars: int = 262_144
    vertices: int = 100_000
    subscriptions: int = 10_000_000
    requests_per_s: float = 0.0
    burst: int = 200
    connections: int = 10_000
    body_seconds: float = 30.0
    track_rules: int = 64
    tracked_objects: int = 1_000_000
    composites: int = 10_000
    composite_members: int = 8
    live_members: int = 100_000
    detections_per_event: int = 1_000
    safe_regions: int = 20_000


@dataclass(frozen=True, slots=True)
class Settings:
    """How a server runs.

    Attributes
    ----------
    folder : Path
        Of the database.
    space : {"wgs84", "planar"}
        What coordinates mean; fixed when the folder is made.
    retention_s : float
        For how long events and messages are kept, read or not.
    open_access : bool
        Whether requests without a key may do everything, as the tenant "default".
    allow_private_webhooks : bool
        Whether webhooks may go to private addresses.
    mqtt : str or None
        The broker, as HOST:PORT or mqtt://USER:PASSWORD@HOST:PORT; mqtts:// for TLS.
    lateness_s : float
        How far behind the newest event of its tenant another may be, by their own times, to be
        joined with others by composites.
    limits : Limits
    """

    folder: Path
    space: str = "wgs84"
    retention_s: float = 7 * 86_400.0
    open_access: bool = False
    allow_private_webhooks: bool = False
    mqtt: str | None = None
    lateness_s: float = 60.0
    limits: Limits = Limits()
