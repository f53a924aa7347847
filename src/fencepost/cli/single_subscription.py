"""One event and one subscription, wherever they are, for `fencepost explain`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencepost.cli.terminal import Source
from fencepost.engine.explain.explanation import Explanation, PlannedFilter
from fencepost.engine.matcher import Matcher
from fencepost.engine.simplify import Simplification, simplify
from fencepost.errors import FencepostError
from fencepost.formats.dead_letters import DeadLetter
from fencepost.formats.event_files import read_events
from fencepost.formats.file_formats import STDIN, Format, read_stop_words
from fencepost.formats.json_elements import InvalidRowError, parse_object_text
from fencepost.formats.subscription_files import read_subscriptions

_OWN = "expression"


def one_event(given: str, row: int | None = None) -> dict[str, Any]:
    """An event: JSON text, a row of a file, or what standard input holds for `-`.

    Raises
    ------
    FencepostError
        Where there is none, or there are several and `row` does not say which.
    """
    if given.lstrip().startswith("{"):
        try:
            return parse_object_text(given.strip())
        except InvalidRowError as error:
            raise FencepostError(f"the event cannot be used: {error}") from None
    if given != STDIN and not Path(given).exists():
        raise FencepostError(
            f"{given!r:.80} is no event: there is no such file, and JSON begins with a brace; give "
            "'{\"name\": value}' in quotes, a file of events, or -"
        )
    bad: list[DeadLetter] = []
    file = read_events(given, bad.append, format=Format.GEOJSON if given == STDIN else None)
    found: dict[str, Any] | None = None
    for batch in file:
        for number, place in enumerate(batch.rows.tolist()):
            if row is None and found is not None:
                raise FencepostError(f"{file.name} holds several events; say which with --row")
            if row is None or place == row:
                found = batch.event(number)
                if row is not None:
                    return found
    refused = [letter for letter in bad if row is None or letter.row == row]
    if found is None and refused:
        raise FencepostError(f"the event cannot be used: {refused[0]}")
    if found is None:
        raise FencepostError(
            f"{file.name} holds no event{'' if row is None else f' {row}'}; rows count from 0"
        )
    return found


def explained(event: dict[str, Any], source: Source) -> tuple[Explanation, bool]:
    """Why an event matches, and whether the subscription has expired."""
    matcher, name = _found(source)
    return matcher.explain(event, name), name not in matcher


def simplified(source: Source) -> Simplification:
    """What a subscription or an expression can do without."""
    if source.expression is not None:
        words = read_stop_words(source.stop_words)
        return simplify(source.expression, stop_words=words, space=source.space)
    matcher, name = _found(source)
    return simplify(matcher.expression(name), stop_words=matcher.stop_words, space=matcher.space)


def planned(source: Source) -> tuple[PlannedFilter, ...]:
    """How events find a subscription among all that it was given with."""
    if source.subscriptions is None or source.id is None:
        matcher, name = _found(source)
        return matcher.plan(name)
    matcher = _empty(source)
    bad: list[DeadLetter] = []
    for rows, _ in read_subscriptions(source.subscriptions, bad.append):
        matcher.subscribe_many([row.values for row in rows], [])
    return matcher.plan(source.id)


def _found(source: Source) -> tuple[Matcher, str]:
    """A matcher that holds the subscription, and its id."""
    if source.index is not None:
        matcher = Matcher.open(source.index)
    else:
        matcher = _empty(source)
        if source.expression is not None:
            matcher.subscribe(_OWN, source.expression)
        elif source.subscriptions is not None and source.id is not None:
            _subscribe_one(matcher, source.subscriptions, source.id)
    return matcher, _OWN if source.id is None else source.id


def _empty(source: Source) -> Matcher:
    return Matcher(source.space, stop_words=read_stop_words(source.stop_words))


def _subscribe_one(matcher: Matcher, path: str, id: str) -> None:
    bad: list[DeadLetter] = []
    file = read_subscriptions(path, bad.append)
    for rows, _ in file:
        for row in rows:
            if row.values["id"] == id:
                given = dict(row.values)
                matcher.subscribe(given.pop("id"), given.pop("expression"), **given)
                return
    unread = f", and {len(bad):,} rows cannot be read" if bad else ""
    raise FencepostError(f"there is no subscription {id!r:.60} in {file.name}{unread}")
