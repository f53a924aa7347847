"""The commands `fencepost serve` and `fencepost keys`."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fencepost.cli.terminal import print_json, print_line
from fencepost.geometry.space import Space

DATA = Path("fencepost-data")

Data = Annotated[
    Path, typer.Option(help="Folder of the database; made if missing.", file_okay=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

keys = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Make, list and revoke the keys of a server's tenants.",
)


def serve(
    data: Data = DATA,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    space: Annotated[
        Space, typer.Option(help="What coordinates mean; fixed when the folder is made.")
    ] = Space.WGS84,
    open_access: Annotated[
        bool,
        typer.Option("--open", help="Let everybody on this machine do everything, without keys."),
    ] = False,
    retention: Annotated[
        float, typer.Option(min=0.001, help="Days for which events and messages are kept.")
    ] = 7.0,
    allow_private_webhooks: Annotated[
        bool,
        typer.Option("--allow-private-webhooks", help="Let webhooks go to private addresses, too."),
    ] = False,
    mqtt: Annotated[
        str | None,
        typer.Option(
            envvar="FENCEPOST_MQTT",
            help="Broker to take events from and give messages to: HOST:PORT, or "
            "mqtt://USER:PASSWORD@HOST:PORT, or mqtts:// for TLS.",
        ),
    ] = None,
    lateness: Annotated[
        float,
        typer.Option(min=0.0, help="Seconds that an event may be late to be part of a composite."),
    ] = 60.0,
    rate: Annotated[
        float, typer.Option(min=0.0, help="Requests a second of each key; 0 for no limit.")
    ] = 0.0,
) -> None:
    """Serve subscriptions and events over HTTP, with a console to watch them.

    What was answered is on the disk: a server that was killed goes on where it
    was. Without --open every request needs a key; `fencepost keys` makes them.

    [bold]Examples[/bold]
      fencepost serve --open
      fencepost keys add --scope admin && fencepost serve --host 0.0.0.0
    """
    from fencepost.server.server_process import serve as run
    from fencepost.server.settings import Limits, Settings

    settings = Settings(
        data,
        space=space.value,
        retention_s=retention * 86_400,
        open_access=open_access,
        allow_private_webhooks=allow_private_webhooks,
        mqtt=mqtt,
        lateness_s=lateness,
        limits=Limits(requests_per_s=rate),
    )
    console = Console(stderr=True, highlight=False)

    def ready(address: str) -> None:
        console.print(f"Fencepost serves {data} at {address}  (Ctrl-C stops it)")

    run(settings, host, port, ready)


@keys.command("add")
def add_key(
    scope: Annotated[
        list[str], typer.Option(help="publish, subscribe or admin; may be given several times.")
    ],
    tenant: Annotated[str, typer.Option(help="Whose it is; made if new.")] = "default",
    name: Annotated[str, typer.Option(help="What it is for.")] = "",
    expires: Annotated[str | None, typer.Option(help="When it ends, in ISO 8601.")] = None,
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it. It is not shown again.

    [bold]Examples[/bold]
      fencepost keys add --scope admin --scope publish --scope subscribe
      fencepost keys add --tenant acme --scope subscribe --name "acme's phones"
    """
    from fencepost.engine.subscriptions import parse_expiry
    from fencepost.store import api_keys as stored
    from fencepost.store.database import Database

    end = None if expires is None else parse_expiry(expires)
    with closing(Database(data, exclusive=False)) as database, database.transaction() as writer:
        made = stored.add_key(writer, tenant, scope, name, time.time_ns(), end)
    if as_json:
        print_json(key=made, tenant=tenant, scopes=sorted(set(scope)))
    else:
        print_line(made)


@keys.command("list")
def list_keys(data: Data = DATA, as_json: AsJson = False) -> None:
    """List the keys, without their secrets."""
    import msgspec

    from fencepost.server.http.schemas import Key
    from fencepost.store import api_keys as stored
    from fencepost.store.database import Database

    with closing(Database(data, exclusive=False)) as database:
        found = [*map(Key.of, database.read(stored.keys))]
    if as_json:
        print_json(keys=msgspec.to_builtins(found))
        return
    table = Table("id", "tenant", "scopes", "name", "created", "expires")
    for one in found:
        scopes, ends = " ".join(one.scopes), one.expires or "never"
        table.add_row(one.id, one.tenant, scopes, one.name, one.created, ends)
    Console().print(table)


@keys.command("revoke")
def revoke_key(
    id: Annotated[str, typer.Argument(help="The id, as `fencepost keys list` shows it.")],
    data: Data = DATA,
) -> None:
    """Revoke a key: it opens nothing any more."""
    from fencepost.errors import StoreError
    from fencepost.store import api_keys as stored
    from fencepost.store.database import Database

    with closing(Database(data, exclusive=False)) as database, database.transaction() as writer:
        there = stored.revoke_key(writer, id)
    if not there:
        raise StoreError(f"there is no key {id!r:.60}; `fencepost keys list` shows them")
