"""The Rt-trees as the table of a `Matcher`: each filter is an entry of a tree.

An entry has what the trees know: the tokens that `A_CONTAINS` needs of one list or text, and the
rectangle that a relation or a distance needs one geometry to meet. There is a tree for each pair of
such attributes that some filter has, where either may be none. An event is looked up in the trees
of the attributes that it has; what a tree cannot decide, the true regions and all other terms, is
verified for each entry found.

Keywords are compared with a list as they are, and with the words of a text word by word. A tree
gets what both need, so that an entry is found whichever the event has; where the two are the same,
the tree has decided.
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
from fencepost.papers.table_engine import Verified, table_index

Box = tuple[float, float, float, float]
Attributes = tuple[str | None, str | None]  # a list or text, and a geometry

_EVERYWHERE: Box = (-inf, -inf, inf, inf)
_NOWHERE = np.zeros((1, 4))  # where an event is for a tree that does not ask
_APART = (SpatialFunction.S_DISJOINT, SpatialFunction.EH_DISJOINT)


def rt_tree() -> MatcherIndex:
    """The Rt-tree as the index of a `Matcher`."""
    return _index("rt")


def rt_plus_tree() -> MatcherIndex:
    """The Rt+-tree as the index of a `Matcher`."""
    return _index("rt+")


def rt_plus_plus_tree() -> MatcherIndex:
    """The Rt++-tree as the index of a `Matcher`."""
    return _index("rt++")


def _index(kind: Kind) -> MatcherIndex:
    return table_index(kind, lambda tokenizer: SpatioTextualTable(kind, tokenizer))


class SpatioTextualTable:
    """Subscriptions as entries of Rt-trees.

    Parameters
    ----------
    kind : "rt", "rt+" or "rt++"
    tokenizer : Tokenizer
        What makes words of texts and of keywords.
    """

    def __init__(self, kind: Kind, tokenizer: Tokenizer) -> None:
        self._kind = kind
        self._tokenizer = tokenizer
        self._trees: dict[Attributes, SpatioTextualIndex] = {}
        self._words = _Words()
        self._entries: dict[int, _Entry] = {}
        self._next = 0
        self._numbers: dict[Hashable, list[int]] = {}  # of each subscription's entries
        self._subscribers: dict[Hashable, str] = {}

    def __contains__(self, subscription: Hashable) -> bool:
        return subscription in self._numbers

    def add(self, subscription: Hashable, subscriber: str, filters: Sequence[Filter]) -> None:
        """Add a subscription that is not there: a disjunction of filters."""
        self._subscribers[subscription] = subscriber
        self._numbers[subscription] = [self._add(subscription, terms) for terms in filters]

    def _add(self, subscription: Hashable, terms: Filter) -> int:
        list_name, words, text = _text_part(terms, self._tokenizer)
        geometry_name, box = _space_part(terms)
        tree = (list_name, geometry_name)
        rest = Verified(tuple(term for term in terms if term not in text))
        number = self._next
        self._next += 1
        self._entries[number] = _Entry(subscription, tree, words, rest)
        if tree not in self._trees:
            self._trees[tree] = SpatioTextualIndex(self._kind)
        self._trees[tree].add(number, box, self._words.take(words))
        return number

    def remove(self, subscription: Hashable) -> None:
        """Take out a subscription that is there."""
        del self._subscribers[subscription]
        for number in self._numbers.pop(subscription):
            entry = self._entries.pop(number)
            tree = self._trees[entry.tree]
            tree.remove(number)
            if not len(tree):
                del self._trees[entry.tree]
            self._words.give_back(entry.words)

    def match(self, event: EventValues) -> set[Any]:
        """Every subscription of which a filter holds."""
        found: set[Hashable] = set()
        for attributes, tree in self._trees.items():
            message = self._message(attributes, event)
            if message is None:
                continue
            for number in tree.match_many(*message)[0].tolist():
                entry = self._entries[number]
                if entry.subscription not in found and entry.rest(event):
                    found.add(entry.subscription)
        return found

    def match_interfaces(self, event: EventValues) -> set[str]:
        """The subscribers of those."""
        return {self._subscribers[subscription] for subscription in self.match(event)}

    def stats(self) -> Mapping[str, int]:
        """Trees, their entries and their bytes; words that entries have."""
        return {
            "trees": len(self._trees),
            "entries": len(self._entries),
            "tree_bytes": sum(tree.nbytes for tree in self._trees.values()),
            "words": len(self._words),
        }

    def _message(self, attributes: Attributes, event: EventValues) -> tuple[Any, Any, Any] | None:
        """What an event is to a tree; None where it lacks what the tree asks about."""
        list_name, geometry_name = attributes
        words: list[bytes] = []
        if list_name is not None:
            given = _keys_of(event.get(list_name), self._tokenizer)
            if given is None:
                return None
            words = given
        box = _NOWHERE
        if geometry_name is not None:
            shapes = event.shapes(geometry_name)
            if shapes is None:
                return None
            record = shapes.arrays.shapes[0]
            box = np.array([[record[side] for side in ("x0", "y0", "x1", "y1")]])
        tokens = self._words.known(words)
        return box, [0, len(tokens)], tokens


def _keys_of(value: object, tokenizer: Tokenizer) -> list[bytes] | None:
    """What a list has, or a text of words; None of anything else."""
    if isinstance(value, str):
        return [word_key(word) for word in tokenizer.tokens(value)]
    items = value_types.list_of(value)
    return None if items is None else [key for key in map(value_types.item_key, items) if key]


class _Entry(NamedTuple):
    """A filter in a tree."""

    subscription: Hashable
    tree: Attributes
    words: frozenset[bytes]
    rest: Verified


class _Words:
    """Words that entries have, and the numbers that stand for them in the trees."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._uses: dict[bytes, int] = {}
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def take(self, words: frozenset[bytes]) -> NDArray[np.uint32]:
        for word in words:
            if word not in self._numbers:
                self._numbers[word] = self._free.pop() if self._free else len(self._numbers)
            self._uses[word] = self._uses.get(word, 0) + 1
        return self.known(words)

    def give_back(self, words: frozenset[bytes]) -> None:
        for word in words:
            self._uses[word] -= 1
            if not self._uses[word]:
                del self._uses[word]
                self._free.append(self._numbers.pop(word))

    def known(self, words: frozenset[bytes] | Sequence[bytes]) -> NDArray[np.uint32]:
        numbers = self._numbers
        return np.array([numbers[word] for word in words if word in numbers], np.uint32)


