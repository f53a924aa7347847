"""`Clock`: tracks the newest event time, numbers the events, and tells which are too late."""

from __future__ import annotations

from fencepost.composite.event_parsing import MAX_DURATION_NS, MAX_TIME_NS, duration_ns

_LATE = "too late: {:,.3f} s behind the newest event, and the lateness is {:,.3f} s"


class Clock:
    """The clock of a detector; it follows the times of the events.

    Attributes
    ----------
    newest_ns : int
        The latest event time seen, in nanoseconds since 1970.
    next_number : int
        The number of the next event.
    late_count : int
        The number of events that were too late.
    lateness_s : float
        How far behind the newest event an event may be.
    """

    def __init__(self, lateness_s: float) -> None:
        self._lateness_ns = duration_ns(lateness_s, "lateness_s")
        self.lateness_s = float(lateness_s)
        self.newest_ns = -MAX_TIME_NS
        self.next_number = 0
        self.late_count = 0

    def is_late(self, time_ns: int) -> bool:
        """Return whether an event of this time is too late to be joined."""
        return time_ns < self.newest_ns - self._lateness_ns

    def reject(self, time_ns: int) -> str:
        """Count an event that is too late. Return the reason, for the dead letters."""
        self.late_count += 1
        self.take_number()
        return _LATE.format((self.newest_ns - time_ns) / 1e9, self.lateness_s)

    def take_number(self) -> int:
        """Return the number of an arriving event, and count it."""
        number = self.next_number
        self.next_number = number + 1
        return number

    def advance(self, time_ns: int) -> bool:
        """Note that an event of this time was seen. Return whether it is the newest."""
        if time_ns <= self.newest_ns:
            return False
        self.newest_ns = time_ns
        return True

    def retention_ns(self, window_ns: int) -> int:
        """Return how long to keep an event that later events may join within a window."""
        return min(self._lateness_ns + window_ns, MAX_DURATION_NS)
