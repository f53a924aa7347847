"""`Registry`: the composites of a detector, and which parts of them an event plays.

Each expression on single events is an *atom*: a subscription of one matcher, however many members
ask the same. A *pool* is what is kept for one part: events that match an atom and pass the tests
with constants, or the detections of a composite within another. Parts that ask the same share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import NamedTuple

import numpy as np

from fencepost.composite.arrivals import nanoseconds
from fencepost.composite.event_hulls import Location, holds
from fencepost.composite.join_plan import EVERYWHERE, Join, in_degrees, reach
from fencepost.composite.live_members import Floats, LiveMembers
from fencepost.composite.member_conditions import MemberCondition
from fencepost.composite.model import Composite
from fencepost.cql2.ast import Condition
from fencepost.engine.matcher import Matcher
from fencepost.errors import ModelError
from fencepost.geometry.space import Space


class Pool(NamedTuple):
    """Who plays one part.

    Attributes
    ----------
    number : int
        Of `LiveMembers`.
    atom : str or None
        The subscription that its events match; None for the detections of a composite.
    tests : tuple of MemberCondition
        What is asked of them and constants.
    users : list of (Join, int)
        In which parts of which joins.
    space : Space
    """

    number: int
    atom: str | None
    tests: tuple[MemberCondition, ...]
    users: list[tuple[Join, int]]
    space: Space

    def takes(self, x: Floats, y: Floats) -> bool:
        """Whether a hull with these corners is where it should be."""
        if not self.tests:
            return True
        here = Location([np.column_stack((x, y))])
        for test in self.tests:
            left = here if isinstance(test.left, str) else test.left
            right = here if isinstance(test.right, str) else test.right
            if not holds(test.asked, left, right, self.space):
                return False
        return True

    @property
    def horizon(self) -> int:
        """For how long members are kept, in nanoseconds; -1 where never."""
        return max((join.within for join, _ in self.users if len(join.pools) > 1), default=-1)


class Registry:
    """Composites by id, and the pools of their parts.

    Parameters
    ----------
    live : LiveMembers
        Where the pools are.
    space : Space
    most_found : int, optional
        How many rows a join puts together at most.

    Attributes
    ----------
    matcher : Matcher
        Of the atoms.
    """

    def __init__(self, live: LiveMembers, space: Space, most_found: int | None) -> None:
        self.matcher = Matcher(space.value)
        self._live = live
        self._space = space
        self._most_found = most_found
        self._joins: dict[str, list[Join]] = {}  # by composite, with those within it
        self._atoms: dict[Condition, str] = {}
        self._atom_numbers = count()
        self._shared: dict[tuple[str, tuple[MemberCondition, ...]], Pool] = {}
        self._by_atom: dict[str, list[Pool]] = {}
        self._by_number: dict[int, Pool] = {}

    def __len__(self) -> int:
        return len(self._joins)

    def composites(self) -> list[tuple[Composite, int]]:
        """In the order in which they came, each with the number of the first event it sees."""
        return [(joins[0].composite, joins[0].since) for joins in self._joins.values()]

    def atoms(self) -> dict[Condition, str]:
        """The expressions on single events, and what they are called."""
        return {**self._atoms}

    def pools(self, atoms: Iterable[str]) -> list[Pool]:
        """Who may be played by an event that matches these atoms."""
        return [pool for atom in atoms for pool in self._by_atom[atom]]

    def played(self, given: Mapping[str, object]) -> list[Pool]:
        """The same of an event."""
        return self.pools(self.matcher.match(given))

    def pool(self, number: int) -> Pool:
        """The pool of a number."""
        return self._by_number[number]

    def pool_numbers(self) -> list[int]:
        """The numbers of all pools, in an order that the composites alone decide."""
        used = (number for joins in self._joins.values() for join in joins for number in join.pools)
        return [*dict.fromkeys(used)]

    def add(self, composite: Composite, since: int) -> None:
        """Take up a composite, for the events from a number on."""
        if composite.id in self._joins:
            raise ModelError(f"there is a composite {composite.id!r:.60}; remove it first")
        joins = self._joins[composite.id] = []
        self._plan(composite, nanoseconds(composite.within_s, "within_s"), since, None, joins)

    def remove(self, id: str) -> bool:
        """Let a composite go; whether there was one."""
        joins = self._joins.pop(id, None)
        if joins is None:
            return False
        for join in joins:
            for number in join.pools:
                pool = self._by_number[number]
                pool.users[:] = [user for user in pool.users if user[0] is not join]
        for key, pool in [*self._shared.items()]:
            if not pool.users:
                del self._shared[key]
                self._by_atom[key[0]].remove(pool)
        for member, atom in [*self._atoms.items()]:
            if not self._by_atom[atom]:
                del self._atoms[member], self._by_atom[atom]
                self.matcher.unsubscribe(atom)
        return True

    def _plan(
        self,
        composite: Composite,
        within: int,
        since: int,
        parent: tuple[Join, int] | None,
        joins: list[Join],
    ) -> None:
        join = Join.of(composite, within, since, parent, self._space, self._most_found)
        joins.append(join)
        for part, (name, member) in enumerate(composite.members.items()):
            constants = join.of_constants(name)
            between = (one for one in composite.where if name in one.names and len(one.names) == 2)
            width = max((2 * reach(one.asked) for one in between), default=0.0)
            if isinstance(member, Composite):
                pool = self._new_pool(None, constants, width)
            else:
                pool = self._atom_pool(member, constants, width)
            join.pools.append(pool.number)
            pool.users.append((join, part))
            if isinstance(member, Composite):
                inner = min(nanoseconds(member.within_s, "within_s"), within)
                self._plan(member, inner, since, (join, part), joins)

    def _atom_pool(
        self, member: Condition, constants: tuple[MemberCondition, ...], width: float
    ) -> Pool:
        atom = self._atoms.get(member)
        if atom is None:
            atom = self._atoms[member] = str(next(self._atom_numbers))
            self.matcher.subscribe(atom, member)
            self._by_atom[atom] = []
        # The name of the member does not matter, only what is asked of it.
        key = atom, tuple(_anonymous(one) for one in constants)
        pool = self._shared.get(key)
        if pool is None:
            pool = self._shared[key] = self._new_pool(atom, constants, width)
            self._by_atom[atom].append(pool)
        return pool

    def _new_pool(
        self, atom: str | None, constants: tuple[MemberCondition, ...], width: float
    ) -> Pool:
        number = self._live.new_pool(0.0 if width == EVERYWHERE else in_degrees(self._space, width))
        pool = self._by_number[number] = Pool(number, atom, constants, [], self._space)
        return pool


def _anonymous(condition: MemberCondition) -> MemberCondition:
    """The same condition of a member without a name and a constant."""
    sides = ["" if isinstance(one, str) else one for one in (condition.left, condition.right)]
    return MemberCondition(condition.asked, *sides)
