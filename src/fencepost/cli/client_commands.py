"""The commands against a running server (`publish`, `subscribe`, `tail`), and those about backups
(`export`, `import`)."""

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

from fencepost.cli.file_commands import AsJson, DeadLetterFile, InputFormat, Strict, report
from fencepost.cli.server_commands import DATA, Data
from fencepost.cli.terminal import bytes_text, complain, print_json, print_line, progress
from fencepost.errors import Unreachable

if TYPE_CHECKING:
    from fencepost.client.blocking_client import Client
    from fencepost.client.results import Message, RejectedRow
    from fencepost.formats.dead_letters import LetterBox
    from fencepost.formats.event_files import Batch
    from fencepost.formats.subscription_files import Row

Server = Annotated[
    str, typer.Option("--server", envvar="FENCEPOST_SERVER", help="Address of the server.")
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key", envvar="FENCEPOST_KEY", help="As `fencepost keys add` printed it; none if open."
    ),
]
Patience = Annotated[
    float,
    typer.Option("--patience", min=0, help="Seconds for which a server is waited for that fails."),
]
_SERVER = "http://127.0.0.1:8080"
_PATIENCE_S = 60.0


def publish(
    events: Annotated[
        str,
        typer.Argument(
            help="GeoJSON, NDJSON, Parquet or GeoParquet; - is NDJSON on standard input."
        ),
    ],
    server: Server = _SERVER,
    key: Key = None,
    dead_letters: DeadLetterFile = None,
    strict: Strict = False,
    format: InputFormat = None,
    patience: Patience = _PATIENCE_S,
    as_json: AsJson = False,
) -> None:
    """Publish the events of a file to a server.

    Events are sent in batches, in order. A batch whose answer is lost is sent
    again and taken once; a server that is busy or restarts is waited for.
    Lines that arrive through an open pipe are sent as they come. Rows that
    cannot be used are set aside, and the others are published.

    [bold]Examples[/bold]
      fencepost publish events.ndjson
      fencepost publish day.parquet --server https://fences.example.org --dead-letters bad.ndjson
      tail -f positions.ndjson | FENCEPOST_KEY=fp_... fencepost publish -

    [bold]Exit codes[/bold]
      0 done, 1 refused, 2 wrong usage, 3 done, but rows were set aside and
      no --dead-letters said where to keep them
    """
    from fencepost.formats.dead_letters import LetterBox
    from fencepost.formats.event_files import read_events

    started = time.perf_counter()
    accepted = messages = 0
    with LetterBox(dead_letters, strict) as letters, _client(server, key, patience) as client:
        file = read_events(events, letters, format=format)
        with progress("Publishing", file.total) as step:
            for batch in file:
                done = client.publish(_lines(batch, file.geometry))
                accepted += done.accepted
                messages += done.messages
                _set_aside(file.name, batch, done.rejected, letters)
                step(batch.done)
    seconds = time.perf_counter() - started
    rate = accepted / seconds
    if as_json:
        print_json(
            events=accepted,
            messages=messages,
            dead_letters=letters.count,
            seconds=round(seconds, 3),
            events_per_second=round(rate),
            server=server,
        )
    else:
        print_line(
            f"{accepted:,} events published, {messages:,} messages, {letters.count:,} dead letters "
            f"in {seconds:.1f} s ({rate:,.0f} events a second)"
        )
    report(letters)


def _lines(batch: Batch, geometry: str | None) -> Iterator[bytes]:
    """The events of a batch as JSON: objects as they are, rows of tables as Features."""
    import numpy as np

    from fencepost.formats.feature_writer import features, json_text

    events = batch.events
    if not isinstance(events, list):
        events = features(batch, np.arange(len(batch)), geometry)
    return (json_text(event).encode("utf-8", "replace") for event in events)


def _set_aside(
    name: str, batch: Batch, rejected: Sequence[RejectedRow], letters: LetterBox
) -> None:
    from fencepost.formats.dead_letters import DeadLetter, shortened
    from fencepost.formats.feature_writer import json_text

    for one in rejected:
        line = None if batch.lines is None else int(batch.lines[one.row])
        raw = shortened(json_text(batch.event(one.row)))
        letters(DeadLetter(name, int(batch.rows[one.row]), one.reason, raw, line))


