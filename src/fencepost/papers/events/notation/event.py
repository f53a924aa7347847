"""`parse_ops4st_event`: reads events such as ``ARITH:id=7,STRING:type="TAXI",time,x,y``."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.composite.member_conditions import is_name
from fencepost.cql2.expression_limits import check_text
from fencepost.cql2.parse_tree import excerpt
from fencepost.errors import LanguageError
from fencepost.events.times import format_instant, instant_of, parse_instant
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.papers.events.notation.notation_lexer import is_string, is_time, string_of, tokens_of
from fencepost.papers.events.notation.notation_reader import Settings, SubscriptionReader

_MILLISECOND = 1_000_000  # in nanoseconds


def parse_ops4st_event(
    text: str, *, geometry: str = "geometry", values: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Read an event: its attributes, its time and its coordinates.

    Parameters
    ----------
    text : str
        Any number of ``STRING:name="..."`` and ``ARITH:name=5``, then the time and the two
        coordinates, separated by commas. The time is in ISO 8601, or a whole number of
        milliseconds since 1970.
    geometry : str
        The name of the attribute for the point.
    values : mapping of str to number or str, optional
        The values of names that the text has instead of numbers or strings.

    Returns
    -------
    dict
        The attributes; `time`, in ISO 8601; and the point, a GeoJSON geometry.

    Raises
    ------
    LanguageError
        If the text is not an event; the error shows the position.

    Examples
    --------
    >>> parse_ops4st_event('ARITH:id=7,STRING:type="TAXI",2011-12-01T08:00:00Z,116.3,39.9')
    {'id': 7, 'type': 'TAXI', 'time': '2011-12-01T08:00:00Z', 'geometry': {'type': 'Point', \
'coordinates': [116.3, 39.9]}}
    """
    if not isinstance(text, str):
        raise LanguageError(f"an event in OPS4ST is text; saw {short_repr(text)}; give a str")
    check_text(text)
    settings = Settings(geometry=geometry, values=values or {})
    return _Reader(text, tokens_of(text, with_times=True), settings).event(geometry)


class _Reader(SubscriptionReader):
    def event(self, geometry: str) -> dict[str, object]:
        """Read the whole text as an event."""
        event: dict[str, object] = {}
        while self.ahead(1) == ":":
            self._attribute(event, {"time", geometry})
        time = self._time()
        self.expect(",", "and x after the time")
        x = self._coordinate("x")
        self.expect(",", "and y after x")
        point = [x, self._coordinate("y")]
        if self.index < len(self.texts) - 1:
            raise self.unexpected("the end")
        return event | {"time": time, geometry: {"type": "Point", "coordinates": point}}

    def number(self) -> int | float:
        """Read a number; a time is not a number, although it begins with digits."""
        if is_time(self.texts[self.index]):
            raise self.unexpected("a number")
        return super().number()

    def _attribute(self, event: dict[str, object], reserved: set[str]) -> None:
        kind = self.value_kind()
        first = self.index
        name = self.attribute().value
        if name in event or name in reserved:
            raise self.error_at(first, f"an event has {excerpt(name)} once; leave this one out")
        self.expect("=", "after the name of an attribute")
        event[name] = self.value(kind).value
        if not self.skip(";"):
            self.expect(",", "and the next attribute, or the time,")

    def _time(self) -> str:
        first = self.index
        token = self.texts[first]
        value: object
        if is_string(token) or is_time(token):
            self.advance()
            value = string_of(token) if is_string(token) else token
        elif is_name(token):
            value = self.named("a time")
        else:
            value = self.quantity("a time")
        try:
            if isinstance(value, int) and not isinstance(value, bool):
                return format_instant(value * _MILLISECOND)
            parsed = parse_instant(value) if isinstance(value, str) else None
            nanoseconds = parsed[0] if parsed else instant_of(value)
            if nanoseconds is not None:
                return format_instant(nanoseconds)
        except ValueError:  # a year without four digits
            pass
        raise self.error_at(
            first,
            f"a time is expected here; saw {excerpt(token)}; write it in ISO 8601, or in whole "
            "milliseconds since 1970",
        )

    def _coordinate(self, what: str) -> float:
        first = self.index
        try:
            return float(self.quantity(what))
        except OverflowError:
            raise self.error_at(first, f"{what} is too large for a double") from None
