"""`NearbyFilters`: finds the filters that can match an object in a window.

Filters are indexed by a second matcher, each as a subscription of its own. It has the terms on
fixed attributes unchanged, and the term that the position meets a box, an outer bound of the points
where the filter can match. So a filter that is not found for a window matches nothing in it, as
long as the fixed attributes stay as they are.
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
from fencepost.saferegion.match_zones import MatchZones, match_zones_of
from fencepost.saferegion.subscription_places import SimpleSubscriptions, empty_matcher_like
from fencepost.saferegion.zones import Box, widened

_MAX_CACHED = 65536
_ANY_BOX = (0.0, 0.0, 1.0, 1.0)


class NearbyFilters:
    """Filters, indexed by where they can match and by their terms on fixed attributes.

    Parameters
    ----------
    position : str
        The attribute that holds the position.
    changing : frozenset of str
        Attributes that may have any value at any time.
    like : Matcher
        Gives the space, the stop words and the clock.
    filters_of : callable
        Returns the filters of an id.
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
        self._index = empty_matcher_like(like)
        self._filter_counts: dict[str, int] = {}  # by id, if it has more than one filter
        self._zones_cache: dict[str, tuple[MatchZones | None, ...]] = {}
        self.extent: Box = (math.inf, math.inf, -math.inf, -math.inf)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def nbytes(self) -> int:
        """The size of the index in bytes."""
        size: int = self._index.stats()["bytes"]
        return size

    def add(self, subscriptions: Iterable[tuple[str, Sequence[Filter], int]]) -> None:
        """Add or replace subscriptions, given as ids, filters and expiry."""
        rows = []
        for id, filters, expires in subscriptions:
            self.remove(id)
            all_zones = self._derive_zones(id, filters)
            if len(filters) > 1:
                self._filter_counts[id] = len(filters)
            for number, zones in enumerate(all_zones):
                if zones is None:
                    continue
                name = f"{number}:{id}"
                box_term = self._box_term(zones)
                if box_term is not None:
                    rows.append(Subscription(name, None, name, expires, (zones.fixed + box_term,)))
        if rows:
            self._index.add(rows, replace=True)

    def add_simple(self, prefix: str, simple: SimpleSubscriptions) -> None:
        """Add simple subscriptions as columns, under their ids with a prefix."""
        max_x, max_y = self._space.limits
        limits = np.array([max_x, max_y, max_x, max_y])
        low = np.nextafter(simple.boxes[:, :2], -np.inf)
        boxes = np.column_stack((low, np.nextafter(simple.boxes[:, 2:], np.inf)))
        boxes = np.clip(boxes, -limits, limits)
        names = pc.binary_join_element_wise(f"0:{prefix}", simple.ids, "")
        regions = {self._position: (boxes, SpatialFunction.S_INTERSECTS.name)}
        self._index.subscribe_columns(names.combine_chunks(), regions=regions, equals=simple.equals)
        a, b, c, d = self.extent
        (x0, y0), (x1, y1) = boxes[:, :2].min(axis=0).tolist(), boxes[:, 2:].max(axis=0).tolist()
        self.extent = min(a, x0), min(b, y0), max(c, x1), max(d, y1)

    def remove(self, id: str) -> None:
        """Remove a subscription."""
        self._zones_cache.pop(id, None)
        for number in range(self._filter_counts.pop(id, 1)):
            name = f"{number}:{id}"
            if name in self._index:
                self._index.unsubscribe(name)

    def _derive_zones(self, id: str, filters: Sequence[Filter]) -> tuple[MatchZones | None, ...]:
        all_zones = tuple(
            match_zones_of(terms, self._position, self._changing, self._space) for terms in filters
        )
        if len(self._zones_cache) >= _MAX_CACHED:
            del self._zones_cache[next(iter(self._zones_cache))]
        self._zones_cache[id] = all_zones
        return all_zones

    def match_zones(self, id: str) -> tuple[MatchZones | None, ...]:
        """Return the match zones of the filters of a subscription."""
        cached = self._zones_cache.get(id)
        return self._derive_zones(id, self._filters_of(id)) if cached is None else cached

    def _box_term(self, zones: MatchZones) -> tuple[Term, ...] | None:
        """Return the box of a filter as a term: () if it is unbounded, None if it is empty."""
        boxes = zones.boxes()
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

    def find(
        self, attributes: Mapping[str, object], window: Box
    ) -> list[tuple[str, int, MatchZones]]:
        """Return the filters that may match an object with these attributes in a window.

        A row has the id, the number of the filter, and its match zones.
        """
        nearby = []
        for name in self._search(attributes, window):
            number, _, id = name.partition(":")
            zones = self.match_zones(id)[int(number)]
            if zones is not None:  # None if no point satisfies the filter
                nearby.append((id, int(number), zones))
        return nearby

    def fixed_terms_hold(
        self, id: str, number: int, zones: MatchZones, attributes: Mapping[str, object]
    ) -> bool:
        """Return whether the terms of a filter on fixed attributes are true for an object."""
        if not zones.fixed:
            return True
        window = (zones.boxes() or (_ANY_BOX,))[0]
        return f"{number}:{id}" in self._search(attributes, window)

    def _search(self, attributes: Mapping[str, object], window: Box) -> Iterable[str]:
        max_x, max_y = self._space.limits
        x0, y0, x1, y1 = widened(window)
        clipped = max(x0, -max_x), max(y0, -max_y), min(x1, max_x), min(y1, max_y)
        event = {**attributes, self._position: shapely.box(*clipped)}
        return self._index.match(Row(event))
