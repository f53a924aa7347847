"""The index of constraints on regions, and that of the constraints which Siena does not know."""

from __future__ import annotations

import numpy as np
import shapely

from fencepost.language.ast import Geometry
from fencepost.model.geometry import Shapes
from fencepost.papers.regions.constraint_indexes import Ids
from fencepost.papers.regions.crtree import CRTree
from fencepost.papers.terms import literal_of, truth
from fencepost.plan import relate
from fencepost.plan.checks import RelateCheck, Term
from fencepost.plan.evaluate import EventValues

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
    masks = [relate.mask(check.function, dimension) for dimension in range(3)]
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
