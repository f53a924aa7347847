"""`scores` computes the scores of subscriptions as `docs/ranking.md` defines them.

Tests compare every ranking with it. It takes filters of `fencepost.filters.checks`, and shares
nothing else with the rankings.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from fencepost.cql2 import ast
from fencepost.events.tokenizer import keywords, tokenize
from fencepost.filters.checks import Filter, ListCheck, NearCheck, RelateCheck, Term
from fencepost.geometry.space import Space
from fencepost.reference.ellipsoid import distances_m
from fencepost.reference.event_geometries import geometry_of
from fencepost.reference.exact_values import Instant, items_of, normalize

__all__ = ["scores"]

_Filters: TypeAlias = Sequence[Filter]
_Box: TypeAlias = tuple[float, float, float, float]
_KEYWORD_FUNCTIONS = (
    ast.ArrayFunction.A_CONTAINS,
    ast.ArrayFunction.A_OVERLAPS,
    ast.ArrayFunction.A_EQUALS,
)
_DISJOINT = (ast.SpatialFunction.S_DISJOINT, ast.SpatialFunction.EH_DISJOINT)


def scores(
    matching: Sequence[_Filters],
    live: Sequence[_Filters],
    event: Mapping[str, object],
    stop_words: Collection[str] = frozenset(),
    space: Space = Space.PLANAR,
) -> list[float]:
    """Return the scores of the subscriptions that an event matches.

    Parameters
    ----------
    matching : sequence of sequences of Filter
        The filters of the subscriptions that the event matches.
    live : sequence of sequences of Filter
        The filters of all live subscriptions.
    event : mapping
        The attributes of the event.
    stop_words : collection of str
        Tokens that are left out of texts, and of keywords beside a text.
    space : Space
        What coordinates mean.

    Returns
    -------
    list of float
        A score between 0 and 1 for each item of `matching`.
    """
    words_of_all = [_named_words(filters, event, stop_words) for filters in live]
    weights: dict[tuple[str, Hashable], float] = {}
    for name in {name for words in words_of_all for name in words}:
        for word in _event_words(event.get(name), stop_words):
            count = sum(word in words.get(name, ()) for words in words_of_all)
            weights[name, word] = math.log(1 + len(live) / (1 + count))
    return [
        (_text_score(filters, event, weights, stop_words) + _spatial_score(filters, event, space))
        / 2
        for filters in matching
    ]


def _text_score(
    filters: _Filters,
    event: Mapping[str, object],
    weights: Mapping[tuple[str, Hashable], float],
    stop_words: Collection[str],
) -> float:
    named_words = _named_words(filters, event, stop_words)
    event_words = [
        (name, word) for name in named_words for word in _event_words(event.get(name), stop_words)
    ]
    total = math.fsum(weights.get(key, 0.0) for key in event_words)
    hits = math.fsum(weights.get(key, 0.0) for key in event_words if key[1] in named_words[key[0]])
    return hits / total if total else 0.0


def _named_words(
    filters: _Filters, event: Mapping[str, object], stop_words: Collection[str]
) -> dict[str, set[Hashable]]:
    """Return the words or items that a subscription names, by attribute.

    They are words if the event's attribute is a text, otherwise items.
    """
    words_by_name: dict[str, set[Hashable]] = {}
    for term in _all_terms(filters):
        check = term.check
        if (
            not isinstance(check, ListCheck)
            or term.negated
            or check.function not in _KEYWORD_FUNCTIONS
        ):
            continue
        source = check.column.source
        assert isinstance(source, ast.Property)
        literals = check.items.items
        words: set[Hashable] = set()
        if isinstance(normalize(event.get(source.name)), str):
            strings = [item.value for item in literals if isinstance(item, ast.String)]
            if len(strings) == len(literals):
                words.update(w for w in keywords(strings) if w not in stop_words)
        else:
            plain = [
                Instant(item.nanoseconds) if isinstance(item, ast.Time) else item.value
                for item in literals
            ]
            words.update(items_of(plain) or ())
        if words:
            words_by_name.setdefault(source.name, set()).update(words)
    return words_by_name


def _event_words(value: object, stop_words: Collection[str]) -> set[Hashable]:
    plain = normalize(value)
    if isinstance(plain, str):
        return {word for word in tokenize(plain) if word not in stop_words}
    return items_of(plain) or set()


def _spatial_score(filters: _Filters, event: Mapping[str, object], space: Space) -> float:
    nearness = [0.0]
    for term in _all_terms(filters):
        check = term.check
        if isinstance(check, RelateCheck):
            is_near, reach = (check.function in _DISJOINT) == term.negated, 0.0
        elif isinstance(check, NearCheck):
            is_near = (check.function is ast.NearFunction.S_BEYOND) == term.negated
            reach = check.distance
        else:
            continue
        source = check.column.source
        assert isinstance(source, ast.Property)
        geometry = geometry_of(event.get(source.name), space) if is_near else None
        if geometry is not None:
            measure = _nearness_on_ellipsoid if space is Space.WGS84 else _nearness
            nearness.append(measure(geometry.bounds, check.geometry.value.bounds, reach))
    return max(nearness)


def _nearness(event_box: _Box, check_box: _Box, reach: float) -> float:
    """Return a nearness between 0 and 1; lengths are divided by 8, so that none is infinite."""
    event_centre, check_centre = _centre(event_box), _centre(check_box)
    distance = math.hypot(check_centre[0] - event_centre[0], check_centre[1] - event_centre[1])
    x0, y0, x1, y1 = check_box
    radius = math.hypot(x1 / 8 - x0 / 8, y1 / 8 - y0 / 8) / 2 + reach / 8
    return radius / (radius + distance) if distance else 1.0


def _nearness_on_ellipsoid(event_box: _Box, check_box: _Box, reach: float) -> float:
    """Return the nearness in lon/lat; the radius is the distance from the centre to a corner."""
    (x, y), (u, v) = (((x0 + x1) / 2, (y0 + y1) / 2) for x0, y0, x1, y1 in (event_box, check_box))
    west, south, _, north = check_box
    lines = np.array([(x, y, u, v), (u, v, west, south), (u, v, west, north)])
    distance, *corners = distances_m(*lines.T).tolist()
    radius = max(corners) + reach
    return float(radius / (radius + distance)) if distance else 1.0


def _centre(box: _Box) -> tuple[float, float]:
    x0, y0, x1, y1 = box
    return x0 / 16 + x1 / 16, y0 / 16 + y1 / 16


def _all_terms(filters: _Filters) -> list[Term]:
    return [term for terms in filters for term in terms]
