"""Safe regions for the objects of one tenant: right for all its subscriptions, of whatever kind.

Plain subscriptions are followed by `SafeRegions` itself. Of tracked ones and of the members of
composites it is told: every event is sent that one of them could want. That is enough for
composites, as what plays no part changes nothing. A tracker must also hear of what leaves: so an
object that is in a fence, or may be, has no region, and sends everything until it is out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fencepost.model.event import attributes
from fencepost.saferegion.client import SafeRegion, point_of
from fencepost.saferegion.regions import SafeRegions, Withdrawal
from fencepost.server.questions import Questions
from fencepost.server.settings import Limits

_POSITION = "geometry"
_CHANGING = ("time",)  # conditions on it are taken to hold
_MOST_HOLES = 64  # a region is up to 4 kB


class Answer(NamedTuple):
    """The region for an event, as JSON; whether its object has one; whose are void since."""

    region: str
    is_held: bool
    withdrawn: list[Withdrawal]


class Regions:
    """The regions of a tenant's objects; for any thread.

    While it is made, which takes a while for many subscriptions, none can be added.
    """

    def __init__(self, questions: Questions, limits: Limits) -> None:
        self.questions = questions
        matcher = questions.expressions.matcher
        with matcher.view().lock:
            self._regions = SafeRegions(
                matcher,
                position=_POSITION,
                changing=_CHANGING,
                most_holes=_MOST_HOLES,
                most_objects=limits.safe_regions,
            )
            for id, kind in questions.kinds():
                self.want(id, kind)
            questions.followed_by(self)

    # Subscriptions, with the matcher's lock held

    def want(self, id: str, kind: str) -> None:
        """Follow a subscription that was added or replaced."""
        if kind == "track":
            self._regions.want(id, [self.questions.tracked.wanted(id)])
        elif kind == "composite":
            self._regions.want(id, (one for _, one in self.questions.composites.atoms(id)))

    def want_no_more(self, id: str) -> None:
        """Follow that a subscription is no more."""
        self._regions.want_no_more(id)

    # Objects

    def answer(self, event: object, key: str) -> Answer:
        """The region of an object whose event was just committed, or that it may keep its own."""
        if self.questions.needs_all(attributes(event)):
            self._regions.forget(key)
            region = self._nowhere(attributes(event))
        else:
            region = self._regions.answer(event, key)
        return Answer(region, self._regions.remembers(key), self._regions.changed())

    def around(self, event: object) -> str:
        """The region of an object that nobody remembers."""
        if self.questions.needs_all(attributes(event)):
            return self._nowhere(attributes(event))
        return self._regions.around(event).to_json()

    def _nowhere(self, values: Mapping[str, object]) -> str:
        at = point_of(values.get(_POSITION))
        return SafeRegion(False, position=_POSITION, at=at, version=self._regions.version).to_json()

    def changed(self) -> list[Withdrawal]:
        """The objects whose regions are void since the last call."""
        return self._regions.changed()

    def forget(self, key: str) -> None:
        """Forget an object that is gone."""
        self._regions.forget(key)
