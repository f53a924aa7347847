"""The Rt-trees as indexes of a `Matcher`.

Each filter becomes an entry of a tree: the tokens that its `A_CONTAINS` requires of one list or
text, and the rectangle that its relation or distance requires one geometry to meet. There is one
tree for each pair of a text attribute and a geometry attribute that a filter has; either may be
missing. An event is searched in the trees of the attributes that it has. The region itself and all
other terms are verified for each match of a tree.

`A_CONTAINS` compares keywords with the items of a list, but with the single words of a text. An
entry has the tokens that both require, so that the tree finds it for either kind of value. If both
require the same tokens, the tree decides the term.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf, nextafter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.cql2.ast import ArrayFunction, Property, SpatialFunction, String
from fencepost.engine.columns.check_kinds import word_key
from fencepost.engine.index_registry import MatcherIndex
from fencepost.events import value_types
from fencepost.events.event_values import EventValues
from fencepost.events.tokenizer import Tokenizer
from fencepost.filters.checks import Filter, ListCheck, NearCheck, RelateCheck, Term
from fencepost.filters.evaluation import literal_key
from fencepost.papers.spatiotextual.static_trees import Kind
from fencepost.papers.spatiotextual.trees import SpatioTextualIndex
from fencepost.papers.table_engine import TermVerifier, table_index

Box = tuple[float, float, float, float]
Attributes = tuple[str | None, str | None]  # names of a list or text, and of a geometry

_EVERYWHERE: Box = (-inf, -inf, inf, inf)
_NOWHERE = np.zeros((1, 4))  # the box of an event in a tree without a geometry
_DISJOINT_FUNCTIONS = (SpatialFunction.S_DISJOINT, SpatialFunction.EH_DISJOINT)


def rt_tree() -> MatcherIndex:
    """Return the Rt-tree as an index for `Matcher`."""
    return _index("rt")


def rt_plus_tree() -> MatcherIndex:
    """Return the Rt+-tree as an index for `Matcher`."""
    return _index("rt+")


def rt_plus_plus_tree() -> MatcherIndex:
    """Return the Rt++-tree as an index for `Matcher`."""
    return _index("rt++")


def _index(kind: Kind) -> MatcherIndex:
    return table_index(kind, lambda tokenizer: SpatioTextualTable(kind, tokenizer))


class SpatioTextualTable:
    """The subscriptions of a matcher, as entries of Rt-trees.

    Parameters
    ----------
    kind : "rt", "rt+" or "rt++"
    tokenizer : Tokenizer
        Splits texts and keywords into words.
    """

    def __init__(self, kind: Kind, tokenizer: Tokenizer) -> None:
        self._kind = kind
        self._tokenizer = tokenizer
        self._trees: dict[Attributes, SpatioTextualIndex] = {}
        self._vocabulary = _Vocabulary()
        self._entries: dict[int, _Entry] = {}
        self._next = 0
        self._numbers: dict[Hashable, list[int]] = {}  # the entries of each subscription
        self._subscribers: dict[Hashable, str] = {}

    def __contains__(self, subscription: Hashable) -> bool:
        return subscription in self._numbers

    def add(self, subscription: Hashable, subscriber: str, filters: Sequence[Filter]) -> None:
        """Add a subscription, a disjunction of filters; the table must not contain it."""
        self._subscribers[subscription] = subscriber
        self._numbers[subscription] = [self._add(subscription, terms) for terms in filters]

    def _add(self, subscription: Hashable, terms: Filter) -> int:
        list_name, words, decided = _required_text(terms, self._tokenizer)
        geometry_name, box = _required_space(terms)
        tree = (list_name, geometry_name)
        other_terms_hold = TermVerifier(tuple(term for term in terms if term not in decided))
        number = self._next
        self._next += 1
        self._entries[number] = _Entry(subscription, tree, words, other_terms_hold)
        if tree not in self._trees:
            self._trees[tree] = SpatioTextualIndex(self._kind)
        self._trees[tree].add(number, box, self._vocabulary.acquire(words))
        return number

    def remove(self, subscription: Hashable) -> None:
        """Remove a subscription; the table must contain it."""
        del self._subscribers[subscription]
        for number in self._numbers.pop(subscription):
            entry = self._entries.pop(number)
            tree = self._trees[entry.tree]
            tree.remove(number)
            if not len(tree):
                del self._trees[entry.tree]
            self._vocabulary.release(entry.words)

    def match(self, event: EventValues) -> set[Any]:
        """Return the subscriptions with a filter that holds."""
        matches: set[Hashable] = set()
        for attributes, tree in self._trees.items():
            message = self._message(attributes, event)
            if message is None:
                continue
            for number in tree.match_many(*message)[0].tolist():
                entry = self._entries[number]
                if entry.subscription not in matches and entry.other_terms_hold(event):
                    matches.add(entry.subscription)
        return matches

    def match_interfaces(self, event: EventValues) -> set[str]:
        """Return the subscribers of the matching subscriptions."""
        return {self._subscribers[subscription] for subscription in self.match(event)}

    def stats(self) -> Mapping[str, int]:
        """Return the numbers of trees, entries and distinct words, and the size of the trees."""
        return {
            "trees": len(self._trees),
            "entries": len(self._entries),
            "tree_bytes": sum(tree.nbytes for tree in self._trees.values()),
            "words": len(self._vocabulary),
        }

    def _message(self, attributes: Attributes, event: EventValues) -> tuple[Any, Any, Any] | None:
        """Return an event as a message for a tree; None if it lacks an attribute of the tree."""
        list_name, geometry_name = attributes
        words: list[bytes] = []
        if list_name is not None:
            event_words = _item_keys(event.get(list_name), self._tokenizer)
            if event_words is None:
                return None
            words = event_words
        box = _NOWHERE
        if geometry_name is not None:
            shapes = event.shapes(geometry_name)
            if shapes is None:
                return None
            record = shapes.arrays.shapes[0]
            box = np.array([[record[side] for side in ("x0", "y0", "x1", "y1")]])
        tokens = self._vocabulary.known(words)
        return box, [0, len(tokens)], tokens


def _item_keys(value: object, tokenizer: Tokenizer) -> list[bytes] | None:
    """Return the keys of the items of a list or of the words of a text; None for other values."""
    if isinstance(value, str):
        return [word_key(word) for word in tokenizer.tokens(value)]
    items = value_types.list_of(value)
    return None if items is None else [key for key in map(value_types.item_key, items) if key]


class _Entry(NamedTuple):
    """A filter in a tree."""

    subscription: Hashable
    tree: Attributes
    words: frozenset[bytes]
    other_terms_hold: TermVerifier


class _Vocabulary:
    """Numbers the words of entries, reference-counted; the numbers are the tokens of the trees."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._uses: dict[bytes, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def acquire(self, words: frozenset[bytes]) -> NDArray[np.uint32]:
        for word in words:
            if word not in self._numbers:
                self._numbers[word] = self._free.pop() if self._free else len(self._numbers)
            self._uses[word] = self._uses.get(word, 0) + 1
        return self.known(words)

    def release(self, words: frozenset[bytes]) -> None:
        for word in words:
            self._uses[word] -= 1
            if not self._uses[word]:
                del self._uses[word]
                self._free.append(self._numbers.pop(word))

    def known(self, words: frozenset[bytes] | Sequence[bytes]) -> NDArray[np.uint32]:
        numbers = self._numbers
        return np.array([numbers[word] for word in words if word in numbers], np.uint32)


