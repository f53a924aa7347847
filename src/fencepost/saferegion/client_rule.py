"""The client's rule: whether an event must be sent. The standard library only, so copy it anywhere.

A region is some shapes in which the object must be and some in which it must not be, each a tuple
of a name and numbers:

    box     x0 y0 x1 y1
    round   x y sx sy r2         (sx (px - x))^2 + (sy (py - y))^2 <= r2: a disc or an ellipse
    planes  x0 y0 x1 y1 a b c a b c ...      in that box, and a (px - x0) + b (py - y0) <= c of each

Whoever made them has moved their borders by more than doubles are rounded here. `safe-client.js` is
the same in JavaScript.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[Any, ...]
UNUSABLE = object()
_FORMAT = 1
_TOO_LARGE = 2**53  # from here on JavaScript takes some integers for others
_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_WKT_POINT = re.compile(rf"\s*POINT\s*\(\s*{_NUMBER}\s+{_NUMBER}\s*\)\s*", re.ASCII | re.IGNORECASE)


def is_in(shape: Shape, x: float, y: float) -> bool:
    """Whether a point is in a shape."""
    kind = shape[0]
    if kind == "round":
        _, middle_x, middle_y, scale_x, scale_y, limit = shape
        across, along = (x - middle_x) * scale_x, (y - middle_y) * scale_y
        return bool(across * across + along * along <= limit)
    if not (shape[1] <= x <= shape[3] and shape[2] <= y <= shape[4]):
        return False
    across, along = x - shape[1], y - shape[2]
    return all(
        shape[k] * across + shape[k + 1] * along <= shape[k + 2] for k in range(5, len(shape), 3)
    )


@dataclass(frozen=True, slots=True)
class SafeRegion:
    """Where an object may be without a word, as long as its attributes are what they were.

    Attributes
    ----------
    safe : bool
        Whether there is any such place.
    inside, outside : tuples of shapes
        It must be in all of the first and in none of the second.
    attributes : mapping
        Those that subscriptions ask about, as they were; None is a missing one.
    position : str
        The attribute that says where the object is.
    at : pair of float, optional
        Where it was.
    version : int
        Of the subscriptions that it was made for; what was withdrawn at a later one is void.
    number : int
        Which of all regions it is.
    """

    safe: bool
    inside: tuple[Shape, ...] = ()
    outside: tuple[Shape, ...] = ()
    attributes: Mapping[str, object] = field(default_factory=dict)
    position: str = "geometry"
    at: tuple[float, float] | None = None
    version: int = 0
    number: int = 0

    def contains(self, x: float, y: float) -> bool:
        """Whether the object is safe at a point."""
        return self.is_around(x, y) and not any(is_in(shape, x, y) for shape in self.outside)

    def is_around(self, x: float, y: float) -> bool:
        """Whether a point is in the region, or in what it leaves out."""
        finite = math.isfinite(x) and math.isfinite(y)
        return self.safe and finite and all(is_in(shape, x, y) for shape in self.inside)

    def is_unchanged(self, attributes: Mapping[str, Any]) -> bool:
        """Whether an object's other attributes are what they were."""
        return all(
            is_same(value, plain(attributes.get(name))) for name, value in self.attributes.items()
        )

    def is_silent(self, event: Mapping[str, Any]) -> bool:
        """Whether an event of the object need not be sent."""
        found = attributes_of(event)
        point = point_of(found.get(self.position))
        return point is not None and self.contains(*point) and self.is_unchanged(found)

    def kept(self, at: tuple[float, float]) -> str:
        """In place of `to_json`, for an object at a point that has the region already."""
        return json.dumps({"format": _FORMAT, "keep": self.number, "at": at})

    def to_json(self) -> str:
        """The region as JSON, for `from_json` here or in JavaScript."""
        fields = {
            "format": _FORMAT,
            "safe": self.safe,
            "inside": self.inside,
            "outside": self.outside,
            "attributes": dict(self.attributes),
            "position": self.position,
            "at": self.at,
            "version": self.version,
            "number": self.number,
        }
        return json.dumps(fields, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> SafeRegion:
        """The region that `to_json` wrote; ValueError where it is of another format."""
        fields = json.loads(text)
        if not isinstance(fields, dict) or fields.pop("format", None) != _FORMAT:
            raise ValueError(f"this is no safe region of format {_FORMAT}; saw {text!r:.60}")
        for name in ("inside", "outside"):
            fields[name] = tuple(tuple(shape) for shape in fields[name])
        if fields["at"] is not None:
            fields["at"] = tuple(fields["at"])
        return cls(**fields)


class SafeClient:
    """What an object has to keep to send no more than it must.

    It sends what `should_send` says, gives what comes back to `accept`, and `withdraw`s when told.
    Until the answer to what it sent last is there, it sends everything.

    Examples
    --------
    >>> client = SafeClient()
    >>> event = {"geometry": {"type": "Point", "coordinates": [1.0, 2.0]}}
    >>> client.should_send(event)
    True
    >>> client.accept(SafeRegion(True, (("box", 0.0, 0.0, 4.0, 4.0),), at=(1.0, 2.0)))
    >>> client.should_send(event)
    False
    """

    def __init__(self) -> None:
        self.region: SafeRegion | None = None
        self.sent = 0
        self.kept_back = 0
        self._waiting = False
        self._last: Mapping[str, Any] = {}
        self._withdrawn = -1

    def should_send(self, event: Mapping[str, Any]) -> bool:
        """Whether to send an event."""
        if self.region is not None and not self._waiting and self.region.is_silent(event):
            self.kept_back += 1
            return False
        self._waiting = True
        self._last = attributes_of(event)
        self.sent += 1
        return True

    def accept(self, answer: SafeRegion | str | bytes) -> None:
        """Take the answer to what was sent; one to another event, or void, is ignored."""
        if isinstance(answer, SafeRegion):
            self._take(answer)
            return
        fields = json.loads(answer)
        if isinstance(fields, dict) and fields.get("format") == _FORMAT and "keep" in fields:
            own = self.region
            if own is not None and own.number == fields["keep"]:
                self._waiting = not self._answers(own.position, tuple(fields["at"]))
        else:
            self._take(SafeRegion.from_json(answer))

    def _take(self, region: SafeRegion) -> None:
        if self._answers(region.position, region.at) and region.version >= self._withdrawn:
            self.region, self._waiting = (region if region.safe else None), False

    def _answers(self, position: str, at: tuple[float, ...] | None) -> bool:
        return at is not None and at == point_of(self._last.get(position))

    def withdraw(self, version: int) -> None:
        """Forget the region, and any made for fewer changes than this that is still to come."""
        self._withdrawn = max(self._withdrawn, version)
        if self.region is not None and self.region.version < version:
            self.region = None


def attributes_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The attributes of an event; of a GeoJSON Feature its properties, id and geometry."""
    if event.get("type") != "Feature":
        return event
    own = event.get("properties") or {}
    named = {f"properties.{name}": value for name, value in own.items()}
    return {**own, **named, "id": event.get("id"), "geometry": event.get("geometry")}


def point_of(value: Any) -> tuple[float, float] | None:
    """A GeoJSON Point, a Shapely one or one in WKT as coordinates; None for anything else."""
    if isinstance(value, str):
        found = _WKT_POINT.fullmatch(value)
        return None if found is None else _finite(float(found[1]), float(found[2]))
    if isinstance(value, Mapping):
        given = value.get("coordinates") if value.get("type") == "Point" else None
    elif getattr(value, "geom_type", None) == "Point" and not value.is_empty:
        given = (value.x, value.y)
    else:
        return None
    if not isinstance(given, Sequence) or len(given) < 2:
        return None
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in given[:2]):
        return None
    try:
        return _finite(float(given[0]), float(given[1]))
    except OverflowError:
        return None


def _finite(x: float, y: float) -> tuple[float, float] | None:
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None


def plain(value: Any) -> Any:
    """A value as JSON has it, None where it is missing, or UNUSABLE."""
    if getattr(value, "shape", None) == ():  # one of NumPy's
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value if math.isfinite(value) else UNUSABLE
    if isinstance(value, int):
        return value if abs(value) < _TOO_LARGE else UNUSABLE
    if isinstance(value, list | tuple):
        items = [plain(item) for item in value]
        return UNUSABLE if any(item is UNUSABLE for item in items) else items
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        members = {name: plain(item) for name, item in value.items()}
        return UNUSABLE if any(item is UNUSABLE for item in members.values()) else members
    return UNUSABLE


def is_same(one: Any, other: Any) -> bool:
    """Whether two plain values are alike; true is not 1, and what is unusable is like nothing."""
    if _sort(one) != _sort(other) or other is UNUSABLE:
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(one[name], other[name]) for name in one)
    return bool(one == other)


def _sort(value: object) -> type:
    return float if type(value) is int else type(value)
