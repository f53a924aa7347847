"""The rule of the client: an object sends an event only if it may match a subscription.

The module needs the standard library only, so it can be copied to a client. `safe-client.js` is the
same in JavaScript.

A safe region consists of shapes that the object must stay in and shapes that it must stay out of.
A shape is a tuple of a name and numbers:

    box     x0 y0 x1 y1
    round   x y sx sy r2         (sx (px - x))^2 + (sy (py - y))^2 <= r2: a disc or an ellipse
    planes  x0 y0 x1 y1 a b c a b c ...      in the box, and a (px - x0) + b (py - y0) <= c for each

The server has moved the boundaries of the shapes by more than the rounding error of doubles here.
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
_TOO_LARGE = 2**53  # from here on, JavaScript cannot tell all integers apart
_NUMBER = r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_WKT_POINT = re.compile(rf"\s*POINT\s*\(\s*{_NUMBER}\s+{_NUMBER}\s*\)\s*", re.ASCII | re.IGNORECASE)


def shape_contains(shape: Shape, x: float, y: float) -> bool:
    """Return whether a shape contains a point."""
    kind = shape[0]
    if kind == "round":
        _, middle_x, middle_y, scale_x, scale_y, limit = shape
        dx, dy = (x - middle_x) * scale_x, (y - middle_y) * scale_y
        return bool(dx * dx + dy * dy <= limit)
    if not (shape[1] <= x <= shape[3] and shape[2] <= y <= shape[4]):
        return False
    dx, dy = x - shape[1], y - shape[2]
    return all(shape[k] * dx + shape[k + 1] * dy <= shape[k + 2] for k in range(5, len(shape), 3))


@dataclass(frozen=True, slots=True)
class SafeRegion:
    """The region in which an object need not send events while its attributes stay as they are.

    An event in the region, with unchanged attributes, matches no subscription or, in mode "same" of
    `SafeRegions`, the same subscriptions as at the position `at`. The region is an inner bound of
    the points where that holds. So silence in the region is safe; an event outside of it may be
    sent in vain.

    Attributes
    ----------
    safe : bool
        Whether there is a region.
    inside, outside : tuples of shapes
        The object must be in all `inside` shapes and in none of the `outside` shapes.
    attributes : mapping
        The values of the attributes that subscriptions use, as they were; None if missing.
    position : str
        The attribute that holds the object's position.
    at : pair of float, optional
        The position for which the region was made.
    version : int
        The version of the subscriptions for which it was made. A withdrawal at a later version
        voids it.
    number : int
        Identifies the region.
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
        """Return whether the object is safe at a point."""
        return self.encloses(x, y) and not any(
            shape_contains(shape, x, y) for shape in self.outside
        )

    def encloses(self, x: float, y: float) -> bool:
        """Return whether a point is in all `inside` shapes; it may be in a hole."""
        finite = math.isfinite(x) and math.isfinite(y)
        return self.safe and finite and all(shape_contains(shape, x, y) for shape in self.inside)

    def is_unchanged(self, attributes: Mapping[str, Any]) -> bool:
        """Return whether the attributes that subscriptions use have their old values."""
        return all(
            values_equal(value, json_value(attributes.get(name)))
            for name, value in self.attributes.items()
        )

    def is_silent(self, event: Mapping[str, Any]) -> bool:
        """Return whether the object need not send an event."""
        attributes = attributes_of(event)
        point = point_of(attributes.get(self.position))
        return point is not None and self.contains(*point) and self.is_unchanged(attributes)

    def to_keep_json(self, at: tuple[float, float]) -> str:
        """Return the answer to an object that has the region already.

        It has the number of the region and the object's position.
        """
        return json.dumps({"format": _FORMAT, "keep": self.number, "at": at})

    def to_json(self) -> str:
        """Return the region as JSON, for `from_json` or the client in JavaScript."""
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
        """Return the region that `to_json` wrote; raise ValueError if it is not one."""
        fields = json.loads(text)
        if not isinstance(fields, dict) or fields.pop("format", None) != _FORMAT:
            raise ValueError(f"this is not a safe region of format {_FORMAT}; saw {text!r:.60}")
        for name in ("inside", "outside"):
            fields[name] = tuple(tuple(shape) for shape in fields[name])
        if fields["at"] is not None:
            fields["at"] = tuple(fields["at"])
        return cls(**fields)


