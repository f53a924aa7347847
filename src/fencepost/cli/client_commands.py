"""The clients of a server: `publish`, `subscribe`, `tail`; its backups: `export`, `import`."""

from __future__ import annotations

import json
import logging
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fencepost.cli.file_commands import (
    AsJson,
    DeadLetterFile,
    InputFormat,
    Layer,
    Strict,
    XColumn,
    YColumn,
    point_columns,
    report,
)
from fencepost.cli.server_commands import DATA, Data
from fencepost.cli.terminal import format_bytes, print_json, print_line, print_warning, progress
from fencepost.errors import Unreachable

if TYPE_CHECKING:
    from fencepost.client.blocking_client import Client
    from fencepost.client.results import Message, RejectedRow
    from fencepost.formats.dead_letters import DeadLetterCollector
    from fencepost.formats.event_files import Batch
    from fencepost.formats.subscription_files import SubscriptionRow

Server = Annotated[
    str, typer.Option("--server", envvar="FENCEPOST_SERVER", help="Address of the server.")
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="FENCEPOST_KEY",
        help="API key, as `fencepost keys add` printed it; none for a server with --open.",
    ),
]
RetryTimeout = Annotated[
    float,
    typer.Option(
        "--retry-timeout",
        min=0,
        help="Seconds for which to retry while the server fails or is down.",
    ),
]
_SERVER = "http://127.0.0.1:8080"
_RETRY_TIMEOUT_S = 60.0


