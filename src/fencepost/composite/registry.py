"""`Registry`: the composites of a detector, and the pools of candidates for their members.

Each expression on single events is an *atom*: one subscription of the registry's matcher, shared by
all members with the same expression. A *pool* holds the candidates for one member: events that
match an atom and pass the conditions with constants, or the detections of a nested composite.
Members with the same atom and the same conditions share a pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import NamedTuple

import numpy as np

from fencepost.composite.event_hulls import Location, holds
from fencepost.composite.event_parsing import duration_ns
from fencepost.composite.join_plan import EVERYWHERE, Join, coordinate_distance, reach
from fencepost.composite.live_members import Floats, LiveMembers
from fencepost.composite.member_conditions import MemberCondition
from fencepost.composite.model import Composite
from fencepost.cql2.ast import Condition
from fencepost.engine.matcher import Matcher
from fencepost.errors import ModelError
from fencepost.geometry.space import Space


class Pool(NamedTuple):
    """The candidates for one member.

    Attributes
    ----------
    number : int
        The number of the pool in `LiveMembers`.
    atom : str or None
        The subscription that its events match; None for the detections of a nested composite.
    tests : tuple of MemberCondition
        The conditions between the member and constants.
    roles : list of (Join, int)
        The joins that use the pool, each with the part that it has there.
    space : Space
        The space of the coordinates.
    """

    number: int
    atom: str | None
    tests: tuple[MemberCondition, ...]
    roles: list[tuple[Join, int]]
    space: Space

    def accepts(self, x: Floats, y: Floats) -> bool:
        """Return whether a hull with these corners passes the conditions with constants."""
        if not self.tests:
            return True
        location = Location([np.column_stack((x, y))])
        for test in self.tests:
            left = location if isinstance(test.left, str) else test.left
            right = location if isinstance(test.right, str) else test.right
            if not holds(test.predicate, left, right, self.space):
                return False
        return True

    @property
    def max_window_ns(self) -> int:
        """The longest window, in ns, for which members are kept; -1 if none are kept."""
        return max((join.window_ns for join, _ in self.roles if len(join.pools) > 1), default=-1)


class Registry:
    """The composites by id, and the pools of their members.

    Parameters
    ----------
    live : LiveMembers
        Creates the pools.
    space : Space
    max_detections : int, optional
        The maximum number of detections of a composite that one event completes.

    Attributes
    ----------
    matcher : Matcher
        Matches events against the atoms.
    """

    def __init__(self, live: LiveMembers, space: Space, max_detections: int | None) -> None:
        self.matcher = Matcher(space.value)
        self._live = live
        self._space = space
        self._max_detections = max_detections
        self._joins: dict[str, list[Join]] = {}  # by composite; nested joins follow its own
        self._atoms: dict[Condition, str] = {}
        self._atom_numbers = count()
        self._pools_by_key: dict[tuple[str, tuple[MemberCondition, ...]], Pool] = {}
        self._pools_by_atom: dict[str, list[Pool]] = {}
        self._pools_by_number: dict[int, Pool] = {}

    def __len__(self) -> int:
        return len(self._joins)

    def composites(self) -> list[tuple[Composite, int]]:
        """Return the composites as added, each with the number of the first event that counts."""
        return [(joins[0].composite, joins[0].since) for joins in self._joins.values()]

    def atoms(self) -> dict[Condition, str]:
        """Return the expressions on single events, each with the name of its atom."""
        return {**self._atoms}

    def pools_of(self, atoms: Iterable[str]) -> list[Pool]:
        """Return the pools of these atoms."""
        return [pool for atom in atoms for pool in self._pools_by_atom[atom]]

    def match(self, attributes: Mapping[str, object]) -> list[Pool]:
        """Return the pools of the atoms that an event matches."""
        return self.pools_of(self.matcher.match(attributes))

    def pool(self, number: int) -> Pool:
        """Return the pool with a number."""
        return self._pools_by_number[number]

    def pool_numbers(self) -> list[int]:
        """Return the numbers of all pools, in an order that depends on the composites alone."""
        numbers = (
            number for joins in self._joins.values() for join in joins for number in join.pools
        )
        return [*dict.fromkeys(numbers)]

    def add(self, composite: Composite, since: int) -> None:
        """Add a composite; `since` is the number of the first event that counts for it."""
        if composite.id in self._joins:
            raise ModelError(f"there is already a composite {composite.id!r:.60}; remove it first")
        joins = self._joins[composite.id] = []
        self._add_joins(composite, duration_ns(composite.within_s, "within_s"), since, None, joins)

    def remove(self, id: str) -> bool:
        """Remove a composite. Return whether it existed."""
        joins = self._joins.pop(id, None)
        if joins is None:
            return False
        for join in joins:
            for number in join.pools:
                pool = self._pools_by_number[number]
                pool.roles[:] = [role for role in pool.roles if role[0] is not join]
        for key, pool in [*self._pools_by_key.items()]:
            if not pool.roles:
                del self._pools_by_key[key]
                self._pools_by_atom[key[0]].remove(pool)
        for member, atom in [*self._atoms.items()]:
            if not self._pools_by_atom[atom]:
                del self._atoms[member], self._pools_by_atom[atom]
                self.matcher.unsubscribe(atom)
        return True

    def _add_joins(
        self,
        composite: Composite,
        window_ns: int,
        since: int,
        parent: tuple[Join, int] | None,
        joins: list[Join],
    ) -> None:
        join = Join.of(composite, window_ns, since, parent, self._space, self._max_detections)
        joins.append(join)
        for part, (name, member) in enumerate(composite.members.items()):
            constants = join.constant_conditions(name)
            pair_conditions = (
                condition
                for condition in composite.where
                if name in condition.names and len(condition.names) == 2
            )
            width = max(
                (2 * reach(condition.predicate) for condition in pair_conditions), default=0.0
            )
            if isinstance(member, Composite):
                pool = self._new_pool(None, constants, width)
            else:
                pool = self._atom_pool(member, constants, width)
            join.pools.append(pool.number)
            pool.roles.append((join, part))
            if isinstance(member, Composite):
                inner_ns = min(duration_ns(member.within_s, "within_s"), window_ns)
                self._add_joins(member, inner_ns, since, (join, part), joins)

    def _atom_pool(
        self, member: Condition, constants: tuple[MemberCondition, ...], width: float
    ) -> Pool:
        atom = self._atoms.get(member)
        if atom is None:
            atom = self._atoms[member] = str(next(self._atom_numbers))
            self.matcher.subscribe(atom, member)
            self._pools_by_atom[atom] = []
        # Members that differ only in their names share a pool.
        key = atom, tuple(_anonymous(condition) for condition in constants)
        pool = self._pools_by_key.get(key)
        if pool is None:
            pool = self._pools_by_key[key] = self._new_pool(atom, constants, width)
            self._pools_by_atom[atom].append(pool)
        return pool

    def _new_pool(
        self, atom: str | None, constants: tuple[MemberCondition, ...], width: float
    ) -> Pool:
        number = self._live.new_pool(
            0.0 if width == EVERYWHERE else coordinate_distance(self._space, width)
        )
        pool = self._pools_by_number[number] = Pool(number, atom, constants, [], self._space)
        return pool


def _anonymous(condition: MemberCondition) -> MemberCondition:
    """Return the condition of a member and a constant, without the member's name."""
    sides = ["" if isinstance(side, str) else side for side in (condition.left, condition.right)]
    return MemberCondition(condition.predicate, *sides)