def _required_text(
    terms: Filter, tokenizer: Tokenizer
) -> tuple[str | None, frozenset[bytes], list[Term]]:
    """Return the attribute with the most required words, the words, and the terms they decide."""
    words_of: dict[str, set[bytes]] = {}
    decided_terms: dict[str, list[Term]] = {}
    for term in terms:
        check = term.check
        if not isinstance(check, ListCheck) or term.negated:
            continue
        if check.function is not ArrayFunction.A_CONTAINS:
            continue
        assert isinstance(check.column.source, Property)
        name = check.column.source.name
        words, decides = _required_words(check, tokenizer)
        words_of.setdefault(name, set()).update(words)
        decided_terms.setdefault(name, []).extend([term] if decides else [])
    if not any(words_of.values()):
        return None, frozenset(), []
    name = max(sorted(words_of), key=lambda name: len(words_of[name]))
    return name, frozenset(words_of[name]), decided_terms[name]


def _required_words(check: ListCheck, tokenizer: Tokenizer) -> tuple[set[bytes], bool]:
    """Return the words that both a list and a text must have, and whether they decide the check."""
    items = {literal_key(item) for item in check.items.items}
    strings = [item.value for item in check.items.items if isinstance(item, String)]
    if len(strings) < len(check.items.items):
        return items, True  # keywords that are not strings: no text has them
    words = {word_key(word) for word in tokenizer.keywords(strings)}
    return items & words, bool(items) and items == words


def _required_space(terms: Filter) -> tuple[str | None, Box]:
    """Return the geometry attribute with the smallest required box, and the box."""
    candidates: list[tuple[float, str, Box]] = []
    for term in terms:
        box = _required_box(term)
        if box is not None:
            source: Any = term.check.column.source
            candidates.append(((box[2] - box[0]) * (box[3] - box[1]), source.name, box))
    if not candidates:
        return None, _EVERYWHERE
    _, name, box = min(candidates)
    return name, box


def _required_box(term: Term) -> Box | None:
    """Return the box that a geometry must meet for a term to hold; None if there is none."""
    check = term.check
    distance = 0.0
    if isinstance(check, RelateCheck):
        if (check.function in _DISJOINT_FUNCTIONS) != term.negated:
            return None
    elif isinstance(check, NearCheck):
        if term.negated:
            return None
        distance = check.distance
    else:
        return None
    x0, y0, x1, y1 = check.geometry.value.bounds
    if not distance:
        return x0, y0, x1, y1
    return (
        nextafter(x0 - distance, -inf),
        nextafter(y0 - distance, -inf),
        nextafter(x1 + distance, inf),
        nextafter(y1 + distance, inf),
    )