def subscribe(
    id: Annotated[str | None, typer.Argument(help="Of the subscription.")] = None,
    expression: Annotated[str | None, typer.Argument(help="CQL2, as text or as JSON.")] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", help="Many: CSV, GeoJSON, NDJSON or Parquet; - is standard input."
        ),
    ] = None,
    subscriber: Annotated[
        str | None, typer.Option(help="Who gets the messages; the ID if left out.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="When it ends, as in 2030-01-31T12:00:00Z.")
    ] = None,
    track: Annotated[
        str | None, typer.Option(help="JSON: what moving objects do to it, in place of matches.")
    ] = None,
    composite: Annotated[
        str | None, typer.Option(help="JSON: several events together, in place of EXPRESSION.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option(help="JSON that comes back with each message.")
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the subscription ID instead.")
    ] = False,
    server: Server = _SERVER,
    key: Key = None,
    dead_letters: DeadLetterFile = None,
    strict: Strict = False,
    format: InputFormat = None,
    patience: Patience = _PATIENCE_S,
    as_json: AsJson = False,
) -> None:
    """Ask a standing question of a server, or all those of a file.

    It takes the place of one that has the same id. A file has rows with an
    id, an expression and, where wanted, a subscriber and the time when it
    expires; rows that cannot be used are set aside.

    [bold]Examples[/bold]
      fencepost subscribe taxis "kind = 'taxi'" --subscriber me
      fencepost subscribe here "S_INTERSECTS(geometry, BBOX(5, 60, 6, 61))"
      fencepost subscribe --file subscriptions.csv --dead-letters bad.ndjson
      fencepost subscribe taxis --remove

    [bold]Exit codes[/bold]
      0 done, 1 refused, 2 wrong usage, 3 done, but rows were set aside and
      no --dead-letters said where to keep them
    """
    single = {
        "--subscriber": subscriber,
        "--expires": expires,
        "--track": track,
        "--composite": composite,
        "--payload": payload,
    }
    if file is not None:
        given = [name for name, value in single.items() if value is not None]
        if id is not None or remove or given:
            raise typer.BadParameter("--file names all; leave ID and the options of one away")
        with _client(server, key, patience) as client:
            _subscribe_file(file, format, client, dead_letters, strict, as_json)
        return
    if id is None:
        raise typer.BadParameter("give ID and EXPRESSION, or --file")
    if not remove and (expression is None) == (composite is None):
        raise typer.BadParameter("give EXPRESSION or --composite, one of them")
    with _client(server, key, patience) as client:
        if remove:
            there = client.unsubscribe(id)
            if as_json:
                print_json(id=id, removed=there)
            else:
                print_line(f"removed {id}" if there else f"there is no subscription {id}")
            return
        made = client.subscribe(
            id,
            _expression(expression),
            subscriber=subscriber,
            expires=expires,
            track=_json("--track", track),
            composite=_json("--composite", composite),
            payload=_json("--payload", payload),
        )
    if as_json:
        print_json(**made)
    else:
        print_line(f"{made['id']}: messages go to {made['subscriber']}")


def _subscribe_file(
    path: str,
    format: Any,
    client: Client,
    dead_letters: Path | None,
    strict: bool,
    as_json: bool,
) -> None:
    from fencepost.formats.dead_letters import DeadLetter, LetterBox
    from fencepost.formats.subscription_files import read_subscriptions

    created = replaced = 0
    with LetterBox(dead_letters, strict) as letters:
        file = read_subscriptions(path, letters, format=format)
        with progress("Subscribing", file.total) as step:
            for rows, done in file:
                found = client.subscribe_many(map(_definition, rows))
                created += found.created
                replaced += found.replaced
                for one in found.rejected:
                    row = rows[one.row]
                    letters(DeadLetter(file.name, row.row, one.reason, row.raw, row.line))
                step(done)
    if as_json:
        print_json(created=created, replaced=replaced, dead_letters=letters.count)
    else:
        print_line(
            f"{created:,} subscriptions made, {replaced:,} replaced, {letters.count:,} set aside"
        )
    report(letters)


def _definition(row: Row) -> dict[str, Any]:
    return {name: value for name, value in row.values.items() if value is not None}


def _expression(given: str | None) -> Any:
    """CQL2 JSON as an object, text as it is."""
    if given is None or not given.lstrip().startswith("{"):
        return given
    return _json("EXPRESSION", given)


def _json(name: str, given: str | None) -> Any:
    if given is None:
        return None
    try:
        return json.loads(given)
    except ValueError as error:
        raise typer.BadParameter(f"{name} is no JSON: {error}") from None


def tail(
    subscriber: Annotated[str, typer.Argument(help="Whose messages.")],
    since: Annotated[
        int | None,
        typer.Option(min=0, help="Begin after this position; after what was read if left out."),
    ] = None,
    count: Annotated[
        int | None, typer.Option("--count", "-n", min=1, help="Stop after so many messages.")
    ] = None,
    no_ack: Annotated[
        bool, typer.Option("--no-ack", help="Do not note that the messages are read.")
    ] = False,
    server: Server = _SERVER,
    key: Key = None,
    patience: Patience = _PATIENCE_S,
    as_json: Annotated[
        bool, typer.Option("--json", help="One CloudEvent a line instead of text.")
    ] = False,
) -> None:
    """Show the messages of a subscriber as they come, until Ctrl-C.

    What was shown is acknowledged: the next `tail` goes on after it, unless
    --no-ack is given. Where the connection breaks it is opened again, without
    a gap; that is said on standard error.

    [bold]Examples[/bold]
      fencepost tail me
      fencepost tail me --since 0 --no-ack        all that are kept, once more
      fencepost tail me --json | jq .data.event

    [bold]Exit codes[/bold]
      0 done (--count), 1 refused, 2 wrong usage, 130 stopped with Ctrl-C
    """
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    with (
        _client(server, key, patience) as client,
        closing(client.messages(subscriber, since, acknowledge=not no_ack)) as found,
    ):
        for number, message in enumerate(found, start=1):
            print_line(json.dumps(message.as_dict()) if as_json else shown(message)[:width])
            if number == count:
                if not no_ack:
                    client.acknowledge(subscriber, message.position)
                break


def shown(message: Message) -> str:
    """A message as a line for people."""
    kind = message.type.removeprefix("fencepost.")
    data = {name: value for name, value in message.data.items() if name != "event"}
    about = ", ".join(data.pop("subscriptions", ()))
    data.pop("position", None)
    words = [f"{message.time[:19]}Z", f"{message.position:>8}", kind, about]
    words += [f"{name}={_brief(value)}" for name, value in {**data, **_event(message)}.items()]
    return "".join(mark if mark.isprintable() else " " for mark in "  ".join(filter(None, words)))


def _event(message: Message) -> dict[str, Any]:
    event = message.event or {}
    if event.get("type") != "Feature":
        return event
    own = event.get("properties") or {}
    rest = {name: event[name] for name in ("id", "geometry") if event.get(name) is not None}
    return {**rest, **own}


def _brief(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and value.get("type") == "Point":
        return f"POINT({' '.join(map(str, value.get('coordinates', ())))})"
    if isinstance(value, dict) and "coordinates" in value:
        return str(value.get("type"))
    return json.dumps(value, ensure_ascii=False)


@contextmanager
def _client(server: str, key: str | None, retry_timeout_s: float) -> Iterator[Client]:
    """A client that says on standard error when it tries again."""
    from fencepost.client.optional_clients import Client
    from fencepost.client.retry_policy import logger

    handler = logging.Handler()
    handler.emit = lambda record: complain(record.getMessage())  # type: ignore[method-assign]
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
    out: Annotated[Path, typer.Argument(help="File to write.", dir_okay=False)],
    data: Data = DATA,
    replace: Annotated[
        bool, typer.Option("--replace", help="Put it in the place of a file that is there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write a backup of a server's folder to one file, while the server runs.

    Subscriptions, events, messages and how far each subscriber has read them,
    keys and endpoints, as they were at one moment. Whoever has the file has the
    secrets of webhooks; of keys it holds hashes only.

    [bold]Examples[/bold]
      fencepost export monday.backup
      fencepost export /backup/fencepost.backup --data /var/lib/fencepost --replace --json
    """
    from fencepost.store.backup import export_backup

    made = export_backup(data, out, time.time_ns(), replace=replace)
    _show_backup(made, f"{bytes_text(out.stat().st_size)}, written to {out}", as_json)


def import_backup(
    file: Annotated[
        Path, typer.Argument(help="What `fencepost export` wrote.", dir_okay=False, exists=True)
    ],
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Put a backup into an empty folder, to be served.

    A folder that holds anything is refused, and so is a backup that is damaged
    or was made by a newer release; one of an older release is brought up to
    date.

    [bold]Examples[/bold]
      fencepost import monday.backup --data restored
      fencepost serve --data restored
    """
    from fencepost.store.backup import import_backup

    _show_backup(import_backup(file, data), f"in {data}", as_json)


def _show_backup(made: Any, where: str, as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        print_json(**asdict(made))
        return
    counts = made.counts
    print_line(
        f"{counts['subscriptions']:,} subscriptions, {counts['events']:,} events, "
        f"{counts['messages']:,} messages, {counts['keys']:,} keys; {where}"
    )
