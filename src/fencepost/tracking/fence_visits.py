"""In which fences an object is, and what becomes of that with each position.

A *fence* is a subscription. The `fences` of an object are those that its last position was in. What
was *told* may lag behind: a change must hold for `debounce` before it is told, and one that is
undone in the meantime never is. A `Stay` is a fence that the object is told to be in, or will be.
`Objects` are all that a tracker knows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field

from fencepost.tracking.notification import MOVEMENT, RULE, Key, Notification

MAX_LEFT_FENCES = 16  # fences that an object is remembered to have left, for "outside"
NEVER = 2**70  # nanoseconds: years 1 to 9999 lie between
ALWAYS = -NEVER


@dataclass(frozen=True, slots=True)
class ReportRules:
    """What is told, and when; times in nanoseconds."""

    on: frozenset[str]
    debounce: int = 0
    dwell: int = 0


@dataclass(slots=True)
class Stay:
    """An object in a fence.

    Attributes
    ----------
    told : bool
        Whether the object is told to be in.
    since : int
        The first position in it.
    changed : int, optional
        Since when positions say otherwise than was told.
    """

    subscriber: str
    reported: bool
    since: int
    changed: int | None
    dwelt: bool = False


@dataclass(slots=True)
class ObjectState:
    """What is known of an object: its last position, and its stays."""

    key: Key
    time: int
    event: Mapping[str, object]
    point: tuple[float, float] | None
    fences: tuple[str, ...] = ()  # sorted
    stays: dict[str, Stay] = field(default_factory=dict)
    left: dict[str, tuple[str, int]] = field(default_factory=dict)  # subscriber, and when

    def quiet_until(self, rules: ReportRules) -> int:
        """Until when positions in the same fences change nothing that is told."""
        if any(stay.changed is not None for stay in self.stays.values()):
            return ALWAYS
        if "dwell" not in rules.on:
            return NEVER
        pending = (stay.since for stay in self.stays.values() if not stay.dwelt)
        return min(pending, default=NEVER - rules.dwell) + rules.dwell

    def next_report(self, rules: ReportRules) -> int:
        """When time alone will change something, if positions do not before."""
        due = [NEVER]
        for stay in self.stays.values():
            if stay.changed is not None:
                due.append(stay.changed + rules.debounce)
            elif "dwell" in rules.on and not stay.dwelt:
                due.append(stay.since + rules.dwell)
        return min(due)


class ObjectRegistry:
    """What is known of the objects of a tracker, by key, and when they are forgotten.

    Parameters
    ----------
    rules : Rules
        Of the tracker.
    forget_after : int, optional
        An object that was silent for longer counts as forgotten, in nanoseconds.

    Attributes
    ----------
    touched : set, optional
        Where there is one, it collects the keys of objects of which something changed.
    forgotten : int
        How many were dropped.
    """

    def __init__(self, rules: ReportRules, forget_after: int | None) -> None:
        self.changed_keys: set[Key] | None = None
        self.forgotten = 0
        self.forget_after = forget_after
        self._rules = rules
        self._by_key: dict[Key, ObjectState] = {}
        self._pending: set[Key] = set()  # of whom time alone may tell something
        self._swept: int | None = None

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def __iter__(self) -> Iterator[ObjectState]:
        return iter(self._by_key.values())

    def get(self, key: Key) -> ObjectState | None:
        """What is known of an object."""
        return self._by_key.get(key)

    def known(self, key: Key, watermark: int) -> ObjectState | None:
        """What is known of an object, if that is not too long ago."""
        state = self._by_key.get(key)
        if state is not None and self.is_silent(state.time, watermark):
            self.drop(key)
            return None
        return state

    def is_silent(self, time: int, watermark: int) -> bool:
        """Whether an object that was last heard of at a time counts as forgotten."""
        return self.forget_after is not None and watermark - time > self.forget_after

    def put(self, state: ObjectState) -> None:
        """Know an object, or that what is known of it changed."""
        self._by_key[state.key] = state
        self.mark_changed(state.key)
        if state.quiet_until(self._rules) < NEVER:
            self._pending.add(state.key)
        else:
            self._pending.discard(state.key)

    def quiet_until(self, state: ObjectState) -> int:
        """Up to when positions in the same fences change nothing that is told."""
        on = self._rules.on
        if ("inside" in on and state.fences) or ("outside" in on and state.left):
            return ALWAYS
        return state.quiet_until(self._rules) if state.key in self._pending else NEVER

    def pending(self) -> list[ObjectState]:
        """The objects of whom time alone may tell something."""
        return [self._by_key[key] for key in self._pending]

    def mark_changed(self, key: Key) -> None:
        """Note that something changed of an object, or may have."""
        if self.changed_keys is not None:
            self.changed_keys.add(key)

    def drop(self, key: Key) -> bool:
        """Forget an object; whether there was one."""
        self._pending.discard(key)
        self.mark_changed(key)
        there = self._by_key.pop(key, None) is not None
        self.forgotten += there
        return there

    def clear(self) -> None:
        """Know nothing, without a count."""
        self._by_key.clear()
        self._pending.clear()
        self._swept = None

    def sweep(self, watermark: int | None, always: bool = False) -> None:
        """Drop the silent, now and then: an object that is silent counts as forgotten anyway."""
        if self.forget_after is None or watermark is None:
            return
        recently = self._swept is not None and 4 * (watermark - self._swept) < self.forget_after
        if recently and not always:
            return
        self._swept = watermark
        for key in [one.key for one in self if self.is_silent(one.time, watermark)]:
            self.drop(key)


def change_fences(
    state: ObjectState,
    fences: Set[str],
    by_rule: Collection[str],
    time: int,
    rules: ReportRules,
    subscriber_of: Callable[[str], str],
    event: Mapping[str, object] | None,
) -> Iterator[Notification]:
    """Let an object be in these fences at a time; what is to be told.

    by_rule : the fences whose change is not the object's doing; it is told at once.
    event : the position; without one, only what changed by rule is looked at.
    """
    looked_at = by_rule if event is None else fences | state.stays.keys()
    for id in sorted(looked_at):
        stay = state.stays.get(id)
        if stay is None:
            stay = state.stays[id] = Stay(subscriber_of(id), False, time, None)
        if stay.reported == (id in fences):
            stay.changed = None
            if not stay.reported:
                del state.stays[id]
            continue
        if stay.changed is None:
            stay.changed = time
        cause = RULE if id in by_rule else MOVEMENT
        yield from _report_change(state, id, stay, time, rules, cause, event)
    state.fences = tuple(sorted(fences))


def report_elapsed(
    state: ObjectState, time: int, rules: ReportRules, event: Mapping[str, object] | None
) -> Iterator[Notification]:
    """What is to be told since time went by, and what is told of every position."""
    for id, stay in sorted(state.stays.items()):
        if stay.changed is not None:
            yield from _report_change(state, id, stay, time, rules, MOVEMENT, event)
        if not stay.reported or stay.changed is not None:
            continue
        reported = (state.key, id, stay.subscriber, time, stay.since, time, MOVEMENT, event)
        if "dwell" in rules.on and not stay.dwelt and time - stay.since >= rules.dwell:
            stay.dwelt = True
            yield Notification("dwell", *reported)


def report_each_position(
    state: ObjectState, time: int, rules: ReportRules, event: Mapping[str, object]
) -> Iterator[Notification]:
    """What is told of every position: the fences that the object is in, or has left."""
    if "inside" in rules.on:
        for id, stay in sorted(state.stays.items()):
            if stay.reported:
                reported = (
                    state.key,
                    id,
                    stay.subscriber,
                    time,
                    stay.since,
                    time,
                    MOVEMENT,
                    event,
                )
                yield Notification("inside", *reported)
    if "outside" in rules.on:
        for id, (subscriber, since) in sorted(state.left.items()):
            reported = (state.key, id, subscriber, time, since, time, MOVEMENT, event)
            yield Notification("outside", *reported)


def _report_change(
    state: ObjectState,
    id: str,
    stay: Stay,
    time: int,
    rules: ReportRules,
    cause: str,
    event: Mapping[str, object] | None,
) -> Iterator[Notification]:
    """Tell a change if it has held for long enough."""
    began = stay.changed
    if began is None or (cause == MOVEMENT and time - began < rules.debounce):
        return
    stay.changed = None
    if stay.reported:
        kind, since = "exit", stay.since
        stay.reported = False
        del state.stays[id]
        _remember_left(state, id, stay.subscriber, began, rules)
    else:
        kind, since = "enter", began
        stay.reported, stay.since, stay.dwelt = True, began, False
        state.left.pop(id, None)
    if kind in rules.on:
        yield Notification(kind, state.key, id, stay.subscriber, began, since, time, cause, event)


def _remember_left(
    state: ObjectState, id: str, subscriber: str, when: int, rules: ReportRules
) -> None:
    if "outside" not in rules.on:
        return
    state.left[id] = (subscriber, when)
    if len(state.left) > MAX_LEFT_FENCES:
        del state.left[next(iter(state.left))]
