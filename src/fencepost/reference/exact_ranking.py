"""Scores of subscriptions, straight from `docs/ranking.md`: what every ranking is tested against.

What a filter is comes from `fencepost.filters.checks`; everything else is read from it here.
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
from fencepost.reference.ellipsoid import metres
from fencepost.reference.event_geometries import geometry_of
from fencepost.reference.exact_values import Instant, items_of, normalize

__all__ = ["scores"]

_Filters: TypeAlias = Sequence[Filter]
_Box: TypeAlias = tuple[float, float, float, float]
_NAMING = (ast.ArrayFunction.A_CONTAINS, ast.ArrayFunction.A_OVERLAPS, ast.ArrayFunction.A_EQUALS)
_APART = (ast.SpatialFunction.S_DISJOINT, ast.SpatialFunction.EH_DISJOINT)


def scores(
    matching: Sequence[_Filters],
    living: Sequence[_Filters],
    event: Mapping[str, object],
    stop_words: Collection[str] = frozenset(),
    space: Space = Space.PLANAR,
) -> list[float]:
    """
    The scores of subscriptions that an event answers.

    Parameters
    ----------
    matching : sequence of sequences of Filter
        The filters of those subscriptions.
    living : sequence of sequences of Filter
        The filters of all subscriptions there are.
    event : mapping
        Attributes.
    stop_words : collection of str
        Tokens that are left out of texts, and of keywords beside a text.
    space : Space
        What coordinates mean.

    Returns
    -------
    list of float
        One for each of `matching`, between 0 and 1.
    """
    everything = [_words(one, event, stop_words) for one in living]
    weights: dict[tuple[str, Hashable], float] = {}
    for name in {name for named in everything for name in named}:
        for word in _event_words(event.get(name), stop_words):
            count = sum(word in named.get(name, ()) for named in everything)
            weights[name, word] = math.log(1 + len(living) / (1 + count))
    return [
        (_text(one, event, weights, stop_words) + _place(one, event, space)) / 2 for one in matching
    ]


def _text(
    own: _Filters,
    event: Mapping[str, object],
    weights: Mapping[tuple[str, Hashable], float],
    stop_words: Collection[str],
) -> float:
    named = _words(own, event, stop_words)
    there = [(name, word) for name in named for word in _event_words(event.get(name), stop_words)]
    total = math.fsum(weights.get(one, 0.0) for one in there)
    hits = math.fsum(weights.get(one, 0.0) for one in there if one[1] in named[one[0]])
    return hits / total if total else 0.0


def _words(
    own: _Filters, event: Mapping[str, object], stop_words: Collection[str]
) -> dict[str, set[Hashable]]:
    """The words that a subscription names, by attribute, of the kind that the event has there."""
    found: dict[str, set[Hashable]] = {}
    for term in _terms(own):
        check = term.check
        if not isinstance(check, ListCheck) or term.negated or check.function not in _NAMING:
            continue
        source = check.column.source
        assert isinstance(source, ast.Property)
        literals = check.items.items
        words: set[Hashable] = set()
        if isinstance(normalize(event.get(source.name)), str):
            texts = [one.value for one in literals if isinstance(one, ast.String)]
            if len(texts) == len(literals):
                words.update(w for w in keywords(texts) if w not in stop_words)
        else:
            plain = [
                Instant(i.nanoseconds) if isinstance(i, ast.Time) else i.value for i in literals
            ]
            words.update(items_of(plain) or ())
        if words:
            found.setdefault(source.name, set()).update(words)
    return found


def _event_words(value: object, stop_words: Collection[str]) -> set[Hashable]:
    plain = normalize(value)
    if isinstance(plain, str):
        return {word for word in tokenize(plain) if word not in stop_words}
    return items_of(plain) or set()


def _place(own: _Filters, event: Mapping[str, object], space: Space) -> float:
    found = [0.0]
    for term in _terms(own):
        check = term.check
        if isinstance(check, RelateCheck):
            wanted, reach = (check.function in _APART) == term.negated, 0.0
        elif isinstance(check, NearCheck):
            wanted = (check.function is ast.NearFunction.S_BEYOND) == term.negated
            reach = check.distance
        else:
            continue
        source = check.column.source
        assert isinstance(source, ast.Property)
        geometry = geometry_of(event.get(source.name), space) if wanted else None
        if geometry is not None:
            measured = _nearness_on_ellipsoid if space is Space.WGS84 else _nearness
            found.append(measured(geometry.bounds, check.geometry.value.bounds, reach))
    return max(found)


def _nearness(event: _Box, wanted: _Box, reach: float) -> float:
    """An eighth of every length is computed, which no coordinate can make infinite."""
    here, there = _centre(event), _centre(wanted)
    distance = math.hypot(there[0] - here[0], there[1] - here[1])
    x0, y0, x1, y1 = wanted
    radius = math.hypot(x1 / 8 - x0 / 8, y1 / 8 - y0 / 8) / 2 + reach / 8
    return radius / (radius + distance) if distance else 1.0


def _nearness_on_ellipsoid(event: _Box, wanted: _Box, reach: float) -> float:
    """The same in metres; the radius is the way from the middle to the corner farthest away."""
    (x, y), (u, v) = (((x0 + x1) / 2, (y0 + y1) / 2) for x0, y0, x1, y1 in (event, wanted))
    west, south, _, north = wanted
    ways = np.array([(x, y, u, v), (u, v, west, south), (u, v, west, north)])
    distance, *corners = metres(*ways.T).tolist()
    radius = max(corners) + reach
    return float(radius / (radius + distance)) if distance else 1.0


def _centre(box: _Box) -> tuple[float, float]:
    x0, y0, x1, y1 = box
    return x0 / 16 + x1 / 16, y0 / 16 + y1 / 16


def _terms(own: _Filters) -> list[Term]:
    return [term for one in own for term in one]
