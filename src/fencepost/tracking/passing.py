"""Which fences a way passes through: a second matcher that is asked about lines.

For each subscription of the first it has one with what `places.passing` makes of it, so that an
index finds them. It follows the first: an id that changed there is compiled anew when next asked.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from fencepost.errors import LanguageError
from fencepost.match.catalogue import Subscription, compiled_condition
from fencepost.match.matcher import Matcher
from fencepost.tracking.places import passing


class Ways:
    """The subscriptions of a matcher, asked about the ways between positions.

    Attributes
    ----------
    left_out : set of str
        Those that cannot be asked, as the question would be too long.
    """

    def __init__(self, matcher: Matcher, position: str) -> None:
        self._matcher = matcher
        self._position = position
        clock = matcher.view().clock
        self._lines = Matcher(matcher.space, stop_words=matcher.stop_words, clock=clock)
        self._changed: set[str] = set()
        self.left_out: set[str] = set()
        view = matcher.view()
        with view.lock:
            view.on_change(self._note)
            self._changed.update(matcher.ids())

    def _note(self, ids: Iterable[str]) -> None:
        self._changed.update(ids)

    def match(self, event: dict[str, object]) -> list[str]:
        """The ids of the subscriptions that a way passes through."""
        self._follow()
        return self._lines.match(event)

    def match_batch(self, table: object) -> pa.Table:
        """The same for many ways, as `Matcher.match_batch`."""
        self._follow()
        return self._lines.match_batch(table)

    def _follow(self) -> None:
        """Take up what changed since."""
        if not self._changed:
            return
        matcher, view, compiled = self._matcher, self._matcher.view(), []
        with view.lock:
            changed, self._changed = self._changed, set()
            self.left_out -= changed
            for id in changed:
                if id not in matcher:
                    self._lines.unsubscribe(id)
                    continue
                condition = passing(view.condition(id), self._position)
                try:
                    filters = compiled_condition(condition, view.columns.space)
                except LanguageError:  # more alternatives than one subscription may have
                    self.left_out.add(id)
                    self._lines.unsubscribe(id)
                    continue
                compiled.append(Subscription(id, condition, id, view.expires(id), filters))
            if compiled:
                self._lines.add(compiled, replace=True)
