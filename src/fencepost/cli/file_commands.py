"""The commands on files: `index`, `match`, `explain`, `stats`.

Modules that need the compiler, PyArrow or Shapely are imported by the commands that use them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.console import Console

from fencepost.cli.terminal import (
    SubscriptionSource,
    flatten,
    format_bytes,
    print_json,
    print_line,
    print_warning,
    progress,
)
from fencepost.errors import FencepostError
from fencepost.formats.file_formats import STDIN, Format, OutputFormat, output_format_of
from fencepost.geometry.space import DEFAULT_SPACE, OtherCrs, Space

if TYPE_CHECKING:
    from fencepost.engine.fence_subscriptions import RelationName
    from fencepost.engine.matcher import Matcher
    from fencepost.formats.csv_files import PointColumns
    from fencepost.formats.dead_letters import DeadLetterCollector
    from fencepost.formats.fence_files import FenceOptions
    from fencepost.formats.file_matching import MatchTotals

EXIT_DAMAGED = 1
EXIT_SET_ASIDE = 3
EXIT_NO_MATCH = 4

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Index = Annotated[
    Path | None, typer.Option("--index", help="Folder of the index, which `fencepost index` wrote.")
]
Subscriptions = Annotated[
    str | None,
    typer.Option(
        "--subscriptions", help="File of subscriptions instead of an index; compiled for this run."
    ),
]
InputFormat = Annotated[
    Format | None,
    typer.Option("--format", help="Format of the file; by the ending of its name if left out."),
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
    bool, typer.Option("--strict", help="Fail at the first row that cannot be used.")
]
StopWords = Annotated[
    Path | None,
    typer.Option(
        "--stop-words",
        help="File of stop words, one a line, to ignore in texts. An index keeps them, so not with "
        "--index.",
        dir_okay=False,
    ),
]

SpaceOption = Annotated[
    Space | None,
    typer.Option(
        "--space",
        help="Coordinate space: wgs84, the default, is longitude and latitude with distances in "
        "metres, planar is a plane. An index keeps it, so not with --index.",
    ),
]

XColumn = Annotated[
    str | None,
    typer.Option("--x", help="Column of a CSV file that holds the x, or longitude, of points."),
]
YColumn = Annotated[
    str | None,
    typer.Option("--y", help="Column of a CSV file that holds the y, or latitude, of points."),
]
Layer = Annotated[
    str | None,
    typer.Option("--layer", help="Layer of a GeoPackage; needed if there are several."),
]
CrsOption = Annotated[
    OtherCrs,
    typer.Option(
        "--crs",
        help="What happens to geometries that declare another coordinate reference system: refuse "
        "the file, or transform their coordinates, which needs pip install 'fencepost\\[crs]'.",
    ),
]
Relation = Annotated[
    str | None,
    typer.Option(
        "--relation",
        help="Make a fence of each feature: events match if their geometry has this relation to "
        "the feature's, such as S_INTERSECTS.",
    ),
]
Distance = Annotated[
    float | None,
    typer.Option(
        "--distance",
        help="Distance of fences with S_DWITHIN and the like, in metres or, with --space planar, "
        "in the unit of the coordinates; needs --relation.",
    ),
]
FenceId = Annotated[
    str | None,
    typer.Option(
        "--id",
        help="Property of features that is the id of a fence; by default, the feature's id, or "
        "its number from 0. Needs --relation.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        help="Further condition of all fences in CQL2, such as \"kind = 'hail'\"; needs "
        "--relation.",
    ),
]
Attribute = Annotated[
    str | None,
    typer.Option(
        "--attribute",
        help="Attribute of events that fences compare; geometry by default. Needs --relation.",
    ),
]


IndexedFile = Annotated[
    str | None,
    typer.Argument(
        help="File of subscriptions, or of features with --relation: CSV, GeoJSON, NDJSON, "
        "Parquet or GeoPackage; - is NDJSON on standard input."
    ),
]
IndexOut = Annotated[Path | None, typer.Option("--out", "-o", help="Folder to write the index to.")]
Replace = Annotated[bool, typer.Option("--replace", help="Replace the index if there is one.")]
Verify = Annotated[
    Path | None,
    typer.Option(
        "--verify",
        help="Compare all files of the index in this folder with their checksums instead.",
    ),
]
Dump = Annotated[
    Path | None,
    typer.Option(
        "--dump",
        help="Write the subscriptions of the index in this folder to standard output instead, "
        "as NDJSON.",
    ),
]


def index(
    subscriptions: IndexedFile = None,
    out: IndexOut = None,
    replace: Replace = False,
    relation: Relation = None,
    id: FenceId = None,
    distance: Distance = None,
    where: Where = None,
    attribute: Attribute = None,
    x: XColumn = None,
    y: YColumn = None,
    layer: Layer = None,
    crs: CrsOption = OtherCrs.REFUSE,
    verify: Verify = None,
    dump: Dump = None,
    stop_words: StopWords = None,
    space: SpaceOption = None,
    dead_letters: DeadLetterFile = None,
    strict: Strict = False,
    format: InputFormat = None,
    as_json: AsJson = False,
) -> None:
    """Compile a file of subscriptions into a folder that `match` opens at once.

    A row has an id, an expression in CQL2 (text or JSON) and, optionally, a
    subscriber and the time when the subscription expires. Rows that cannot be
    used are set aside, and all other rows are compiled. The index keeps the
    stop words and the coordinate space for the commands that use it.

    With --relation, the file has features instead, and each one is a fence:
    a subscription to the events whose geometry has that relation to the
    feature's.

    With --verify, name the damaged files of an index. With --dump, write its
    subscriptions that have not expired, in the form that this command reads.

    [bold]Examples[/bold]
      fencepost index subscriptions.csv --out hail.index
      fencepost index zones.geojson --relation S_INTERSECTS --id name --out zones.index
      fencepost index zones.gpkg --relation S_WITHIN --where "kind = 'hail'" --out zones.index
      fencepost index new.ndjson --out hail.index --replace --dead-letters bad.ndjson
      fencepost index subscriptions.csv --out hail.index --stop-words english.txt
      fencepost index --verify hail.index
      fencepost index --dump hail.index > subscriptions.ndjson

    [bold]Exit codes[/bold]
      0 done, 1 refused or damaged, 2 wrong usage, 3 done, but rows were set
      aside and not kept by --dead-letters
    """
    _require_one({"SUBSCRIPTIONS": subscriptions, "--verify": verify, "--dump": dump})
    if subscriptions is None:
        building = {
            "--out": out,
            "--replace": replace,
            "--relation": relation,
            "--id": id,
            "--distance": distance,
            "--where": where,
            "--attribute": attribute,
            "--x": x,
            "--y": y,
            "--layer": layer,
            "--crs": crs is OtherCrs.TRANSFORM,
            "--stop-words": stop_words,
            "--space": space,
            "--dead-letters": dead_letters,
            "--strict": strict,
            "--format": format,
        }
        _use_saved_index(verify, dump, [name for name, value in building.items() if value], as_json)
        return
    if out is None:
        raise typer.BadParameter("give the folder to write the index to: --out FOLDER")
    points = point_columns(x, y)
    fence = _fence(relation, id, distance, where, attribute, space)
    _require_features(fence, points, layer, crs)
    if out.exists() and not replace and any(out.iterdir() if out.is_dir() else [out]):
        raise FencepostError(f"{out} exists already; give --replace to replace it")
    from fencepost.formats.dead_letters import DeadLetterCollector

    with DeadLetterCollector(dead_letters, strict) as collector:

        def add(matcher: Matcher) -> int:
            if fence is None:
                return _subscribe(matcher, subscriptions, format, collector)
            return _add_fences(matcher, subscriptions, fence, format, points, layer, crs, collector)

        what = "subscriptions" if fence is None else "features"
        _build_index(add, what, out, replace, stop_words, space, collector, as_json)
    report(collector)


def _require_features(
    fence: FenceOptions | None, points: PointColumns | None, layer: str | None, crs: OtherCrs
) -> None:
    """Raise BadParameter if options of features are given for a file of subscriptions."""
    if fence is None and (points or layer is not None or crs is OtherCrs.TRANSFORM):
        raise typer.BadParameter(
            "--x, --y, --layer and --crs are for features; give --relation, too"
        )


def _use_saved_index(
    verify: Path | None, dump: Path | None, building: list[str], as_json: bool
) -> None:
    """Verify or dump an index. `building` names the options given that only build one."""
    if building:
        option = "--verify" if verify is not None else "--dump"
        raise typer.BadParameter(f"{option} builds no index; leave out {', '.join(building)}")
    from fencepost.cli import saved_index

    if dump is not None:
        saved_index.dump(dump)
    elif verify is not None and not saved_index.verify(verify, as_json):
        raise typer.Exit(EXIT_DAMAGED)


def _build_index(
    add: Callable[[Matcher], int],
    what: str,
    out: Path,
    replace: bool,
    stop_words: Path | None,
    space: Space | None,
    collector: DeadLetterCollector,
    as_json: bool,
) -> None:
    """Compile what `add` adds to a matcher, save the index, and print what it holds."""
    started = time.perf_counter()
    from fencepost.engine.matcher import Matcher
    from fencepost.formats.file_formats import read_stop_words

    matcher = Matcher(space, stop_words=read_stop_words(stop_words))
    matcher.send_warnings_to(_print_matcher_warning)
    count = add(matcher)
    if collector.count and not count:
        raise FencepostError(
            f"none of the {collector.count:,} {what} can be used; the first: {collector.first[0]}"
        )
    with progress("Building", None):
        matcher.compact()
        matcher.save(out, overwrite=replace)
    _print_index(matcher, count, collector, out, time.perf_counter() - started, as_json)


def point_columns(x: str | None, y: str | None) -> PointColumns | None:
    """Return the columns that --x and --y name; None without them."""
    if x is None and y is None:
        return None
    if x is None or y is None:
        raise typer.BadParameter("points need two columns; give --x and --y together")
    from fencepost.formats.csv_files import PointColumns

    return PointColumns(x, y)


def _fence(
    relation: str | None,
    id: str | None,
    distance: float | None,
    where: str | None,
    attribute: str | None,
    space: Space | None,
) -> FenceOptions | None:
    options = {"--id": id, "--distance": distance, "--where": where, "--attribute": attribute}
    if relation is None:
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise typer.BadParameter(
                f"{given[0]} is for fences of features; give --relation, too, such as "
                "--relation S_INTERSECTS"
            )
        return None
    from fencepost.formats.fence_files import FenceOptions

    fence = FenceOptions(
        cast("RelationName", relation), distance, attribute or "geometry", where, id
    )
    fence.check(space or DEFAULT_SPACE)
    return fence


def _add_fences(
    matcher: Matcher,
    path: str,
    fence: FenceOptions,
    format: Format | None,
    points: PointColumns | None,
    layer: str | None,
    crs: OtherCrs,
    collector: DeadLetterCollector,
) -> int:
    from fencepost.formats.event_files import read_events
    from fencepost.formats.fence_files import subscribe_fences

    events = read_events(path, collector, format=format, points=points, layer=layer)
    geometry = events.geometry or "geometry"
    first = next(iter(events.declared_crs.values()), None)
    declared = events.declared_crs.get(geometry, None if geometry in events.names else first)
    transformation = None
    if declared is not None:
        what = f"the geometry of {events.name}"
        transformation = matcher.view().crs_agreement.transformation(declared, crs, what)
    with progress("Compiling", events.total) as step:
        return subscribe_fences(matcher, events, fence, collector, step, transformation)


def _print_index(
    matcher: Matcher,
    count: int,
    collector: DeadLetterCollector,
    out: Path,
    seconds: float,
    as_json: bool,
) -> None:
    """Print what `index` has written: as text, or as JSON."""
    size = sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    expired = count - len(matcher)
    if as_json:
        print_json(
            subscriptions=count,
            expired=expired,
            dead_letters=collector.count,
            bytes=size,
            seconds=round(seconds, 3),
            folder=str(out),
        )
    else:
        expired_note = f" ({expired:,} expired already)" if expired else ""
        spent = f"{format_bytes(size)}, in {seconds:.1f} s"
        print_line(f"{count:,} subscriptions{expired_note}, {spent}; written to {out}")


EventsFile = Annotated[
    str,
    typer.Argument(
        help="File of events: GeoJSON, NDJSON, Parquet, GeoParquet, GeoPackage or CSV; - is "
        "NDJSON on standard input."
    ),
]
MatchesOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        help="File to write the matches to instead of standard output: .ndjson, .csv, .parquet or "
        ".geoparquet with a row for each match, .geojson with the events that match.",
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        "--top-k",
        min=1,
        help="Keep the best matches of each event, at most this number, with scores.",
    ),
]
MinScore = Annotated[
    float | None,
    typer.Option(
        "--min-score",
        min=0,
        max=1,
        help="Keep matches with at least this score, best first, with scores.",
    ),
]
JsonSummary = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print the summary as JSON: on standard output, or on standard error if the matches "
        "are on standard output.",
    ),
]


def match(
    events: EventsFile,
    index: Index = None,
    subscriptions: Subscriptions = None,
    stop_words: StopWords = None,
    space: SpaceOption = None,
    out: MatchesOut = None,
    x: XColumn = None,
    y: YColumn = None,
    layer: Layer = None,
    crs: CrsOption = OtherCrs.REFUSE,
    top_k: TopK = None,
    min_score: MinScore = None,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads that match events.")] = 1,
    count: Annotated[
        bool, typer.Option("--count", help="Print only the number of matches.")
    ] = False,
    dead_letters: DeadLetterFile = None,
    strict: Strict = False,
    format: InputFormat = None,
    as_json: JsonSummary = False,
) -> None:
    """Match the events of a file with subscriptions, and write the matches.

    A match is a line of JSON on standard output: event, the number of the
    row from 0; event_id, if the event has an id; subscription; subscriber.
    Lines of an open pipe are matched as they arrive. A summary goes to
    standard error. Rows that cannot be read are set aside. Conditions on a
    geometry that is not valid are unknown, so they do not match. Warnings
    name attributes that subscriptions name and no event has, and count
    geometries that are not valid; with --strict they are errors.

    With --top-k or --min-score, each match has a score from 0 to 1: how many
    of the event's words the subscription names, where rare words count more,
    and how near the event is to the centre of the subscription's area.
    --min-score 0 keeps all matches.

    [bold]Examples[/bold]
      fencepost match events.ndjson --index hail.index
      fencepost match day.parquet --index hail.index --out matches.parquet --threads 4
      tail -f events.ndjson | fencepost match - --subscriptions hail.csv
      fencepost match events.geojson --index hail.index --count
      fencepost match ships.csv --x lon --y lat --index hail.index
      fencepost match events.ndjson --index hail.index --top-k 10 --min-score 0.2

    [bold]Exit codes[/bold]
      0 done, whether or not anything matched, 1 refused, 2 wrong usage,
      3 done, but rows were set aside and not kept by --dead-letters
    """
    _require_one({"--index": index, "--subscriptions": subscriptions})
    _reject_index_settings(stop_words, space, index)
    points = point_columns(x, y)
    out = None if str(out) == "-" else out
    if count and out is not None:
        raise typer.BadParameter("--count writes no matches; leave out --out or --count")
    if events == subscriptions == STDIN:
        raise typer.BadParameter("events and subscriptions cannot both come from standard input")
    form = OutputFormat.NDJSON if out is None else output_format_of(out)
    if out is not None and out.exists() and os.path.exists(events) and out.samefile(events):
        raise FencepostError(f"{out} is the file of events; write the matches to another file")
    from fencepost.engine import MatchLimits
    from fencepost.formats.dead_letters import DeadLetterCollector
    from fencepost.formats.event_files import read_events
    from fencepost.formats.file_matching import match_file
    from fencepost.formats.match_files import NullSink, make_sink, open_output

    limits = None if top_k is None and min_score is None else MatchLimits(top_k, min_score)
    with ExitStack() as stack:
        collector = stack.enter_context(DeadLetterCollector(dead_letters, strict))
        matcher = _open_matcher(index, subscriptions, stop_words, space, collector)
        needs_all_columns = form in (OutputFormat.GEOJSON, OutputFormat.GEOPARQUET)
        columns = None if needs_all_columns else matcher.requested_attributes() | {"id"}
        file = read_events(
            events, collector, format=format, columns=columns, points=points, layer=layer
        )
        stream = sys.stdout.buffer if out is None else stack.enter_context(open_output(out))
        sink = NullSink() if count else make_sink(form, stream, file, limits is not None)
        shares_terminal = out is None and not count and sys.stdout.isatty()
        with progress("Loading kernels (compiled on first use: fencepost warmup)", None):
            matcher.match({})  # so that the totals do not include compilation
        step = stack.enter_context(progress("Matching", file.total, hidden=shares_terminal))
        totals = match_file(matcher, file, sink, collector, threads, step, limits, crs)
    if count and not as_json:
        print_line(str(totals.matches))
    _print_summary(totals, collector, out, as_json=as_json, to_stderr=out is None and not count)
    if totals.warnings and strict:
        raise FencepostError("; ".join(totals.warnings))
    for warning in totals.warnings:
        _print_matcher_warning(warning)
    report(collector)


def _print_summary(
    totals: MatchTotals,
    collector: DeadLetterCollector,
    out: Path | None,
    *,
    as_json: bool,
    to_stderr: bool,
) -> None:
    """Print the totals of `match`: as text to standard error, or as JSON."""
    if not as_json:
        print_line(
            f"{totals.events:,} events, {totals.matches:,} matches, "
            f"{collector.count:,} dead letters in {totals.seconds:.1f} s "
            f"({totals.rate:,.0f} events a second)",
            err=True,
        )
        return
    summary = {
        "events": totals.events,
        "matches": totals.matches,
        "dead_letters": collector.count,
        "seconds": round(totals.seconds, 3),
        "events_per_second": round(totals.rate),
        "attributes_not_found": totals.attributes_not_found,
        "unusable_geometries": totals.unusable_geometries,
        "out": None if out is None else str(out),
    }
    print_line(json.dumps(summary), err=to_stderr)


OneEvent = Annotated[
    str | None,
    typer.Argument(
        help="Event: JSON in quotes, a file of events, or - for JSON on standard input."
    ),
]
Simplify = Annotated[
    bool,
    typer.Option(
        "--simplify",
        help="Show the subscription without redundant conditions; takes no EVENT.",
    ),
]
Plan = Annotated[
    bool,
    typer.Option(
        "--plan",
        help="Show the access paths by which events find the subscription; takes no EVENT.",
    ),
]


def explain(
    event: OneEvent = None,
    id: Annotated[str | None, typer.Argument(help="Id of the subscription.")] = None,
    index: Index = None,
    subscriptions: Subscriptions = None,
    expression: Annotated[
        str | None,
        typer.Option(
            "--expression", "-e", help="CQL2 expression, instead of the ID and its source."
        ),
    ] = None,
    stop_words: StopWords = None,
    space: SpaceOption = None,
    row: Annotated[
        int | None,
        typer.Option(min=0, help="Row of the event in the file, from 0, as `match` numbers it."),
    ] = None,
    x: XColumn = None,
    y: YColumn = None,
    layer: Layer = None,
    simplify: Simplify = False,
    plan: Plan = False,
    as_json: AsJson = False,
) -> None:
    """Show why an event matches a subscription or not, condition by condition.

    Each line is a part of the expression with its outcome, true, false or
    unknown, and the value of the event that it was compared with. A condition
    is unknown if an attribute is missing, has another type, or is a geometry
    that is not valid.

    With --simplify, show an expression that matches the same events, without
    conditions that other conditions imply, alternatives that other
    alternatives cover, and alternatives that no event satisfies. Each removed
    part is listed with the reason.

    With --plan, show for each alternative of the subscription the access path
    by which events find it, the expected part of events that do, and whether
    that is estimated from past events or from the subscriptions.

    [bold]Examples[/bold]
      fencepost explain events.ndjson storm-7 --row 12 --index hail.index
      fencepost explain '{"wind": 20}' storm-7 --subscriptions hail.csv
      fencepost explain '{"wind": 20}' --expression "wind > 30"
      fencepost explain '{"t": "The cat"}' -e "A_CONTAINS(t, ('a cat'))" --stop-words en.txt
      fencepost explain '{"g": "POINT(5 60)"}' -e "S_DWITHIN(g, POINT(6 60), 900)"
      fencepost explain --simplify storm-7 --index hail.index
      fencepost explain --simplify --expression "wind > 30 AND wind > 20"
      fencepost explain --plan storm-7 --index hail.index

    [bold]Exit codes[/bold]
      0 it matches (with --simplify or --plan: done), 4 it does not, 1 refused,
      2 wrong usage
    """
    _require_one({"--index": index, "--subscriptions": subscriptions, "--expression": expression})
    _reject_index_settings(stop_words, space, index)
    if simplify and plan:
        raise typer.BadParameter("give --simplify or --plan, not both")
    if simplify or plan:
        if row is not None or id is not None:
            option = "--simplify" if simplify else "--plan"
            raise typer.BadParameter(f"{option} takes no event: give the ID, or --expression")
        id, event = event, None
    elif event is None:
        raise typer.BadParameter("give an EVENT, or --simplify, or --plan")
    points = point_columns(x, y)
    if (id is None) == (expression is None):
        raise typer.BadParameter("give the ID of a subscription, or --expression")
    source = SubscriptionSource(
        id, index, subscriptions, expression, stop_words, space or DEFAULT_SPACE
    )
    if plan:
        _show_plan(source, as_json)
    elif event is None:
        _show_simplification(source, as_json)
    else:
        from fencepost.cli.single_subscription import read_event

        _show_explanation(read_event(event, row, points, layer), source, as_json)


def _show_plan(source: SubscriptionSource, as_json: bool) -> None:
    from fencepost.cli.single_subscription import plan_subscription

    filters = plan_subscription(source)
    text = "\n".join(map(str, filters)) or "nothing: no event can match"
    _show({"filters": [planned.as_dict() for planned in filters]}, text, as_json)


def _show_simplification(source: SubscriptionSource, as_json: bool) -> None:
    from fencepost.cli.single_subscription import simplify_subscription

    simplification = simplify_subscription(source)
    _show(simplification.as_dict(), str(simplification), as_json)


def _show_explanation(event: dict[str, Any], source: SubscriptionSource, as_json: bool) -> None:
    """Print the explanation, and exit with the code of its outcome."""
    from fencepost.cli.single_subscription import explain_event

    explanation, expired = explain_event(event, source)
    matches = explanation.matches and not expired
    note = ", because it has expired" if expired else ""
    _show(
        {"matches": matches, "expired": expired, "explanation": explanation.as_dict()},
        "\n".join([*explanation.lines(), f"matches: {'yes' if matches else 'no' + note}"]),
        as_json,
    )
    raise typer.Exit(0 if matches else EXIT_NO_MATCH)


def _show(values: Mapping[str, Any], text: str, as_json: bool) -> None:
    if as_json:
        print_json(**values)
    else:
        print_line(text)


def stats(
    folder: Annotated[
        Path, typer.Argument(help="Folder of the index, which `fencepost index` wrote.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show the contents of an index: subscriptions, segments, access paths.

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
    for name, value in flatten(numbers):
        table.add_row(
            name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value)
        )
    Console().print(table)


def _open_matcher(
    index: Path | None,
    subscriptions: str | None,
    stop_words: Path | None,
    space: Space | None,
    collector: DeadLetterCollector,
) -> Matcher:
    from fencepost.engine.matcher import Matcher
    from fencepost.formats.file_formats import read_stop_words

    if index is not None:
        matcher = Matcher.open(index)
    else:
        matcher = Matcher(space, stop_words=read_stop_words(stop_words))
    matcher.send_warnings_to(_print_matcher_warning)
    if index is None and subscriptions is not None:
        _subscribe(matcher, subscriptions, None, collector)
    return matcher


def _print_matcher_warning(message: str) -> None:
    print_warning(f"warning: {message}")


def _subscribe(
    matcher: Matcher, path: str, format: Format | None, collector: DeadLetterCollector
) -> int:
    from fencepost.formats.file_matching import subscribe_file
    from fencepost.formats.subscription_files import read_subscriptions

    file = read_subscriptions(path, collector, format=format)
    with progress("Compiling", file.total) as step:
        return subscribe_file(matcher, file, collector, step)


def _require_one(options: dict[str, object]) -> None:
    if sum(value is not None for value in options.values()) != 1:
        raise typer.BadParameter(f"give one of {', '.join(options)}")


def _reject_index_settings(
    stop_words: Path | None, space: Space | None, index: Path | None
) -> None:
    if index is None:
        return
    if stop_words is not None:
        raise typer.BadParameter(
            "an index keeps the stop words it was built with; leave out --stop-words, or build it "
            "again: fencepost index SUBSCRIPTIONS --out FOLDER --replace --stop-words FILE"
        )
    if space is not None:
        raise typer.BadParameter(
            "an index keeps the space it was built with; leave out --space, or build it again: "
            f"fencepost index SUBSCRIPTIONS --out FOLDER --replace --space {space}"
        )


def report(collector: DeadLetterCollector) -> None:
    """Print the dead letters. Exit with code 3 if they were not kept in a file."""
    if not collector.count:
        return
    if collector.path is not None:
        print_line(f"{collector.count:,} rows set aside in {collector.path}", err=True)
        return
    for letter in collector.first:
        print_warning(f"set aside: {letter}".partition("\n")[0])
    hidden = collector.count - len(collector.first)
    more = f"and {hidden:,} more; " if hidden else ""
    print_warning(f"{more}keep such rows with --dead-letters FILE, or refuse them with --strict")
    raise typer.Exit(EXIT_SET_ASIDE)