def publish(
    events: Annotated[
        str,
        typer.Argument(
            help="File of events: GeoJSON, NDJSON, Parquet or GeoParquet; - is NDJSON on standard "
            "input."
        ),
    ],
    server: Server = _SERVER,
    key: Key = None,
    dead_letters: DeadLetterFile = None,
    strict: Strict = False,
    format: InputFormat = None,
    x: XColumn = None,
    y: YColumn = None,
    layer: Layer = None,
    retry_timeout: RetryTimeout = _RETRY_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Publish the events of a file to a server.

    Events are sent in batches, in order. A batch whose response is lost is
    sent again, and the server processes it once. While the server is busy or
    restarts, the command retries. Lines of an open pipe are sent as they
    arrive. Rows that cannot be used are set aside, all other rows published.

    [bold]Examples[/bold]
      fencepost publish events.ndjson
      fencepost publish day.parquet --server https://fences.example.org --dead-letters bad.ndjson
      tail -f positions.ndjson | FENCEPOST_KEY=fp_... fencepost publish -

    [bold]Exit codes[/bold]
      0 done, 1 refused, 2 wrong usage, 3 done, but rows were set aside and
      not kept by --dead-letters
    """
    from fencepost.formats.dead_letters import DeadLetterCollector
    from fencepost.formats.event_files import read_events

    points = point_columns(x, y)
    started = time.perf_counter()
    accepted = messages = 0
    with (
        DeadLetterCollector(dead_letters, strict) as collector,
        _client(server, key, retry_timeout) as client,
    ):
        file = read_events(events, collector, format=format, points=points, layer=layer)
        with progress("Publishing", file.total) as step:
            for batch in file:
                done = client.publish(_json_lines(batch, file.geometry))
                accepted += done.accepted
                messages += done.messages
                _collect_rejected(file.name, batch, done.rejected, collector)
                step(batch.done)
    seconds = time.perf_counter() - started
    rate = accepted / seconds
    if as_json:
        print_json(
            events=accepted,
            messages=messages,
            dead_letters=collector.count,
            seconds=round(seconds, 3),
            events_per_second=round(rate),
            server=server,
        )
    else:
        print_line(
            f"{accepted:,} events published, {messages:,} messages, "
            f"{collector.count:,} dead letters in {seconds:.1f} s ({rate:,.0f} events a second)"
        )
    report(collector)


def _json_lines(batch: Batch, geometry: str | None) -> Iterator[bytes]:
    """Yield the events of a batch as JSON: objects unchanged, rows of tables as Features."""
    import numpy as np

    from fencepost.formats.feature_writer import features, json_text

    events = batch.events
    if not isinstance(events, list):
        events = features(batch, np.arange(len(batch)), geometry)
    return (json_text(event).encode("utf-8", "replace") for event in events)


def _collect_rejected(
    name: str, batch: Batch, rejected_rows: Sequence[RejectedRow], collector: DeadLetterCollector
) -> None:
    from fencepost.formats.dead_letters import DeadLetter, shorten
    from fencepost.formats.feature_writer import json_text

    for rejected in rejected_rows:
        line = None if batch.lines is None else int(batch.lines[rejected.row])
        raw = shorten(json_text(batch.event(rejected.row)))
        collector(DeadLetter(name, int(batch.rows[rejected.row]), rejected.reason, raw, line))


SubscriptionsFile = Annotated[
    str | None,
    typer.Option(
        "--file",
        "-f",
        help="File of many subscriptions instead of ID and EXPRESSION: CSV, GeoJSON, NDJSON or "
        "Parquet; - is NDJSON on standard input.",
    ),
]
TrackingRules = Annotated[
    str | None,
    typer.Option(
        help="Tracking rules as JSON: report moving objects that enter, leave, cross or stay, "
        "instead of matches."
    ),
]
CompositeJson = Annotated[
    str | None, typer.Option(help="Composite of several events as JSON, instead of EXPRESSION.")
]


def subscribe(
    id: Annotated[str | None, typer.Argument(help="Id of the subscription.")] = None,
    expression: Annotated[
        str | None, typer.Argument(help="Condition in CQL2, as text or as JSON.")
    ] = None,
    file: SubscriptionsFile = None,
    subscriber: Annotated[
        str | None, typer.Option(help="Subscriber that gets the messages; the ID if left out.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="When the subscription ends, as in 2030-01-31T12:00:00Z.")
    ] = None,
    track: TrackingRules = None,
    composite: CompositeJson = None,
    payload: Annotated[str | None, typer.Option(help="JSON to return with each message.")] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the subscription ID instead of making it.")
    ] = False,
    server: Server = _SERVER,
    key: Key = None,
    dead_letters: DeadLetterFile = None,
    strict: Strict = False,
    format: InputFormat = None,
    retry_timeout: RetryTimeout = _RETRY_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Make or replace a subscription on a server, or all subscriptions of a file.

    A subscription with an existing id replaces the old one. A row of a file
    has an id, an expression and, optionally, a subscriber and the time when
    the subscription expires. Rows that cannot be used are set aside.

    [bold]Examples[/bold]
      fencepost subscribe taxis "kind = 'taxi'" --subscriber me
      fencepost subscribe here "S_INTERSECTS(geometry, BBOX(5, 60, 6, 61))"
      fencepost subscribe --file subscriptions.csv --dead-letters bad.ndjson
      fencepost subscribe taxis --remove

    [bold]Exit codes[/bold]
      0 done, 1 refused, 2 wrong usage, 3 done, but rows were set aside and
      not kept by --dead-letters
    """
    single = {
        "--subscriber": subscriber,
        "--expires": expires,
        "--track": track,
        "--composite": composite,
        "--payload": payload,
    }
    if file is not None:
        set_options = [name for name, value in single.items() if value is not None]
        if id is not None or remove or set_options:
            raise typer.BadParameter(
                "--file names all subscriptions; leave out ID and the options of a single one"
            )
        with _client(server, key, retry_timeout) as client:
            _subscribe_file(file, format, client, dead_letters, strict, as_json)
        return
    if id is None:
        raise typer.BadParameter("give ID and EXPRESSION, or --file")
    if not remove and (expression is None) == (composite is None):
        raise typer.BadParameter("give EXPRESSION or --composite, and not both")
    with _client(server, key, retry_timeout) as client:
        if remove:
            existed = client.unsubscribe(id)
            if as_json:
                print_json(id=id, removed=existed)
            else:
                print_line(f"removed {id}" if existed else f"there is no subscription {id}")
            return
        subscription = client.subscribe(
            id,
            _parse_expression(expression),
            subscriber=subscriber,
            expires=expires,
            track=_parse_json("--track", track),
            composite=_parse_json("--composite", composite),
            payload=_parse_json("--payload", payload),
        )
    if as_json:
        print_json(**subscription)
    else:
        print_line(f"{subscription['id']}: messages go to {subscription['subscriber']}")


def _subscribe_file(
    path: str,
    format: Any,
    client: Client,
    dead_letters: Path | None,
    strict: bool,
    as_json: bool,
) -> None:
    from fencepost.formats.dead_letters import DeadLetter, DeadLetterCollector
    from fencepost.formats.subscription_files import read_subscriptions

    created = replaced = 0
    with DeadLetterCollector(dead_letters, strict) as collector:
        file = read_subscriptions(path, collector, format=format)
        with progress("Subscribing", file.total) as step:
            for rows, done in file:
                result = client.subscribe_many(map(_definition, rows))
                created += result.created
                replaced += result.replaced
                for rejected in result.rejected:
                    row = rows[rejected.row]
                    collector(DeadLetter(file.name, row.row, rejected.reason, row.raw, row.line))
                step(done)
    if as_json:
        print_json(created=created, replaced=replaced, dead_letters=collector.count)
    else:
        print_line(
            f"{created:,} subscriptions made, {replaced:,} replaced, {collector.count:,} set aside"
        )
    report(collector)


def _definition(row: SubscriptionRow) -> dict[str, Any]:
    return {name: value for name, value in row.values.items() if value is not None}


def _parse_expression(text: str | None) -> Any:
    """Return CQL2 JSON as an object, CQL2 text unchanged."""
    if text is None or not text.lstrip().startswith("{"):
        return text
    return _parse_json("EXPRESSION", text)


def _parse_json(name: str, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"{name} is no JSON: {error}") from None


def tail(
    subscriber: Annotated[str, typer.Argument(help="Subscriber whose messages to show.")],
    since: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Begin after this position; after the last acknowledged message if left out.",
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after this number of messages.")
    ] = None,
    no_ack: Annotated[
        bool, typer.Option("--no-ack", help="Do not acknowledge the messages.")
    ] = False,
    server: Server = _SERVER,
    key: Key = None,
    retry_timeout: RetryTimeout = _RETRY_TIMEOUT_S,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a CloudEvent a line instead of text.")
    ] = False,
) -> None:
    """Show the messages of a subscriber as they arrive, until Ctrl-C.

    Messages that are shown are acknowledged, so the next `tail` begins after
    them; --no-ack prevents that. A connection that breaks is opened again
    without a gap in the messages, and standard error says so.

    [bold]Examples[/bold]
      fencepost tail me
      fencepost tail me --since 0 --no-ack        all messages that the server keeps
      fencepost tail me --json | jq .data.event

    [bold]Exit codes[/bold]
      0 done (--count), 1 refused, 2 wrong usage, 130 stopped with Ctrl-C
    """
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    with (
        _client(server, key, retry_timeout) as client,
        closing(client.messages(subscriber, since, acknowledge=not no_ack)) as messages,
    ):
        for number, message in enumerate(messages, start=1):
            print_line(
                json.dumps(message.as_dict()) if as_json else format_message(message)[:width]
            )
            if number == count:
                if not no_ack:
                    client.acknowledge(subscriber, message.position)
                break


