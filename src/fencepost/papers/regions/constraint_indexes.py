"""Indexes of the distinct constraints on one attribute, one class for each type of value.

Siena Fast Forwarding has such an index for each basic type and accepts new ones; the paper on
regions (section 2.2) adds the CR-tree. A constraint is a `Term`: a check or its negation. An index
returns the constraints that a value of the attribute satisfies; the value is never missing.
`RegionIndex` wraps the CR-tree, and `EvaluatingIndex` has the constraints that Siena does not have.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from fencepost.cql2.ast import ComparisonOp, Geometry
from fencepost.events.event_values import EventValues
from fencepost.events.value_types import UNBOUNDED_END, DoubleDouble
from fencepost.filters import evaluation, spatial_relations
from fencepost.filters.checks import (
    BooleanCheck,
    Column,
    LikeCheck,
    MemberCheck,
    NullCheck,
    OrderCheck,
    RangeCheck,
    RelateCheck,
    Term,
)
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.kernels.text.like import ANY_CHARACTER, ANY_RUN, compile_pattern
from fencepost.papers.regions.crtree import CRTree
from fencepost.papers.table_engine import evaluate_check, literal_of

Ids = NDArray[np.int64]


class ConstraintIndex(Protocol):
    """The constraints of one attribute and type."""

    def add(self, constraint: int, term: Term) -> None:
        """Add a constraint under its number."""

    def remove(self, constraint: int) -> None:
        """Remove a constraint."""

    def match(self, value: Any) -> Ids:
        """Return the distinct numbers of the constraints that a value satisfies."""

    def __len__(self) -> int: ...


class Family(NamedTuple):
    """A type of constraints.

    Attributes
    ----------
    name : str
    make : callable
        Returns an empty index for such constraints.
    read : callable
        Returns the value of a column that the index matches, or None if it is missing.
    """

    name: str
    make: Callable[[], ConstraintIndex]
    read: Callable[[Column, EventValues], object | None]


class _SortedBounds:
    """Constraints sorted by bound and flag; the constraints before or after a bound are a slice."""

    def __init__(self) -> None:
        self._keys: list[tuple[Any, int, int]] = []  # bound, flag, constraint
        self._ids: Ids | None = None

    def add(self, bound: Any, flag: int, constraint: int) -> None:
        insort(self._keys, (bound, flag, constraint))
        self._ids = None

    def remove(self, bound: Any, flag: int, constraint: int) -> None:
        del self._keys[bisect_left(self._keys, (bound, flag, constraint))]
        self._ids = None

    def before(self, bound: Any, flag: int) -> Ids:
        return self._all()[: bisect_left(self._keys, (bound, flag, -1))]

    def after(self, bound: Any, flag: int) -> Ids:
        return self._all()[bisect_left(self._keys, (bound, flag + 1, -1)) :]

    def _all(self) -> Ids:
        if self._ids is None:
            self._ids = np.array([key[2] for key in self._keys], np.int64)
        return self._ids


class _OrderedIndex:
    """Bounds on ordered values: lower bounds (`>`, `>=`) and upper bounds (`<`, `<=`)."""

    def __init__(self) -> None:
        self._above = _SortedBounds()
        self._below = _SortedBounds()
        self._places: dict[int, tuple[_SortedBounds, Any, int]] = {}

    def add_bound(self, constraint: int, op: ComparisonOp, bound: Any, negated: bool) -> None:
        """Add a bound; the negation of a lower bound is an upper bound, and the reverse."""
        above = (op in (ComparisonOp.GT, ComparisonOp.GE)) != negated
        closed = (op in (ComparisonOp.GE, ComparisonOp.LE)) != negated
        # The flag orders equal bounds so that a value equal to them satisfies a slice: closed
        # bounds come first among the lower bounds and last among the upper bounds.
        flag = int(closed != above)
        place = (self._above if above else self._below, bound, flag)
        place[0].add(bound, flag, constraint)
        self._places[constraint] = place

    def remove_bound(self, constraint: int) -> bool:
        place = self._places.pop(constraint, None)
        if place is not None:
            place[0].remove(place[1], place[2], constraint)
        return place is not None

    def match_bounds(self, value: Any) -> list[Ids]:
        return [self._above.before(value, 1), self._below.after(value, 0)]

    def __len__(self) -> int:
        return len(self._places)


class NumberIndex(_OrderedIndex):
    """Constraints on numbers and times, as pairs of doubles: equality and bounds."""

    def __init__(self) -> None:
        super().__init__()
        self._equal = _KeyedConstraints()

    def add(self, constraint: int, term: Term) -> None:
        """Add a constraint: a `RangeCheck` that is an equality or has one bound."""
        check = term.check
        assert isinstance(check, RangeCheck)
        if check.low == check.high and check.low_closed and check.high_closed:
            self._equal.add(constraint, (check.low,), term.negated)
        elif check.high == UNBOUNDED_END and check.high_closed:
            op = ComparisonOp.GE if check.low_closed else ComparisonOp.GT
            self.add_bound(constraint, op, check.low, term.negated)
        else:
            op = ComparisonOp.LE if check.high_closed else ComparisonOp.LT
            self.add_bound(constraint, op, check.high, term.negated)

    def remove(self, constraint: int) -> None:
        """Remove a constraint."""
        if not self.remove_bound(constraint):
            self._equal.remove(constraint)

    def match(self, value: DoubleDouble) -> Ids:
        """Return the constraints that a number satisfies."""
        return np.concatenate([*self.match_bounds(value), self._equal.match((value,))])

    def __len__(self) -> int:
        return super().__len__() + len(self._equal)


class _KeyedConstraints:
    """Constraints with keys: satisfied if any key is given or, if negated, if no key is given."""

    def __init__(self) -> None:
        self._by_key: dict[Any, dict[int, None]] = {}
        self._keys: dict[int, tuple[Any, ...]] = {}
        self._negated: dict[int, None] = {}

    def add(self, constraint: int, keys: Iterable[Any], negated: bool) -> None:
        self._keys[constraint] = tuple(keys)
        for key in self._keys[constraint]:
            self._by_key.setdefault(key, {})[constraint] = None
        if negated:
            self._negated[constraint] = None

    def remove(self, constraint: int) -> None:
        for key in self._keys.pop(constraint):
            del self._by_key[key][constraint]
            if not self._by_key[key]:
                del self._by_key[key]
        self._negated.pop(constraint, None)

    def match(self, keys: Iterable[Any]) -> Ids:
        hits: dict[int, None] = {}
        for key in keys:
            hits.update(self._by_key.get(key, {}))
        if self._negated:
            satisfied = [c for c in hits if c not in self._negated]
            satisfied += [c for c in self._negated if c not in hits]
            return np.array(satisfied, np.int64)
        return np.fromiter(hits, np.int64, len(hits))

    def __len__(self) -> int:
        return len(self._keys)


class StringIndex(_OrderedIndex):
    """Constraints on strings: sets, bounds and patterns.

    Sets, prefixes, suffixes and substrings are keys of a hash table; a value is looked up with all
    its parts of the lengths that occur. All other patterns are evaluated for each value.
    """

    def __init__(self) -> None:
        super().__init__()
        self._keyed = _KeyedConstraints()
        # How many constraints have a (kind of part, length) among the keys.
        self._lengths: dict[tuple[str, int], int] = {}
        self._patterns: dict[int, tuple[str, bool]] = {}
        self._parts: dict[int, tuple[str, int]] = {}

    def add(self, constraint: int, term: Term) -> None:
        """Add a `MemberCheck`, `OrderCheck` or `LikeCheck`."""
        check = term.check
        if isinstance(check, OrderCheck):
            self.add_bound(constraint, check.op, check.bound, term.negated)
            return
        if isinstance(check, MemberCheck):
            keys = [("is", text) for text in check.strings]
            self._keyed.add(constraint, keys, term.negated)
            return
        assert isinstance(check, LikeCheck)
        part, text = _classify_pattern(check.pattern)
        if part == "pattern":
            self._patterns[constraint] = check.pattern, term.negated
            return
        self._keyed.add(constraint, [(part, text)], term.negated)
        if part != "is":
            part_and_length = self._parts[constraint] = part, len(text)
            self._lengths[part_and_length] = self._lengths.get(part_and_length, 0) + 1

    def remove(self, constraint: int) -> None:
        """Remove a constraint."""
        if self.remove_bound(constraint):
            return
        if constraint in self._patterns:
            del self._patterns[constraint]
            return
        self._keyed.remove(constraint)
        part_and_length = self._parts.pop(constraint, None)
        if part_and_length is not None:
            self._lengths[part_and_length] -= 1
            if not self._lengths[part_and_length]:
                del self._lengths[part_and_length]

    def match(self, value: str) -> Ids:
        """Return the constraints that a string satisfies."""
        patterns = [
            constraint
            for constraint, (pattern, negated) in self._patterns.items()
            if evaluation.matches_pattern(pattern, value) != negated
        ]
        keyed = self._keyed.match(self._parts_of(value))
        return np.concatenate([*self.match_bounds(value), keyed, np.array(patterns, np.int64)])

    def _parts_of(self, value: str) -> Iterable[tuple[str, str]]:
        yield "is", value
        for part, length in self._lengths:
            if length > len(value):
                continue
            if part == "prefix":
                yield part, value[:length]
            elif part == "suffix":
                yield part, value[len(value) - length :]
            else:
                for start in range(len(value) - length + 1):
                    yield part, value[start : start + length]

    def __len__(self) -> int:
        return super().__len__() + len(self._keyed) + len(self._patterns)


def _classify_pattern(pattern: str) -> tuple[str, str]:
    """Return a LIKE pattern as `is`, `prefix`, `suffix` or `substring` of a text, or `pattern`."""
    compiled = compile_pattern(pattern)
    run = bytes([ANY_RUN])
    opens, closes = compiled.startswith(run), compiled.endswith(run)
    inner = compiled[int(opens) : len(compiled) - int(closes)]
    if ANY_RUN in inner or ANY_CHARACTER in inner:
        return "pattern", pattern
    text = inner.decode("utf-8", "surrogatepass")
    if opens and closes:
        return "substring", text
    return ("suffix" if opens else "prefix" if closes else "is"), text


class BooleanIndex:
    """Constraints on booleans, on truth values of conditions, and on missing attributes."""

    def __init__(self) -> None:
        self._keyed = _KeyedConstraints()

    def add(self, constraint: int, term: Term) -> None:
        """Add a `BooleanCheck` or `NullCheck`."""
        check = term.check
        if isinstance(check, NullCheck):
            allowed = [True]
        else:
            assert isinstance(check, BooleanCheck)
            pairs = ((False, check.allows_false), (True, check.allows_true))
            allowed = [value for value, is_allowed in pairs if is_allowed]
        self._keyed.add(constraint, allowed, term.negated)

    def remove(self, constraint: int) -> None:
        """Remove a constraint."""
        self._keyed.remove(constraint)

    def match(self, value: bool) -> Ids:
        """Return the constraints that a boolean satisfies."""
        return self._keyed.match((value,))

    def __len__(self) -> int:
        return len(self._keyed)


_ALL_RELATIONS = 0xFF


class RegionIndex:
    """Constraints on regions, in a CR-tree; new constraints are inserted before the next search.

    packed : bulk load the tree whenever it is empty.
    """

    def __init__(self, tree: CRTree, packed: bool = False) -> None:
        self._tree = tree
        self._packed = packed
        self._pending: dict[int, Term] = {}
        self._constraint_of = np.empty(0, np.int64)
        self._number_of: dict[int, int] = {}

    def add(self, constraint: int, term: Term) -> None:
        """Add a `RelateCheck` with a polygon or multipolygon."""
        self._pending[constraint] = term

    def remove(self, constraint: int) -> None:
        """Remove a constraint."""
        if self._pending.pop(constraint, None) is None:
            self._tree.remove(self._number_of.pop(constraint))

    def match(self, value: Shapes) -> Ids:
        """Return the constraints that a geometry satisfies."""
        if self._pending:
            self._flush()
        numbers = self._tree.search(value)
        numbers.sort()  # counting then reads constraints that were added together in order
        return self._constraint_of[numbers]

    def __len__(self) -> int:
        return len(self._pending) + len(self._number_of)

    def _flush(self) -> None:
        checks = [term.check for term in self._pending.values()]
        regions = [check.geometry.value for check in checks if isinstance(check, RelateCheck)]
        numbers = self._tree.add_many(
            Shapes.read_all(np.array(regions, object)),
            np.array([masks_of(term) for term in self._pending.values()]),
            packed=self._packed and not len(self._tree),
        )
        top = int(numbers.max()) + 1
        if top > len(self._constraint_of):
            grown = np.zeros(2 * top, np.int64)
            grown[: len(self._constraint_of)] = self._constraint_of
            self._constraint_of = grown
        self._constraint_of[numbers] = list(self._pending)
        self._number_of.update(zip(self._pending, numbers.tolist(), strict=True))
        self._pending.clear()


def masks_of(term: Term) -> list[int]:
    """Return the masks of relations that satisfy a `RelateCheck`, by the message's dimension."""
    check = term.check
    assert isinstance(check, RelateCheck)
    masks = [spatial_relations.relation_mask(check.function, dimension) for dimension in range(3)]
    return [_ALL_RELATIONS & ~mask for mask in masks] if term.negated else masks


def is_area(geometry: Geometry) -> bool:
    """Return whether a literal is a polygon or multipolygon."""
    return geometry.value.geom_type in ("Polygon", "MultiPolygon")


class EvaluatingIndex:
    """Constraints of all other types, each evaluated for each event.

    These are distances, lists, relations to lines and points, and negated ranges of two bounds.
    """

    def __init__(self) -> None:
        self._terms: dict[int, tuple[Term, Shapes | None]] = {}

    def add(self, constraint: int, term: Term) -> None:
        """Add a constraint; its geometry is read once."""
        self._terms[constraint] = term, literal_of(term.check)

    def remove(self, constraint: int) -> None:
        """Remove a constraint."""
        del self._terms[constraint]

    def match(self, value: EventValues) -> Ids:
        """Return the constraints that an event satisfies."""
        # None, which is unknown, satisfies neither a constraint nor its negation.
        satisfied = [
            constraint
            for constraint, (term, literal) in self._terms.items()
            if evaluate_check(term.check, literal, value) is (not term.negated)
        ]
        return np.array(satisfied, np.int64)

    def __len__(self) -> int:
        return len(self._terms)