def _text_part(
    terms: Filter, tokenizer: Tokenizer
) -> tuple[str | None, frozenset[bytes], list[Term]]:
    """The list attribute of which most words are needed, the words, and the terms they decide."""
    needed: dict[str, set[bytes]] = {}
    decided: dict[str, list[Term]] = {}
    for term in terms:
        check = term.check
        if not isinstance(check, ListCheck) or term.negated:
            continue
        if check.function is not ArrayFunction.A_CONTAINS:
            continue
        assert isinstance(check.column.source, Property)
        name = check.column.source.name
        words, decides = _words_needed(check, tokenizer)
        needed.setdefault(name, set()).update(words)
        decided.setdefault(name, []).extend([term] if decides else [])
    if not any(needed.values()):
        return None, frozenset(), []
    name = max(sorted(needed), key=lambda name: len(needed[name]))
    return name, frozenset(needed[name]), decided[name]


def _words_needed(check: ListCheck, tokenizer: Tokenizer) -> tuple[set[bytes], bool]:
    """The words that a list and a text both need; whether that is all that either needs."""
    items = {literal_key(item) for item in check.items.items}
    strings = [item.value for item in check.items.items if isinstance(item, String)]
    if len(strings) < len(check.items.items):
        return items, True  # a text never matches, and never has all of these words
    words = {word_key(word) for word in tokenizer.keywords(strings)}
    return items & words, bool(items) and items == words


def _space_part(terms: Filter) -> tuple[str | None, Box]:
    """The geometry attribute with the smallest box that it must meet, and the box."""
    found: list[tuple[float, str, Box]] = []
    for term in terms:
        box = _box_needed(term)
        if box is not None:
            source: Any = term.check.column.source
            found.append(((box[2] - box[0]) * (box[3] - box[1]), source.name, box))
    if not found:
        return None, _EVERYWHERE
    _, name, box = min(found)
    return name, box


def _box_needed(term: Term) -> Box | None:
    """The box that a geometry must meet for a term to hold, if there is one."""
    check = term.check
    reach = 0.0
    if isinstance(check, RelateCheck):
        if (check.function in _APART) != term.negated:
            return None
    elif isinstance(check, NearCheck):
        if term.negated:
            return None
        reach = check.distance
    else:
        return None
    x0, y0, x1, y1 = check.geometry.value.bounds
    if not reach:
        return x0, y0, x1, y1
    return (
        nextafter(x0 - reach, -inf),
        nextafter(y0 - reach, -inf),
        nextafter(x1 + reach, inf),
        nextafter(y1 + reach, inf),
    )
