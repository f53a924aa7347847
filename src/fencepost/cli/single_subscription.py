"""The event and the subscription of `fencepost explain`, from arguments, files or an index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencepost.cli.terminal import SubscriptionSource
from fencepost.engine.explain.explanation import Explanation, PlannedFilter
from fencepost.engine.matcher import Matcher
from fencepost.engine.simplify import Simplification, simplify
from fencepost.errors import FencepostError
from fencepost.formats.csv_files import PointColumns
from fencepost.formats.dead_letters import DeadLetter
from fencepost.formats.event_files import check_file_options, read_events
from fencepost.formats.file_formats import STDIN, Format, read_stop_words
from fencepost.formats.json_elements import InvalidRowError, parse_object_text
from fencepost.formats.subscription_files import read_subscriptions

_EXPRESSION_ID = "expression"  # the id of a subscription that is given as an expression


def read_event(
    argument: str,
    row: int | None = None,
    points: PointColumns | None = None,
    layer: str | None = None,
) -> dict[str, Any]:
    """Read an event from JSON text, from a row of a file, or, for `-`, from standard input.

    `points` and `layer` are for CSV files and GeoPackages.

    Raises
    ------
    FencepostError
        If there is no event, or several and no `row`.
    """
    if argument.lstrip().startswith("{"):
        check_file_options("the event", Format.GEOJSON, points, layer)
        try:
            return parse_object_text(argument.strip())
        except InvalidRowError as error:
            raise FencepostError(f"the event cannot be used: {error}") from None
    if argument != STDIN and not Path(argument).exists():
        raise FencepostError(
            f"{argument!r:.80} is no event: there is no such file, and JSON begins with a "
            "brace; give '{\"name\": value}' in quotes, a file of events, or -"
        )
    bad: list[DeadLetter] = []
    format = Format.GEOJSON if argument == STDIN else None
    file = read_events(argument, bad.append, format=format, points=points, layer=layer)
    event: dict[str, Any] | None = None
    for batch in file:
        for number, event_row in enumerate(batch.rows.tolist()):
            if row is None and event is not None:
                raise FencepostError(f"{file.name} holds several events; choose one with --row")
            if row is None or event_row == row:
                event = batch.event(number)
                if row is not None:
                    return event
    rejected = [letter for letter in bad if row is None or letter.row == row]
    if event is None and rejected:
        raise FencepostError(f"the event cannot be used: {rejected[0]}")
    if event is None:
        raise FencepostError(
            f"{file.name} holds no event{'' if row is None else f' {row}'}; rows count from 0"
        )
    return event


def explain_event(event: dict[str, Any], source: SubscriptionSource) -> tuple[Explanation, bool]:
    """Explain whether an event matches. Return also whether the subscription has expired."""
    matcher, name = _open_source(source)
    return matcher.explain(event, name), name not in matcher


def simplify_subscription(source: SubscriptionSource) -> Simplification:
    """Simplify a subscription or an expression."""
    if source.expression is not None:
        words = read_stop_words(source.stop_words)
        return simplify(source.expression, stop_words=words, space=source.space)
    matcher, name = _open_source(source)
    return simplify(matcher.expression(name), stop_words=matcher.stop_words, space=matcher.space)


def plan_subscription(source: SubscriptionSource) -> tuple[PlannedFilter, ...]:
    """Return the plan of a subscription, among all subscriptions of its index or file."""
    if source.subscriptions is None or source.id is None:
        matcher, name = _open_source(source)
        return matcher.plan(name)
    matcher = _new_matcher(source)
    bad: list[DeadLetter] = []
    for rows, _ in read_subscriptions(source.subscriptions, bad.append):
        matcher.subscribe_many([row.values for row in rows], [])
    return matcher.plan(source.id)


def _open_source(source: SubscriptionSource) -> tuple[Matcher, str]:
    """Return a matcher that has the subscription, and the id of the subscription."""
    if source.index is not None:
        matcher = Matcher.open(source.index)
    else:
        matcher = _new_matcher(source)
        if source.expression is not None:
            matcher.subscribe(_EXPRESSION_ID, source.expression)
        elif source.subscriptions is not None and source.id is not None:
            _subscribe_one(matcher, source.subscriptions, source.id)
    return matcher, _EXPRESSION_ID if source.id is None else source.id


def _new_matcher(source: SubscriptionSource) -> Matcher:
    return Matcher(source.space, stop_words=read_stop_words(source.stop_words))


def _subscribe_one(matcher: Matcher, path: str, id: str) -> None:
    bad: list[DeadLetter] = []
    file = read_subscriptions(path, bad.append)
    for rows, _ in file:
        for row in rows:
            if row.values["id"] == id:
                values = dict(row.values)
                matcher.subscribe(values.pop("id"), values.pop("expression"), **values)
                return
    unread = f", and {len(bad):,} rows cannot be read" if bad else ""
    raise FencepostError(f"there is no subscription {id!r:.60} in {file.name}{unread}")
