"""The commands about files: `index`, `match`, `explain`, `stats`.

Each reads its arguments here and calls what does the work. Anything heavy is imported inside the
command that needs it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from fencepost.cli.terminal import (
    Source,
    bytes_text,
    complain,
    flat,
    print_json,
    print_line,
    progress,
)
from fencepost.errors import FencepostError
from fencepost.formats.file_formats import STDIN, Format, OutputFormat, output_format_of
from fencepost.geometry.space import Space

if TYPE_CHECKING:
    from fencepost.engine.matcher import Matcher
    from fencepost.formats.dead_letters import DeadLetterCollector
    from fencepost.formats.file_matching import MatchTotals

SET_ASIDE = 3
NO_MATCH = 4

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Index = Annotated[Path | None, typer.Option("--index", help="Folder that `fencepost index` wrote.")]
Subscriptions = Annotated[
    str | None,
    typer.Option("--subscriptions", help="File of subscriptions, compiled for this run only."),
]
InputFormat = Annotated[
    Format | None, typer.Option("--format", help="What the file holds, whatever its name.")
]
DeadLetterFile = Annotated[
    Path | None,
    typer.Option(
        help="Write rows that cannot be used to this file, as one JSON object a line with file, "
        "row, line, reason and raw.",
        dir_okay=False,
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at the first row that cannot be used.")
]
StopWords = Annotated[
    Path | None,
    typer.Option(
        "--stop-words",
        help="File of words to leave out of texts, one a line; they are part of an index.",
        dir_okay=False,
    ),
]

SpaceOption = Annotated[
    Space,
    typer.Option(
        "--space",
        help="What coordinates mean: planar, or wgs84 with distances in metres; part of an index.",
    ),
]


def index(
    subscriptions: Annotated[
        str, typer.Argument(help="CSV, GeoJSON, NDJSON or Parquet; - is NDJSON on standard input.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder to write the index to.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in the place of an index that is there.")
    ] = False,
    stop_words: StopWords = None,
    space: SpaceOption = Space.PLANAR,
    dead_letters: DeadLetterFile = None,
    strict: Strict = False,
    format: InputFormat = None,
    as_json: AsJson = False,
) -> None:
    """Compile a file of subscriptions into a folder that `match` opens at once.

    A row has an id, an expression in CQL2 (text or JSON) and, where wanted,
    a subscriber and the time when it expires. Rows that cannot be used are
    set aside, and the others are compiled. Stop words and the space are kept in
    the folder: whoever matches with it need not name them again.

    [bold]Examples[/bold]
      fencepost index subscriptions.csv --out hail.index
      fencepost index new.ndjson --out hail.index --replace --dead-letters bad.ndjson
      fencepost index subscriptions.csv --out hail.index --stop-words english.txt
      fencepost index subscriptions.csv --out hail.index --space wgs84

    [bold]Exit codes[/bold]
      0 done, 1 refused, 2 wrong usage, 3 done, but rows were set aside and
      no --dead-letters said where to keep them
    """
    started = time.perf_counter()
    if out.exists() and not replace and any(out.iterdir() if out.is_dir() else [out]):
        raise FencepostError(f"{out} is there already; give --replace to put a new index there")
    from fencepost.engine.matcher import Matcher
    from fencepost.formats.dead_letters import DeadLetterCollector
    from fencepost.formats.file_formats import read_stop_words

    matcher = Matcher(space, stop_words=read_stop_words(stop_words))
    with DeadLetterCollector(dead_letters, strict) as letters:
        count = _subscribe(matcher, subscriptions, format, letters)
    if letters.count and not count:
        raise FencepostError(
            f"none of the {letters.count:,} subscriptions can be used; the first: "
            f"{letters.first[0]}"
        )
    with progress("Building", None):
        matcher.compact()
        matcher.save(out)
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    seconds = time.perf_counter() - started
    expired = count - len(matcher)
    if as_json:
        print_json(
            subscriptions=count,
            expired=expired,
            dead_letters=letters.count,
            bytes=size,
            seconds=round(seconds, 3),
            folder=str(out),
        )
    else:
        gone = f" ({expired:,} expired already)" if expired else ""
        spent = f"{bytes_text(size)}, in {seconds:.1f} s"
        print_line(f"{count:,} subscriptions{gone}, {spent}; written to {out}")
    report(letters)


EventsFile = Annotated[
    str,
    typer.Argument(help="GeoJSON, NDJSON, Parquet or GeoParquet; - is NDJSON on standard input."),
]
MatchesOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="Write the matches here instead of standard output: .ndjson, .csv, .parquet or "
        ".geoparquet with a row each, .geojson with the events that match.",
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        "--top-k", min=1, help="At most so many matches an event, best first, with their score."
    ),
]
MinScore = Annotated[
    float | None,
    typer.Option(
        "--min-score",
        min=0,
        max=1,
        help="No match with a lower score; those of an event best first, with their score.",
    ),
]
JsonSummary = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Give the summary as JSON: on standard output, or on standard error where the "
        "matches are on standard output.",
    ),
]


def match(
    events: EventsFile,
    index: Index = None,
    subscriptions: Subscriptions = None,
    stop_words: StopWords = None,
    space: SpaceOption = Space.PLANAR,
    out: MatchesOut = None,
    top_k: TopK = None,
    min_score: MinScore = None,
    threads: Annotated[int, typer.Option(min=1, help="How many threads match.")] = 1,
    count: Annotated[
        bool, typer.Option("--count", help="Print the number of matches only.")
    ] = False,
    dead_letters: DeadLetterFile = None,
    strict: Strict = False,
    format: InputFormat = None,
    as_json: JsonSummary = False,
) -> None:
    """Match the events of a file, and write who is to hear of which.

    A match is one JSON object a line on standard output: event, the number
    of the row from 0; event_id, if it has one; subscription; subscriber.
    Lines that arrive through an open pipe are answered as they come. A
    summary goes to standard error. Rows that cannot be read are set aside.
    An event whose geometry is not valid answers no question about it.

    With --top-k or --min-score, each match has a score from 0 to 1: how many
    of the event's words the subscription names, rare ones counting more, and
    how near the event is to the middle of its place. --min-score 0 keeps all.

    [bold]Examples[/bold]
      fencepost match events.ndjson --index hail.index
      fencepost match day.parquet --index hail.index --out matches.parquet --threads 4
      tail -f events.ndjson | fencepost match - --subscriptions hail.csv
      fencepost match events.geojson --index hail.index --count
      fencepost match events.ndjson --index hail.index --top-k 10 --min-score 0.2
      fencepost match events.ndjson --subscriptions hail.csv --stop-words english.txt

    [bold]Exit codes[/bold]
      0 done, whether or not anything matched, 1 refused, 2 wrong usage,
      3 done, but rows were set aside and no --dead-letters said where to
      keep them
    """
    _one_of({"--index": index, "--subscriptions": subscriptions})
    _check_kept(stop_words, space, index)
    out = None if str(out) == "-" else out
    if count and out is not None:
        raise typer.BadParameter("--count writes no matches; leave --out or --count away")
    if events == subscriptions == STDIN:
        raise typer.BadParameter("events and subscriptions cannot both come from standard input")
    form = OutputFormat.NDJSON if out is None else output_format_of(out)
    if out is not None and out.exists() and os.path.exists(events) and out.samefile(events):
        raise FencepostError(f"{out} is the file of events; write the matches to another one")
    from fencepost.formats.dead_letters import DeadLetterCollector
    from fencepost.formats.event_files import read_events
    from fencepost.formats.file_matching import MatchLimits, match_file
    from fencepost.formats.match_files import NullSink, make_sink, open_output

    limits = None if top_k is None and min_score is None else MatchLimits(top_k, min_score)
    with ExitStack() as stack:
        letters = stack.enter_context(DeadLetterCollector(dead_letters, strict))
        matcher = _matcher(index, subscriptions, stop_words, space, letters)
        whole = form in (OutputFormat.GEOJSON, OutputFormat.GEOPARQUET)
        columns = None if whole else matcher.requested_attributes() | {"id"}
        file = read_events(events, letters, format=format, columns=columns)
        stream = sys.stdout.buffer if out is None else stack.enter_context(open_output(out))
        sink = NullSink() if count else make_sink(form, stream, file, limits is not None)
        crowded = out is None and not count and sys.stdout.isatty()
        with progress("Getting ready (the first time compiles: fencepost warmup)", None):
            matcher.match({})  # so that the time below is that of matching
        step = stack.enter_context(progress("Matching", file.total, hidden=crowded))
        done = match_file(matcher, file, sink, letters, threads, step, limits)
    if count and not as_json:
        print_line(str(done.matches))
    _summarise(done, letters, out, as_json=as_json, to_stderr=out is None and not count)
    report(letters)


def _summarise(
    done: MatchTotals,
    letters: DeadLetterCollector,
    out: Path | None,
    *,
    as_json: bool,
    to_stderr: bool,
) -> None:
    """Say what a run of `match` did: as JSON to standard output or error, else to the latter."""
    if not as_json:
        print_line(
            f"{done.events:,} events, {done.matches:,} matches, {letters.count:,} dead letters in "
            f"{done.seconds:.1f} s ({done.rate:,.0f} events a second)",
            err=True,
        )
        return
    summary = {
        "events": done.events,
        "matches": done.matches,
        "dead_letters": letters.count,
        "seconds": round(done.seconds, 3),
        "events_per_second": round(done.rate),
        "out": None if out is None else str(out),
    }
    print_line(json.dumps(summary), err=to_stderr)


OneEvent = Annotated[
    str | None,
    typer.Argument(help="JSON in quotes, a file of events, or - for JSON on standard input."),
]
Simplify = Annotated[
    bool,
    typer.Option(
        "--simplify",
        help="Show what the subscription can do without, whatever the event; give no EVENT.",
    ),
]
Plan = Annotated[
    bool, typer.Option("--plan", help="Show by what events find the subscription; give no EVENT.")
]


def explain(
    event: OneEvent = None,
    id: Annotated[str | None, typer.Argument(help="Of the subscription.")] = None,
    index: Index = None,
    subscriptions: Subscriptions = None,
    expression: Annotated[
        str | None, typer.Option("--expression", "-e", help="CQL2 instead of a subscription.")
    ] = None,
    stop_words: StopWords = None,
    space: SpaceOption = Space.PLANAR,
    row: Annotated[
        int | None, typer.Option(min=0, help="Which event of the file, from 0, as in `match`.")
    ] = None,
    simplify: Simplify = False,
    plan: Plan = False,
    as_json: AsJson = False,
) -> None:
    """Show why an event matches a subscription or not, condition by condition.

    Each line is a part of the expression with its outcome, true, false or
    unknown, and what the event had to compare with. It is unknown where an
    attribute is missing, of another type, or a geometry that is not valid.

    With --simplify, show the expression without conditions that others
    imply, alternatives that others cover and those that nothing satisfies,
    and for each of these the reason. It matches the same events.

    With --plan, show for each alternative of the subscription the access
    path by which events find it, of how many events that is expected, and
    whether from events seen or from the subscriptions.

    [bold]Examples[/bold]
      fencepost explain events.ndjson storm-7 --row 12 --index hail.index
      fencepost explain '{"wind": 20}' storm-7 --subscriptions hail.csv
      fencepost explain '{"wind": 20}' --expression "wind > 30"
      fencepost explain '{"t": "The cat"}' -e "A_CONTAINS(t, ('a cat'))" --stop-words en.txt
      fencepost explain '{"g": "POINT(5 60)"}' -e "S_DWITHIN(g, POINT(6 60), 900)" --space wgs84
      fencepost explain --simplify storm-7 --index hail.index
      fencepost explain --simplify --expression "wind > 30 AND wind > 20"
      fencepost explain --plan storm-7 --index hail.index

    [bold]Exit codes[/bold]
      0 it matches (with --simplify or --plan: done), 4 it does not, 1 refused,
      2 wrong usage
    """
    _one_of({"--index": index, "--subscriptions": subscriptions, "--expression": expression})
    _check_kept(stop_words, space, index)
    if simplify and plan:
        raise typer.BadParameter("give --simplify or --plan, not both")
    if simplify or plan:
        if row is not None or id is not None:
            asked = "--simplify" if simplify else "--plan"
            raise typer.BadParameter(f"{asked} takes no event: give the ID, or --expression")
        id, event = event, None
    elif event is None:
        raise typer.BadParameter("give an EVENT, or --simplify, or --plan")
    if (id is None) == (expression is None):
        raise typer.BadParameter("give the ID of a subscription, or --expression")
    from fencepost.cli.single_subscription import explained, one_event, planned, simplified

    source = Source(id, index, subscriptions, expression, stop_words, space)
    if plan:
        filters = planned(source)
        text = "\n".join(map(str, filters)) or "nothing: no event can match"
        _show({"filters": [one.as_dict() for one in filters]}, text, as_json)
        return
    if event is None:
        simplification = simplified(source)
        _show(simplification.as_dict(), str(simplification), as_json)
        return
    explanation, expired = explained(one_event(event, row), source)
    matches = explanation.matches and not expired
    note = ", because it has expired" if expired else ""
    _show(
        {"matches": matches, "expired": expired, "explanation": explanation.as_dict()},
        "\n".join([*explanation.lines(), f"matches: {'yes' if matches else 'no' + note}"]),
        as_json,
    )
    raise typer.Exit(0 if matches else NO_MATCH)


def _show(values: Mapping[str, Any], text: str, as_json: bool) -> None:
    if as_json:
        print_json(**values)
    else:
        print_line(text)


def stats(
    folder: Annotated[Path, typer.Argument(help="Folder that `fencepost index` wrote.")],
    as_json: AsJson = False,
) -> None:
    """Show what an index holds: subscriptions, segments, how events find them.

    [bold]Examples[/bold]
      fencepost stats hail.index
      fencepost stats hail.index --json
    """
    from rich.table import Table

    from fencepost.engine.matcher import Matcher

    numbers = Matcher.open(folder).stats()
    if as_json:
        print_json(**numbers)
        return
    table = Table(box=None, show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in flat(numbers):
        table.add_row(
            name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value)
        )
    Console().print(table)


def _matcher(
    index: Path | None,
    subscriptions: str | None,
    stop_words: Path | None,
    space: Space,
    letters: DeadLetterCollector,
) -> Matcher:
    from fencepost.engine.matcher import Matcher
    from fencepost.formats.file_formats import read_stop_words

    if index is not None:
        return Matcher.open(index)
    matcher = Matcher(space, stop_words=read_stop_words(stop_words))
    if subscriptions is not None:
        _subscribe(matcher, subscriptions, None, letters)
    return matcher


def _subscribe(
    matcher: Matcher, path: str, format: Format | None, letters: DeadLetterCollector
) -> int:
    from fencepost.formats.file_matching import subscribe_file
    from fencepost.formats.subscription_files import read_subscriptions

    file = read_subscriptions(path, letters, format=format)
    with progress("Compiling", file.total) as step:
        return subscribe_file(matcher, file, letters, step)


def _one_of(options: dict[str, object]) -> None:
    if sum(value is not None for value in options.values()) != 1:
        raise typer.BadParameter(f"give one of {', '.join(options)}")


def _check_kept(stop_words: Path | None, space: Space, index: Path | None) -> None:
    if index is None:
        return
    if stop_words is not None:
        raise typer.BadParameter(
            "an index keeps the stop words it was built with; leave --stop-words away, or build it "
            "again: fencepost index SUBSCRIPTIONS --out FOLDER --replace --stop-words FILE"
        )
    if space is not Space.PLANAR:
        raise typer.BadParameter(
            "an index keeps the space it was built with; leave --space away, or build it again: "
            f"fencepost index SUBSCRIPTIONS --out FOLDER --replace --space {space}"
        )


def report(letters: DeadLetterCollector) -> None:
    """Say what was set aside; exit code 3 where nobody asked for it to be kept."""
    if not letters.count:
        return
    if letters.path is not None:
        print_line(f"{letters.count:,} rows set aside in {letters.path}", err=True)
        return
    for letter in letters.first:
        complain(f"set aside: {letter}".partition("\n")[0])
    hidden = letters.count - len(letters.first)
    more = f"and {hidden:,} more; " if hidden else ""
    complain(f"{more}keep such rows with --dead-letters FILE, or refuse them with --strict")
    raise typer.Exit(SET_ASIDE)