def format_message(message: Message) -> str:
    """Return a message as a line of text."""
    kind = message.type.removeprefix("fencepost.")
    data = {name: value for name, value in message.data.items() if name != "event"}
    about = ", ".join(data.pop("subscriptions", ()))
    data.pop("position", None)
    words = [f"{message.time[:19]}Z", f"{message.position:>8}", kind, about]
    words += [
        f"{name}={_format_value(value)}"
        for name, value in {**data, **_event_values(message)}.items()
    ]
    return "".join(mark if mark.isprintable() else " " for mark in "  ".join(filter(None, words)))


def _event_values(message: Message) -> dict[str, Any]:
    event = message.event or {}
    if event.get("type") != "Feature":
        return event
    properties = event.get("properties") or {}
    members = {name: event[name] for name in ("id", "geometry") if event.get(name) is not None}
    return {**members, **properties}


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and value.get("type") == "Point":
        return f"POINT({' '.join(map(str, value.get('coordinates', ())))})"
    if isinstance(value, dict) and "coordinates" in value:
        return str(value.get("type"))
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def _client(server: str, key: str | None, retry_timeout_s: float) -> Iterator[Client]:
    """Open a client that logs its retries on standard error."""
    from fencepost.client.optional_clients import Client
    from fencepost.client.retry_policy import logger

    handler = logging.Handler()
    handler.emit = lambda record: print_warning(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.propagate = False
    try:
        with Client(server, key, retry_timeout_s=retry_timeout_s) as client:
            yield client
    except Unreachable as error:
        raise Unreachable(f"{error}; start it, or name another with --server") from error
    finally:
        logger.removeHandler(handler)
        logger.propagate = True


def export_backup(
    out: Annotated[Path, typer.Argument(help="Backup file to write.", dir_okay=False)],
    data: Data = DATA,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the file if it exists.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Back a server's database up to a file, also while the server runs.

    A backup is a snapshot of subscriptions, events, messages and their
    acknowledgements, API keys and endpoints. It contains the secrets of
    webhooks, but only hashes of API keys.

    [bold]Examples[/bold]
      fencepost export monday.backup
      fencepost export /backup/fencepost.backup --data /var/lib/fencepost --replace --json
    """
    from fencepost.store.backup import export_backup

    backup = export_backup(data, out, time.time_ns(), replace=replace)
    _show_backup(backup, f"{format_bytes(out.stat().st_size)}, written to {out}", as_json)


def import_backup(
    file: Annotated[
        Path,
        typer.Argument(
            help="Backup file that `fencepost export` wrote.", dir_okay=False, exists=True
        ),
    ],
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into an empty folder, which `fencepost serve` then serves.

    A folder that is not empty is refused, and so is a backup that is damaged
    or was made by a newer release. A backup of an older release is migrated.

    [bold]Examples[/bold]
      fencepost import monday.backup --data restored
      fencepost serve --data restored
    """
    from fencepost.store.backup import import_backup

    _show_backup(import_backup(file, data), f"in {data}", as_json)


def _show_backup(backup: Any, where: str, as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        print_json(**asdict(backup))
        return
    counts = backup.counts
    print_line(
        f"{counts['subscriptions']:,} subscriptions, {counts['events']:,} events, "
        f"{counts['messages']:,} messages, {counts['keys']:,} keys; {where}"
    )