class SafeClient:
    """The state of an object that sends as few events as it may.

    The object sends the events for which `should_send` returns true, passes each answer to
    `accept`, and each withdrawal to `withdraw`. It sends every event until the last event sent is
    answered.

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
        self._awaits_answer = False
        self._last_sent: Mapping[str, Any] = {}
        self._withdrawn_version = -1

    def should_send(self, event: Mapping[str, Any]) -> bool:
        """Return whether to send an event."""
        if self.region is not None and not self._awaits_answer and self.region.is_silent(event):
            self.kept_back += 1
            return False
        self._awaits_answer = True
        self._last_sent = attributes_of(event)
        self.sent += 1
        return True

    def accept(self, answer: SafeRegion | str | bytes) -> None:
        """Take an answer. An answer to an earlier event, or a withdrawn region, is ignored."""
        if isinstance(answer, SafeRegion):
            self._take(answer)
            return
        fields = json.loads(answer)
        if isinstance(fields, dict) and fields.get("format") == _FORMAT and "keep" in fields:
            region = self.region
            if region is not None and region.number == fields["keep"]:
                self._awaits_answer = not self._answers(region.position, tuple(fields["at"]))
        else:
            self._take(SafeRegion.from_json(answer))

    def _take(self, region: SafeRegion) -> None:
        if self._answers(region.position, region.at) and region.version >= self._withdrawn_version:
            self.region, self._awaits_answer = (region if region.safe else None), False

    def _answers(self, position: str, at: tuple[float, ...] | None) -> bool:
        return at is not None and at == point_of(self._last_sent.get(position))

    def withdraw(self, version: int) -> None:
        """Drop the region, and ignore later answers, if made before this version."""
        self._withdrawn_version = max(self._withdrawn_version, version)
        if self.region is not None and self.region.version < version:
            self.region = None


def attributes_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the attributes of an event; of a Feature, its properties, id and geometry."""
    if event.get("type") != "Feature":
        return event
    properties = event.get("properties") or {}
    qualified = {f"properties.{name}": value for name, value in properties.items()}
    return {**properties, **qualified, "id": event.get("id"), "geometry": event.get("geometry")}


def point_of(value: Any) -> tuple[float, float] | None:
    """Return the coordinates of a GeoJSON, Shapely or WKT point; None for anything else."""
    if isinstance(value, str):
        match = _WKT_POINT.fullmatch(value)
        return None if match is None else _finite(float(match[1]), float(match[2]))
    if isinstance(value, Mapping):
        coordinates = value.get("coordinates") if value.get("type") == "Point" else None
    elif getattr(value, "geom_type", None) == "Point" and not value.is_empty:
        coordinates = (value.x, value.y)
    else:
        return None
    if not isinstance(coordinates, Sequence) or len(coordinates) < 2:
        return None
    if not all(
        isinstance(number, int | float) and not isinstance(number, bool)
        for number in coordinates[:2]
    ):
        return None
    try:
        return _finite(float(coordinates[0]), float(coordinates[1]))
    except OverflowError:
        return None


def _finite(x: float, y: float) -> tuple[float, float] | None:
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None


def json_value(value: Any) -> Any:
    """Return a value as JSON has it: None if it is missing, UNUSABLE if JSON cannot hold it."""
    if getattr(value, "shape", None) == ():  # a NumPy scalar
        value = value.item()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value if math.isfinite(value) else UNUSABLE
    if isinstance(value, int):
        return value if abs(value) < _TOO_LARGE else UNUSABLE
    if isinstance(value, list | tuple):
        items = [json_value(item) for item in value]
        return UNUSABLE if any(item is UNUSABLE for item in items) else items
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        members = {name: json_value(item) for name, item in value.items()}
        return UNUSABLE if any(item is UNUSABLE for item in members.values()) else members
    return UNUSABLE


def values_equal(a: Any, b: Any) -> bool:
    """Return whether two JSON values are equal.

    True is not equal to 1, and UNUSABLE is equal to nothing.
    """
    if _json_type(a) != _json_type(b) or b is UNUSABLE:
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(values_equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(values_equal(a[name], b[name]) for name in a)
    return bool(a == b)


def _json_type(value: object) -> type:
    return float if type(value) is int else type(value)
