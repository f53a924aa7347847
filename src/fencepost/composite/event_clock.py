"""`Clock`: how far events have come by their own times, and which of them are too late."""

from __future__ import annotations

from fencepost.composite.arrivals import LONGEST, MOST_TIME, nanoseconds

LATE = "too late: {:,.3f} s behind the newest event, and the lateness is {:,.3f} s"


class Clock:
    """The clock of a detector, which events set.

    Attributes
    ----------
    newest : int
        The latest time seen, in nanoseconds since 1970.
    next : int
        The number of the next event.
    late : int
        How many events came too late.
    lateness_s : float
    """

    def __init__(self, lateness_s: float) -> None:
        self._lateness = nanoseconds(lateness_s, "lateness_s")
        self.lateness_s = float(lateness_s)
        self.newest = -MOST_TIME
        self.next = 0
        self.late = 0

    def is_late(self, at: int) -> bool:
        """Whether an event of this time comes too late to be joined."""
        return at < self.newest - self._lateness

    def pass_over(self, at: int) -> str:
        """Count an event that is; what to say of it."""
        self.late += 1
        self.count()
        return LATE.format((self.newest - at) / 1e9, self.lateness_s)

    def count(self) -> int:
        """The number of an event that arrives."""
        number = self.next
        self.next = number + 1
        return number

    def see(self, at: int) -> bool:
        """Let an event of this time have been seen; whether it is the newest."""
        if at <= self.newest:
            return False
        self.newest = at
        return True

    def kept_for(self, span: int) -> int:
        """For how long what others may follow within a span is kept."""
        return min(self._lateness + span, LONGEST)
