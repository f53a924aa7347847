"""Which filters concern an object near a place: an index of where they can match.

A matcher beside the matcher. Each filter is a subscription of its own there: what it asks of
attributes that stay is as it was, and what it asks of the position is contact with a box. An event
whose position is a window finds all that could match anywhere in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import pyarrow.compute as pc
import shapely

from fencepost.cql2.ast import Geometry, Property, SpatialFunction
from fencepost.engine.matcher import Matcher
from fencepost.engine.subscriptions import Subscription
from fencepost.events.event_attributes import Row
from fencepost.filters.checks import Column, ColumnKind, Filter, RelateCheck, Term
from fencepost.geometry.space import Space
from fencepost.saferegion.match_zones import Want, want_of
from fencepost.saferegion.subscription_places import Usual, matcher_like
from fencepost.saferegion.zones import Box, widened

_MOST_KNOWN = 65536
_SOMEWHERE = (0.0, 0.0, 1.0, 1.0)


class Nearby:
    """Filters by where they can match, and by what else they ask.

    Parameters
    ----------
    position : str
        The attribute that moves.
    changing : frozenset of str
        Attributes that may be anything at any time.
    like : Matcher
        Whose space, stop words and clock to have.
    filters_of : callable
        From an id to its filters.
    """

    def __init__(
        self,
        position: str,
        changing: frozenset[str],
        like: Matcher,
        filters_of: Callable[[str], Sequence[Filter]],
    ) -> None:
        self._position = position
        self._changing = changing
        self._space = Space(like.space)
        self._filters_of = filters_of
        self._column = Column(ColumnKind.GEOMETRY, Property(position))
        self._index = matcher_like(like)
        self._several: dict[str, int] = {}  # ids of more than one filter, and of how many
        self._known: dict[str, tuple[Want | None, ...]] = {}
        self.extent: Box = (math.inf, math.inf, -math.inf, -math.inf)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def nbytes(self) -> int:
        """The size of the index."""
        size: int = self._index.stats()["bytes"]
        return size

    def put(self, given: Iterable[tuple[str, Sequence[Filter], int]]) -> None:
        """Add subscriptions, or let them take the place of others: ids, filters, expiry."""
        rows = []
        for id, filters, expires in given:
            self.remove(id)
            wants = self._remember(id, filters)
            if len(filters) > 1:
                self._several[id] = len(filters)
            for number, want in enumerate(wants):
                if want is None:
                    continue
                name = f"{number}:{id}"
                place = self._place(want)
                if place is not None:
                    rows.append(Subscription(name, None, name, expires, (want.fixed + place,)))
        if rows:
            self._index.add(rows, replace=True)

    def put_usual(self, prefix: str, found: Usual) -> None:
        """Add subscriptions of the usual forms at once. Ids have a prefix here."""
        far, high = self._space.limits
        limits = np.array([far, high, far, high])
        low = np.nextafter(found.boxes[:, :2], -np.inf)
        boxes = np.column_stack((low, np.nextafter(found.boxes[:, 2:], np.inf)))
        boxes = np.clip(boxes, -limits, limits)
        names = pc.binary_join_element_wise(f"0:{prefix}", found.ids, "")
        place = {self._position: (boxes, SpatialFunction.S_INTERSECTS.name)}
        self._index.subscribe_columns(names.combine_chunks(), regions=place, equals=found.equals)
        a, b, c, d = self.extent
        (x0, y0), (x1, y1) = boxes[:, :2].min(axis=0).tolist(), boxes[:, 2:].max(axis=0).tolist()
        self.extent = min(a, x0), min(b, y0), max(c, x1), max(d, y1)

    def remove(self, id: str) -> None:
        """Forget a subscription."""
        self._known.pop(id, None)
        for number in range(self._several.pop(id, 1)):
            name = f"{number}:{id}"
            if name in self._index:
                self._index.unsubscribe(name)

    def _remember(self, id: str, filters: Sequence[Filter]) -> tuple[Want | None, ...]:
        wants = tuple(
            want_of(terms, self._position, self._changing, self._space) for terms in filters
        )
        if len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[id] = wants
        return wants

    def wants(self, id: str) -> tuple[Want | None, ...]:
        """What the filters of a subscription want."""
        found = self._known.get(id)
        return self._remember(id, self._filters_of(id)) if found is None else found

    def _place(self, want: Want) -> tuple[Term, ...] | None:
        """The box of a filter as a condition; None where it is empty."""
        boxes = want.boxes()
        if any(x0 > x1 or y0 > y1 for x0, y0, x1, y1 in boxes):
            return None
        if not boxes or not all(map(math.isfinite, (edge for box in boxes for edge in box))):
            return ()
        grown = [widened(box) for box in boxes]
        for x0, y0, x1, y1 in grown:
            a, b, c, d = self.extent
            self.extent = min(a, x0), min(b, y0), max(c, x1), max(d, y1)
        parts = [shapely.box(*box) for box in grown]
        geometry = Geometry(parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts))
        return (Term(RelateCheck(self._column, SpatialFunction.S_INTERSECTS, geometry), False),)

    def find(self, attributes: Mapping[str, object], window: Box) -> list[tuple[str, int, Want]]:
        """Ids, numbers and filters that an object of these attributes may match in a window."""
        found = []
        for name in self._names(attributes, window):
            number, _, id = name.partition(":")
            want = self.wants(id)[int(number)]
            if want is not None:  # no point satisfies it
                found.append((id, int(number), want))
        return found

    def is_wanted(self, id: str, number: int, want: Want, attributes: Mapping[str, object]) -> bool:
        """Whether an object's attributes are what a filter asks of those that stay."""
        if not want.fixed:
            return True
        window = (want.boxes() or (_SOMEWHERE,))[0]
        return f"{number}:{id}" in self._names(attributes, window)

    def _names(self, attributes: Mapping[str, object], window: Box) -> Iterable[str]:
        far, high = self._space.limits
        x0, y0, x1, y1 = widened(window)
        clipped = max(x0, -far), max(y0, -high), min(x1, far), min(y1, high)
        event = {**attributes, self._position: shapely.box(*clipped)}
        return self._index.match(Row(event))
