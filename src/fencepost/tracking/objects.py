"""`Objects`: what is known of each moving object, and when it is forgotten."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.tracking.notification import Key
from fencepost.tracking.stays import EVER, NEVER, Moving, Rules


class Objects:
    """The objects of a tracker, by key.

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

    def __init__(self, rules: Rules, forget_after: int | None) -> None:
        self.touched: set[Key] | None = None
        self.forgotten = 0
        self.forget_after = forget_after
        self._rules = rules
        self._by_key: dict[Key, Moving] = {}
        self._waiting: set[Key] = set()  # of whom time alone may tell something
        self._swept: int | None = None

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: object) -> bool:
        return key in self._by_key

    def __iter__(self) -> Iterator[Moving]:
        return iter(self._by_key.values())

    def get(self, key: Key) -> Moving | None:
        """What is known of an object."""
        return self._by_key.get(key)

    def known(self, key: Key, watermark: int) -> Moving | None:
        """What is known of an object, if that is not too long ago."""
        moving = self._by_key.get(key)
        if moving is not None and self.is_silent(moving.time, watermark):
            self.drop(key)
            return None
        return moving

    def is_silent(self, time: int, watermark: int) -> bool:
        """Whether an object that was last heard of at a time counts as forgotten."""
        return self.forget_after is not None and watermark - time > self.forget_after

    def put(self, moving: Moving) -> None:
        """Know an object, or that what is known of it changed."""
        self._by_key[moving.key] = moving
        self.touch(moving.key)
        if moving.next_due(self._rules) < NEVER:
            self._waiting.add(moving.key)
        else:
            self._waiting.discard(moving.key)

    def quiet_until(self, moving: Moving) -> int:
        """Up to when positions in the same fences change nothing that is told."""
        on = self._rules.on
        if ("inside" in on and moving.fences) or ("outside" in on and moving.left):
            return EVER
        return moving.next_due(self._rules) if moving.key in self._waiting else NEVER

    def waiting(self) -> list[Moving]:
        """The objects of whom time alone may tell something."""
        return [self._by_key[key] for key in self._waiting]

    def touch(self, key: Key) -> None:
        """Note that something changed of an object, or may have."""
        if self.touched is not None:
            self.touched.add(key)

    def drop(self, key: Key) -> bool:
        """Forget an object; whether there was one."""
        self._waiting.discard(key)
        self.touch(key)
        there = self._by_key.pop(key, None) is not None
        self.forgotten += there
        return there

    def clear(self) -> None:
        """Know nothing, without a count."""
        self._by_key.clear()
        self._waiting.clear()
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
