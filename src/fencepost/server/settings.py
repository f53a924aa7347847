"""`Settings` and `Limits` of a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fencepost.geometry.space import SpaceName


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request, tenant or connection.

    Attributes
    ----------
    body_bytes : int
        Size of a request body.
    expression_chars : int
        Length of an expression or a composite.
    vertices : int
        Vertices of all geometries of a subscription, and of an event.
    subscriptions : int
        Subscriptions of a tenant.
    requests_per_s : float
        Average request rate of a key; 0 for no limit.
    burst : int
        Requests of a key that may exceed the average rate at once.
    connections : int
        Open message streams of the server, and open publishing sockets.
    body_timeout_s : float
        Time in which a request body must arrive.
    track_rules : int
        Distinct sets of tracking rules of a tenant.
    tracked_objects : int
        Objects that are tracked under one set of rules; further objects are not tracked.
    composites : int
        Composites of a tenant.
    composite_members : int
        Members of a composite, including those of nested composites.
    live_members : int
        Events that are kept for the composites of a tenant, counted once for each member that
        they can be.
    detections_per_event : int
        Detections of a composite that one event completes.
    safe_regions : int
        Safe regions that are remembered for a tenant; regions beyond it are withdrawn.
    """

    body_bytes: int = 16 << 20
    expression_chars: int = 262_144
    vertices: int = 100_000
    subscriptions: int = 10_000_000
    requests_per_s: float = 0.0
    burst: int = 200
    connections: int = 10_000
    body_timeout_s: float = 30.0
    track_rules: int = 64
    tracked_objects: int = 1_000_000
    composites: int = 10_000
    composite_members: int = 8
    live_members: int = 100_000
    detections_per_event: int = 1_000
    safe_regions: int = 20_000


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings with which a server runs.

    Attributes
    ----------
    folder : Path
        Folder of the database.
    space : {"wgs84", "planar"}
        Coordinate space; fixed when the folder is created.
    retention_s : float
        Seconds that events and messages are kept, whether read or not.
    open_access : bool
        Whether requests without a key have every scope, as the tenant "default".
    allow_private_webhooks : bool
        Whether webhooks may use private addresses.
    mqtt : str or None
        The MQTT broker, as HOST:PORT or mqtt://USER:PASSWORD@HOST:PORT; mqtts:// for TLS.
    lateness_s : float
        Seconds by which the time of an event may lag behind the newest event of its tenant and
        still be joined by composites.
    limits : Limits
    """

    folder: Path
    space: SpaceName = "wgs84"
    retention_s: float = 7 * 86_400.0
    open_access: bool = False
    allow_private_webhooks: bool = False
    mqtt: str | None = None
    lateness_s: float = 60.0
    limits: Limits = Limits()
