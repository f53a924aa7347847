"""`ObjectState`: which fences an object is in; and the notifications that follow from a change.

A *fence* is a subscription. The `fences` of an object are those that its last position was in. What
has been *reported* may lag behind: a change must hold for `debounce_ns` before it is reported, and
a change that is undone sooner is never reported. A `Stay` is one object in one fence, whether its
"enter" has been reported or is still pending. An `ObjectRegistry` holds the states of all objects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field

from fencepost.tracking.notification import (
    MOVEMENT,
    RULE,
    Cause,
    Key,
    Notification,
    NotificationKind,
)

MAX_LEFT_FENCES = 16  # fences per object that "outside" reports after the object left them
NEVER = 2**70  # nanoseconds: beyond the years 1 to 9999
ALWAYS = -NEVER


@dataclass(frozen=True, slots=True)
class ReportRules:
    """Which kinds of notification a tracker reports, and how long a change must hold before."""

    on: frozenset[NotificationKind]
    debounce_ns: int = 0
    dwell_ns: int = 0


@dataclass(slots=True)
class Stay:
    """An object in a fence.

    Attributes
    ----------
    subscriber : str
        Subscriber of the fence.
    is_reported : bool
        Whether the object's "enter" has been reported, and no "exit" since.
    since : int
        Time of the first position in the fence.
    changed : int, optional
        Time since which positions contradict what has been reported.
    has_dwelt : bool
        Whether the "dwell" of this stay has been reported.
    """

    subscriber: str
    is_reported: bool
    since: int
    changed: int | None
    has_dwelt: bool = False


@dataclass(slots=True)
class ObjectState:
    """The last position of an object, and the fences that it is in or has left."""

    key: Key
    time: int
    event: Mapping[str, object]
    point: tuple[float, float] | None
    fences: tuple[str, ...] = ()  # sorted
    stays: dict[str, Stay] = field(default_factory=dict)
    left: dict[str, tuple[str, int]] = field(default_factory=dict)  # fence to (subscriber, time)

    def quiet_until(self, rules: ReportRules) -> int:
        """Time until which positions in the same fences cause no notification."""
        if any(stay.changed is not None for stay in self.stays.values()):
            return ALWAYS
        if "dwell" not in rules.on:
            return NEVER
        waiting = (stay.since for stay in self.stays.values() if not stay.has_dwelt)
        return min(waiting, default=NEVER - rules.dwell_ns) + rules.dwell_ns

    def next_report(self, rules: ReportRules) -> int:
        """Time at which a notification is due if no position comes before."""
        due = [NEVER]
        for stay in self.stays.values():
            if stay.changed is not None:
                due.append(stay.changed + rules.debounce_ns)
            elif "dwell" in rules.on and not stay.has_dwelt:
                due.append(stay.since + rules.dwell_ns)
        return min(due)


class ObjectRegistry:
    """The states of a tracker's objects, by key, and when an object is forgotten.

    Parameters
    ----------
    rules : ReportRules
        Rules of the tracker.
    forget_after_ns : int, optional
        An object that was silent for longer counts as forgotten.

    Attributes
    ----------
    changed_keys : set, optional
        If set, collects the keys of objects whose state may have changed.
    forgotten : int
        Number of objects that were dropped.
    """

    def __init__(self, rules: ReportRules, forget_after_ns: int | None) -> None:
        self.changed_keys: set[Key] | None = None
        self.forgotten = 0
        self.forget_after_ns = forget_after_ns
        self._rules = rules
        self._by_key: dict[Key, ObjectState] = {}
        self._pending: set[Key] = set()  # objects for which time alone may cause a notification
        self._last_sweep: int | None = None

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def __iter__(self) -> Iterator[ObjectState]:
        return iter(self._by_key.values())

    def get(self, key: Key) -> ObjectState | None:
        """Return the state of an object, or None if the object is unknown."""
        return self._by_key.get(key)

    def get_unless_silent(self, key: Key, watermark: int) -> ObjectState | None:
        """Return the state of an object. Drop the object instead if it was silent for too long."""
        state = self._by_key.get(key)
        if state is not None and self.is_silent(state.time, watermark):
            self.drop(key)
            return None
        return state

    def is_silent(self, time: int, watermark: int) -> bool:
        """Whether an object whose last position has this time counts as forgotten."""
        return self.forget_after_ns is not None and watermark - time > self.forget_after_ns

    def put(self, state: ObjectState) -> None:
        """Add the state of an object, or note that it has changed."""
        self._by_key[state.key] = state
        self.mark_changed(state.key)
        if state.quiet_until(self._rules) < NEVER:
            self._pending.add(state.key)
        else:
            self._pending.discard(state.key)

    def quiet_until(self, state: ObjectState) -> int:
        """Time until which positions of an object in the same fences cause no notification."""
        on = self._rules.on
        if ("inside" in on and state.fences) or ("outside" in on and state.left):
            return ALWAYS
        return state.quiet_until(self._rules) if state.key in self._pending else NEVER

    def pending(self) -> list[ObjectState]:
        """Return the objects for which time alone may cause a notification."""
        return [self._by_key[key] for key in self._pending]

    def mark_changed(self, key: Key) -> None:
        """Note that the state of an object may have changed."""
        if self.changed_keys is not None:
            self.changed_keys.add(key)

    def drop(self, key: Key) -> bool:
        """Forget an object. Return whether it was known."""
        self._pending.discard(key)
        self.mark_changed(key)
        existed = self._by_key.pop(key, None) is not None
        self.forgotten += existed
        return existed

    def clear(self) -> None:
        """Forget all objects without counting them as forgotten."""
        self._by_key.clear()
        self._pending.clear()
        self._last_sweep = None

    def sweep(self, watermark: int | None, always: bool = False) -> None:
        """Drop silent objects, at most four times in `forget_after_ns` unless `always`.

        A silent object counts as forgotten whether or not it has been dropped yet.
        """
        if self.forget_after_ns is None or watermark is None:
            return
        last = self._last_sweep
        is_recent = last is not None and 4 * (watermark - last) < self.forget_after_ns
        if is_recent and not always:
            return
        self._last_sweep = watermark
        for key in [state.key for state in self if self.is_silent(state.time, watermark)]:
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
    """Put an object into these fences at a time, and yield the notifications that follow.

    by_rule : the fences that changed under the object; their change is reported at once.
    event : the position; None if only the fences in `by_rule` are to be considered.
    """
    affected = by_rule if event is None else fences | state.stays.keys()
    for id in sorted(affected):
        stay = state.stays.get(id)
        if stay is None:
            stay = state.stays[id] = Stay(subscriber_of(id), False, time, None)
        if stay.is_reported == (id in fences):
            stay.changed = None
            if not stay.is_reported:
                del state.stays[id]
            continue
        if stay.changed is None:
            stay.changed = time
        cause: Cause = RULE if id in by_rule else MOVEMENT
        yield from _report_change(state, id, stay, time, rules, cause, event)
    state.fences = tuple(sorted(fences))


def report_elapsed(
    state: ObjectState, time: int, rules: ReportRules, event: Mapping[str, object] | None
) -> Iterator[Notification]:
    """Yield the changes that have held for long enough by a time, and the dwells that are due."""
    for id, stay in sorted(state.stays.items()):
        if stay.changed is not None:
            yield from _report_change(state, id, stay, time, rules, MOVEMENT, event)
        if not stay.is_reported or stay.changed is not None:
            continue
        if "dwell" in rules.on and not stay.has_dwelt and time - stay.since >= rules.dwell_ns:
            stay.has_dwelt = True
            details = (state.key, id, stay.subscriber, time, stay.since, time)
            yield Notification("dwell", *details, event=event)


def report_each_position(
    state: ObjectState, time: int, rules: ReportRules, event: Mapping[str, object]
) -> Iterator[Notification]:
    """Yield the notifications that every position causes: "inside" and "outside"."""
    if "inside" in rules.on:
        for id, stay in sorted(state.stays.items()):
            if stay.is_reported:
                details = (state.key, id, stay.subscriber, time, stay.since, time)
                yield Notification("inside", *details, event=event)
    if "outside" in rules.on:
        for id, (subscriber, since) in sorted(state.left.items()):
            details = (state.key, id, subscriber, time, since, time)
            yield Notification("outside", *details, event=event)


def _report_change(
    state: ObjectState,
    id: str,
    stay: Stay,
    time: int,
    rules: ReportRules,
    cause: Cause,
    event: Mapping[str, object] | None,
) -> Iterator[Notification]:
    """Apply a pending change of a stay if it has held for long enough, and report it."""
    began = stay.changed
    if began is None or (cause == MOVEMENT and time - began < rules.debounce_ns):
        return
    stay.changed = None
    kind: NotificationKind
    if stay.is_reported:
        kind, since = "exit", stay.since
        stay.is_reported = False
        del state.stays[id]
        _remember_left(state, id, stay.subscriber, began, rules)
    else:
        kind, since = "enter", began
        stay.is_reported, stay.since, stay.has_dwelt = True, began, False
        state.left.pop(id, None)
    if kind in rules.on:
        yield Notification(kind, state.key, id, stay.subscriber, began, since, time, cause, event)


def _remember_left(
    state: ObjectState, id: str, subscriber: str, time: int, rules: ReportRules
) -> None:
    if "outside" not in rules.on:
        return
    state.left[id] = (subscriber, time)
    if len(state.left) > MAX_LEFT_FENCES:
        del state.left[next(iter(state.left))]
