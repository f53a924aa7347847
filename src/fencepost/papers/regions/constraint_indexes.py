"""Indexes of the distinct constraints on one attribute, for each type of value.

Siena Fast Forwarding keeps such an index for each basic type and lets new ones be plugged in; the
paper on regions (section 2.2) plugs in the CR-tree. Here a constraint is a `Term`: a check, to be
true or, negated, false. What an index is asked is the value of the attribute, never missing. Beside
the indexes of its types are that of regions, and that of constraints which Siena does not know.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
import shapely
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
from fencepost.papers.table_engine import literal_of, truth

Ids = NDArray[np.int64]


class ConstraintIndex(Protocol):
    """Where the constraints of one attribute and type are kept."""

    def add(self, constraint: int, term: Term) -> None:
        """Keep a constraint under its number."""

    def remove(self, constraint: int) -> None:
        """Forget a constraint."""

    def match(self, value: Any) -> Ids:
        """The numbers of all constraints that a value satisfies, each once."""

    def __len__(self) -> int: ...


class Family(NamedTuple):
    """A type of constraints: what makes an index of them, and what it is asked."""

    name: str
    make: Callable[[], ConstraintIndex]
    read: Callable[[Column, EventValues], object | None]


class _Bounds:
    """Constraints in the order of a key; those before or after another are a slice."""

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
    """Bounds on ordered values: above one (`>`, `>=`) or below one (`<`, `<=`)."""

    def __init__(self) -> None:
        self._above = _Bounds()
        self._below = _Bounds()
        self._places: dict[int, tuple[_Bounds, Any, int]] = {}

    def add_bound(self, constraint: int, op: ComparisonOp, bound: Any, negated: bool) -> None:
        """Keep a bound; negated, it is one from the other side."""
        above = (op in (ComparisonOp.GT, ComparisonOp.GE)) != negated
        closed = (op in (ComparisonOp.GE, ComparisonOp.LE)) != negated
        # The order among equal bounds: a value equal to them satisfies the closed ones, which
        # come first of those above and last of those below.
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
    """Numbers and times, as pairs of doubles: equal, not equal, above, below."""

    def __init__(self) -> None:
        super().__init__()
        self._equal = _Exceptions()

    def add(self, constraint: int, term: Term) -> None:
        """Keep a constraint: a `RangeCheck` that is an equality or has one end."""
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
        """Forget a constraint."""
        if not self.remove_bound(constraint):
            self._equal.remove(constraint)

    def match(self, value: DoubleDouble) -> Ids:
        """The constraints that a number satisfies."""
        return np.concatenate([*self.match_bounds(value), self._equal.match((value,))])

    def __len__(self) -> int:
        return super().__len__() + len(self._equal)


class _Exceptions:
    """Constraints under keys: satisfied by a key of theirs or, negated, by none of them."""

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
        found: dict[int, None] = {}
        for key in keys:
            found.update(self._by_key.get(key, {}))
        if self._negated:
            satisfied = [c for c in found if c not in self._negated]
            satisfied += [c for c in self._negated if c not in found]
            return np.array(satisfied, np.int64)
        return np.fromiter(found, np.int64, len(found))

    def __len__(self) -> int:
        return len(self._keys)


class StringIndex(_OrderedIndex):
    """Strings: members of a set, in order, and of a form; prefix, suffix and substring by table."""

    def __init__(self) -> None:
        super().__init__()
        self._keyed = _Exceptions()
        self._lengths: dict[tuple[str, int], int] = {}  # of the prefixes and so on in `_keyed`
        self._forms: dict[int, tuple[str, bool]] = {}
        self._parts: dict[int, tuple[str, int]] = {}

    def add(self, constraint: int, term: Term) -> None:
        """Keep a `MemberCheck`, `OrderCheck` or `LikeCheck`."""
        check = term.check
        if isinstance(check, OrderCheck):
            self.add_bound(constraint, check.op, check.bound, term.negated)
            return
        if isinstance(check, MemberCheck):
            keys = [("is", text) for text in check.strings]
            self._keyed.add(constraint, keys, term.negated)
            return
        assert isinstance(check, LikeCheck)
        part, text = _form(check.pattern)
        if part == "form":
            self._forms[constraint] = check.pattern, term.negated
            return
        self._keyed.add(constraint, [(part, text)], term.negated)
        if part != "is":
            kept = self._parts[constraint] = part, len(text)
            self._lengths[kept] = self._lengths.get(kept, 0) + 1

    def remove(self, constraint: int) -> None:
        """Forget a constraint."""
        if self.remove_bound(constraint):
            return
        if constraint in self._forms:
            del self._forms[constraint]
            return
        self._keyed.remove(constraint)
        kept = self._parts.pop(constraint, None)
        if kept is not None:
            self._lengths[kept] -= 1
            if not self._lengths[kept]:
                del self._lengths[kept]

    def match(self, value: str) -> Ids:
        """The constraints that a string satisfies."""
        forms = [
            c
            for c, (form, no) in self._forms.items()
            if evaluation.matches_pattern(form, value) != no
        ]
        keyed = self._keyed.match(self._parts_of(value))
        return np.concatenate([*self.match_bounds(value), keyed, np.array(forms, np.int64)])

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
        return super().__len__() + len(self._keyed) + len(self._forms)


def _form(pattern: str) -> tuple[str, str]:
    """A LIKE pattern as `is`, `prefix`, `suffix` or `substring` of a text, else as `form`."""
    compiled = compile_pattern(pattern)
    run = bytes([ANY_RUN])
    opens, closes = compiled.startswith(run), compiled.endswith(run)
    inner = compiled[int(opens) : len(compiled) - int(closes)]
    if ANY_RUN in inner or ANY_CHARACTER in inner:
        return "form", pattern
    text = inner.decode("utf-8", "surrogatepass")
    if opens and closes:
        return "substring", text
    return ("suffix" if opens else "prefix" if closes else "is"), text


class BooleanIndex:
    """Booleans, conditions on the event alone, and whether an attribute is missing."""

    def __init__(self) -> None:
        self._keyed = _Exceptions()

    def add(self, constraint: int, term: Term) -> None:
        """Keep a `BooleanCheck` or `NullCheck`."""
        check = term.check
        if isinstance(check, NullCheck):
            allowed = [True]
        else:
            assert isinstance(check, BooleanCheck)
            either = ((False, check.allows_false), (True, check.allows_true))
            allowed = [value for value, allows in either if allows]
        self._keyed.add(constraint, allowed, term.negated)

    def remove(self, constraint: int) -> None:
        """Forget a constraint."""
        self._keyed.remove(constraint)

    def match(self, value: bool) -> Ids:
        """The constraints that a boolean satisfies."""
        return self._keyed.match((value,))

    def __len__(self) -> int:
        return len(self._keyed)


_EVERYTHING = 0xFF


class RegionIndex:
    """Relations to polygons, in a CR-tree; new ones go into it together before the next search.

    packed : whether the first of them, or the first after all were removed, are packed.
    """

    def __init__(self, tree: CRTree, packed: bool = False) -> None:
        self._tree = tree
        self._packed = packed
        self._waiting: dict[int, Term] = {}
        self._constraint_of = np.empty(0, np.int64)
        self._number_of: dict[int, int] = {}

    def add(self, constraint: int, term: Term) -> None:
        """Keep a `RelateCheck` with a polygon or several."""
        self._waiting[constraint] = term

    def remove(self, constraint: int) -> None:
        """Forget a constraint."""
        if self._waiting.pop(constraint, None) is None:
            self._tree.remove(self._number_of.pop(constraint))

    def match(self, value: Shapes) -> Ids:
        """The constraints that a geometry satisfies."""
        if self._waiting:
            self._flush()
        found = self._tree.search(value)
        found.sort()  # neighbours were added together, and are kept together
        return self._constraint_of[found]

    def __len__(self) -> int:
        return len(self._waiting) + len(self._number_of)

    def _flush(self) -> None:
        checks = [term.check for term in self._waiting.values()]
        regions = [check.geometry.value for check in checks if isinstance(check, RelateCheck)]
        numbers = self._tree.add_many(
            Shapes.read_all(np.array(regions, object)),
            np.array([masks_of(term) for term in self._waiting.values()]),
            packed=self._packed and not len(self._tree),
        )
        top = int(numbers.max()) + 1
        if top > len(self._constraint_of):
            grown = np.zeros(2 * top, np.int64)
            grown[: len(self._constraint_of)] = self._constraint_of
            self._constraint_of = grown
        self._constraint_of[numbers] = list(self._waiting)
        self._number_of.update(zip(self._waiting, numbers.tolist(), strict=True))
        self._waiting.clear()


def masks_of(term: Term) -> list[int]:
    """The relations that satisfy a `RelateCheck` with an area, by the message's dimension."""
    check = term.check
    assert isinstance(check, RelateCheck)
    masks = [spatial_relations.relation_mask(check.function, dimension) for dimension in range(3)]
    return [_EVERYTHING & ~mask for mask in masks] if term.negated else masks


def is_area(geometry: Geometry) -> bool:
    """Whether a literal is a polygon or several."""
    return int(shapely.get_dimensions(geometry.value)) == 2


class EvaluatingIndex:
    """Whatever has no index of its own: each constraint evaluated for each event.

    Distances, lists, relations to lines and points, and what lies outside a range.
    """

    def __init__(self) -> None:
        self._terms: dict[int, tuple[Term, Shapes | None]] = {}

    def add(self, constraint: int, term: Term) -> None:
        """Keep a constraint; a geometry in it is laid out once."""
        self._terms[constraint] = term, literal_of(term.check)

    def remove(self, constraint: int) -> None:
        """Forget a constraint."""
        del self._terms[constraint]

    def match(self, value: EventValues) -> Ids:
        """The constraints that an event satisfies."""
        # What is unknown is neither True nor, for a negated constraint, False.
        found = [
            constraint
            for constraint, (term, literal) in self._terms.items()
            if truth(term.check, literal, value) is (not term.negated)
        ]
        return np.array(found, np.int64)

    def __len__(self) -> int:
        return len(self._terms)
