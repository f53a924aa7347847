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
from fencepost.extras import requires_extra
from fencepost.geometry.space import Space

DATA = Path("fencepost-data")

Data = Annotated[
    Path, typer.Option(help="Folder of the server's database; made if missing.", file_okay=False)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

keys = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Make, list and revoke the API keys of a server.",
)


@requires_extra("fencepost serve", "server")
def serve(
    data: Data = DATA,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for a free port.")
    ] = 8080,
    space: Annotated[
        Space,
        typer.Option(
            help="Coordinate space: wgs84 is longitude and latitude with distances in metres, "
            "planar is a plane. Fixed when the database is made."
        ),
    ] = Space.WGS84,
    open_access: Annotated[
        bool,
        typer.Option("--open", help="Allow requests without a key; on a loopback address only."),
    ] = False,
    retention: Annotated[
        float, typer.Option(min=0.001, help="Days for which to keep events and messages.")
    ] = 7.0,
    allow_private_webhooks: Annotated[
        bool,
        typer.Option("--allow-private-webhooks", help="Allow webhooks at private addresses."),
    ] = False,
    mqtt: Annotated[
        str | None,
        typer.Option(
            envvar="FENCEPOST_MQTT",
            help="MQTT broker to take events from and deliver messages to: HOST:PORT, or "
            "mqtt://USER:PASSWORD@HOST:PORT, or mqtts:// for TLS.",
        ),
    ] = None,
    lateness: Annotated[
        float,
        typer.Option(
            min=0.0, help="Seconds by which an event may be late and still count in composites."
        ),
    ] = 60.0,
    rate: Annotated[
        float,
        typer.Option(
            min=0.0, help="Maximum number of requests a second with each key; 0 for no limit."
        ),
    ] = 0.0,
) -> None:
    """Serve subscriptions and events over HTTP, with a map in the browser.

    Requests are answered when they are on the disk, so a server that is
    killed loses nothing that it has answered. Without --open, every request
    needs a key; `fencepost keys add` makes keys.

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
        list[str],
        typer.Option(
            help="What the key allows: publish, subscribe or admin. Repeat the option for several."
        ),
    ],
    tenant: Annotated[str, typer.Option(help="Tenant of the key; made if new.")] = "default",
    name: Annotated[str, typer.Option(help="Name of the key in lists.")] = "",
    expires: Annotated[str | None, typer.Option(help="When the key expires, in ISO 8601.")] = None,
    data: Data = DATA,
    as_json: AsJson = False,
) -> None:
    """Make an API key and print it. It is not shown again.

    [bold]Examples[/bold]
      fencepost keys add --scope admin --scope publish --scope subscribe
      fencepost keys add --tenant acme --scope subscribe --name "acme's phones"
    """
    from fencepost.engine.subscriptions import parse_expiry
    from fencepost.store import api_keys as stored
    from fencepost.store.database import Database

    end = None if expires is None else parse_expiry(expires)
    with closing(Database(data, exclusive=False)) as database, database.transaction() as writer:
        key = stored.add_key(writer, tenant, scope, name, time.time_ns(), end)
    if as_json:
        print_json(key=key, tenant=tenant, scopes=sorted(set(scope)))
    else:
        print_line(key)


@keys.command("list")
def list_keys(data: Data = DATA, as_json: AsJson = False) -> None:
    """List the API keys, without their secrets."""
    import msgspec

    from fencepost.server.http.schemas import Key
    from fencepost.store import api_keys as stored
    from fencepost.store.database import Database, require_database

    require_database(data)
    with closing(Database(data, exclusive=False)) as database:
        all_keys = [*map(Key.of, database.read(stored.keys))]
    if as_json:
        print_json(keys=msgspec.to_builtins(all_keys))
        return
    table = Table("id", "tenant", "scopes", "name", "created", "expires")
    for key in all_keys:
        scopes, ends = " ".join(key.scopes), key.expires or "never"
        table.add_row(key.id, key.tenant, scopes, key.name, key.created, ends)
    Console().print(table)


@keys.command("revoke")
def revoke_key(
    id: Annotated[str, typer.Argument(help="Id of the key, as `fencepost keys list` shows it.")],
    data: Data = DATA,
) -> None:
    """Revoke an API key: requests with it are refused from now on."""
    from fencepost.errors import StoreError
    from fencepost.store import api_keys as stored
    from fencepost.store.database import Database, require_database

    require_database(data)
    with closing(Database(data, exclusive=False)) as database, database.transaction() as writer:
        existed = stored.revoke_key(writer, id)
    if not existed:
        raise StoreError(f"there is no key {id!r:.60}; `fencepost keys list` shows all keys")
