"""`AttributeWatch`: reports attributes that events do not have, and geometries that are unusable.

Subscriptions that name a missing attribute match nothing, often because a name is misspelt on one
side. Each attribute is reported once: if no event had it so far, after a table or after
`SINGLE_EVENTS` that came one at a time; if earlier events had it, after a table that lacks it and
matches nothing. An attribute that only IS NULL asks for may be missing, and is never reported.

Conditions on a geometry that cannot be used are unknown. Each attribute is reported once: after the
first table, or the first single event, with such a geometry; and once more after a table in which
no event has a usable one.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain

from fencepost.engine.columns.column_registry import ColumnRegistry, Storage
from fencepost.errors import FencepostWarning, GeometryProblem, ModelError
from fencepost.events.nearest_names import nearest_name, point_columns
from fencepost.events.table import EventTable, UnusableGeometries

SINGLE_EVENTS = 1_000
_MAX_NAMES = 200  # of the events' attributes that are kept for suggestions
_MAX_SHOWN = 8


class AttributeWatch:
    """Watches the attributes of the events that a matcher matches.

    Parameters
    ----------
    columns : ColumnRegistry
        What subscriptions compare.

    Attributes
    ----------
    report : callable
        Receives each message; by default it warns.
    is_stream : bool
        Whether tables are small parts of a stream, whose events count as if they came one by one.
    pending : set of str
        Attributes that subscriptions name, that no event had so far, and that are not yet reported.
    missing : list of str
        Attributes that were reported.
    unusable : dict of str to int
        By attribute, how many events had a geometry that cannot be used.
    """

    def __init__(self, columns: ColumnRegistry) -> None:
        self._columns = columns
        self._column_count = 0
        self._seen: set[str] = set()
        self._names: dict[str, None] = {}  # of events, in the order in which they came
        self._single_events = 0
        self.report: Callable[[str], None] = _warn
        self.is_stream = False
        self.pending: set[str] = set()
        self._unreported: set[str] = set()  # attributes that subscriptions name
        self.missing: list[str] = []
        self.unusable: dict[str, int] = {}
        self._unusable_in_all: set[str] = set()  # in all events of a table, which was reported
        self.subscriptions_changed()

    def subscriptions_changed(self) -> None:
        """Watch the attributes that new subscriptions name, too."""
        if self._columns.size != self._column_count:
            self._column_count = self._columns.size
            self._unreported = self._named() - {*self.missing}
            self.pending = self._unreported - self._seen
            self._single_events = 0

    def see_event(self, event: Mapping[str, object]) -> None:
        """Look at an event that came alone; report after `SINGLE_EVENTS` of them."""
        self._see(event)
        self._single_events += 1
        if self._single_events >= SINGLE_EVENTS and self.pending:
            self._report_pending()

    def see(self, table: EventTable) -> None:
        """Look at a table of events, and report nothing."""
        for names in _names_of_rows(table):
            self._see(names)
            if not self.pending:
                return
        self._single_events += len(table)

    def see_names(self, names: Iterable[str]) -> None:
        """Look at the names of attributes that all events have, and report nothing."""
        self._see(names)

    def message(self, subject: str, more_names: Iterable[str] = ()) -> str:
        """Return the message about what is pending; empty if nothing is.

        more_names : attributes that events have beside those that were seen.
        """
        if not self.pending:
            return ""
        names = dict.fromkeys([*self._names, *more_names])
        return self._message(subject, self.pending, [*names])

    def see_table(self, table: EventTable) -> None:
        """Look at a table of events, and report what no event had so far."""
        self.see(table)
        if not self.pending:
            return
        if not self.is_stream and len(table):
            names = dict.fromkeys(table.column_names or self._names)
            self._report(self.pending, "no event of the table", names)
        elif self._single_events >= SINGLE_EVENTS:
            self._report_pending()

    def see_table_without_matches(self, table: EventTable) -> None:
        """Look at a table that matched nothing, and report what all of its events lack.

        Earlier events may have had it: a column is often lost between two calls.
        """
        if self.is_stream or not len(table):
            return
        missing, names = self._unreported, dict.fromkeys(table.column_names or ())
        for row_names in _names_of_rows(table):
            missing = missing.difference(row_names)
            if not missing:
                return
            if len(names) < _MAX_NAMES:
                names.update(dict.fromkeys(row_names))
        self._report(missing, "no event of the table", names)

    def require_all(self, table: EventTable) -> None:
        """Raise ModelError if no event of a table has some attribute that subscriptions name."""
        names: dict[str, None] = {}
        for row_names in _names_of_rows(table):
            names.update(dict.fromkeys(row_names))
        missing = self._named() - names.keys()
        if missing and len(table):
            raise ModelError(self._message("no event of the table", missing, [*names]))

    def compared(self, unusable: UnusableGeometries) -> UnusableGeometries:
        """Return the unusable geometries of the attributes that subscriptions compare."""
        names = self._columns.geometry_attributes() if unusable else ()
        return {name: problems for name, problems in unusable.items() if name in names}

    def see_unusable(self, unusable: UnusableGeometries, events: int, strict: bool = False) -> None:
        """Count the geometries of a table that cannot be used, and report them.

        Parameters
        ----------
        unusable : mapping
            See `Pairs.unusable`.
        events : int
            Number of events of the table.
        strict : bool
            Whether to raise ModelError instead of a report.
        """
        messages = []
        for name, problems in self.compared(unusable).items():
            is_first = self._count_unusable(name, len(problems))
            is_new = len(problems) == events and name not in self._unusable_in_all
            if is_new:
                self._unusable_in_all.add(name)
            if is_first or is_new or strict:
                (row, problem), *_ = problems.items()
                counts = f"{len(problems):,} of the {events:,} events of the table"
                place = f"row {row}"
                messages.append(unusable_geometries_message(name, counts, place, problem))
        if strict and messages:
            raise ModelError("; ".join(messages))
        for message in messages:
            self.report(message)

    def see_geometries_of_event(self, table: EventTable) -> None:
        """Look at the geometries of a single event that were read, and report unusable ones."""
        unusable = table.unusable_geometries()
        if unusable:
            self.see_unusable_of_event(
                {name: next(iter(problems.values())) for name, problems in unusable.items()}
            )

    def see_unusable_of_event(self, unusable: Mapping[str, GeometryProblem]) -> None:
        """Count the geometries of a single event that cannot be used, and report them."""
        for name, problem in unusable.items():
            if self._count_unusable(name, 1):
                self.report(
                    f'the geometry "{name:.60}" of an event cannot be used, so conditions on it '
                    f"are unknown: {problem}"
                )

    def _count_unusable(self, name: str, count: int) -> bool:
        """Count unusable geometries. Return whether these are the first of the attribute."""
        known = self.unusable.get(name, 0)
        self.unusable[name] = known + count
        return not known

    def _named(self) -> set[str]:
        storages = [storage for storage in Storage if storage is not Storage.MISSING]
        return self._columns.attributes(*storages)

    def _see(self, names: Iterable[str]) -> None:
        found = self.pending.intersection(names)
        self.pending = self.pending - found
        self._seen |= found
        if len(self._names) < _MAX_NAMES:
            self._names.update(dict.fromkeys(names))

    def _report_pending(self) -> None:
        subject = f"none of the last {SINGLE_EVENTS:,} events"
        self._report(self.pending, subject, self._names)

    def _report(self, missing: set[str], subject: str, names: Iterable[str]) -> None:
        self.pending = self.pending - missing
        self._unreported = self._unreported - missing
        self.missing += sorted(missing)
        self.report(self._message(subject, missing, [*names]))

    def _message(self, subject: str, missing: set[str], names: Sequence[str]) -> str:
        in_pairs = self._columns.attributes(Storage.TRUTH)
        others = [s for s in Storage if s not in (Storage.TRUTH, Storage.MISSING)]
        in_pairs_only = in_pairs - self._columns.attributes(*others)
        return missing_attributes_message(subject, sorted(missing), names, in_pairs_only)


def _names_of_rows(table: EventTable) -> Iterable[Iterable[str]]:
    """Return the names of the attributes of each row; once, if all rows have the same."""
    if table.column_names is not None:
        return [table.column_names]
    return chain([table.given], table.rows())


def _warn(message: str) -> None:
    """Warn at the line of the caller of this package."""
    level, frame = 1, sys._getframe()
    while frame.f_globals.get("__name__", "").startswith("fencepost.") and frame.f_back is not None:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, FencepostWarning, stacklevel=level)


def unusable_geometries_message(
    name: str, counts: str, first_place: str, first_problem: GeometryProblem
) -> str:
    """Return what to tell a user about geometries that cannot be used.

    Parameters
    ----------
    name : str
        The attribute.
    counts : str
        How many events of how many, such as "3 of the 1,000 events of the table".
    first_place : str
        The first event with such a geometry, such as "row 17".
    first_problem : GeometryProblem
        Why its geometry cannot be used.
    """
    return (
        f'the geometry "{name:.60}" of {counts} cannot be used, so conditions on it are unknown; '
        f"the first is {first_place}: {first_problem}"
    )


def missing_attributes_message(
    subject: str, missing: Sequence[str], names: Sequence[str], compared_in_event: Collection[str]
) -> str:
    """Return what to tell a user about attributes that events do not have.

    Parameters
    ----------
    subject : str
        The events, such as "no event of the table".
    missing : sequence of str
        What they lack.
    names : sequence of str
        The attributes that events have.
    compared_in_event : collection of str
        Attributes that subscriptions compare with other attributes only: they may be texts that
        were written in double quotes.
    """
    names = [name for name in names if not name.startswith("properties.")]  # second names
    shown = ", ".join(f'"{name:.60}"' for name in missing[:_MAX_SHOWN])
    if len(missing) > _MAX_SHOWN:
        shown += f" and {len(missing) - _MAX_SHOWN} more"
    noun = "attribute" if len(missing) == 1 else "attributes"
    parts = [f"{subject} has the {noun} {shown}, which subscriptions name"]
    for name in missing[:_MAX_SHOWN]:
        hint = _hint(name, names, name in compared_in_event)
        if hint:
            parts.append(hint)
    have = ", ".join(names[:_MAX_SHOWN]) + (", ..." if len(names) > _MAX_SHOWN else "")
    parts.append(f"events have {have}" if names else "events have no attributes")
    return "; ".join(parts)


def _hint(name: str, names: Sequence[str], may_be_text: bool) -> str:
    if name == "geometry":
        columns = point_columns(names)
        if columns is not None:
            x, y = columns
            return (
                f'make points of "{x}" and "{y}": match_frame(..., x="{x}", y="{y}"), or the '
                f"options --x {x} --y {y}"
            )
    near = nearest_name(name, names)
    if near is not None:
        return f'for "{name:.60}", did you mean "{near:.60}"?'
    if may_be_text:
        return f"if {name:.60} is a text, write it in single quotes: '{name:.60}'"
    return ""
