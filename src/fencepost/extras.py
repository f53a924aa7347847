"""`requires_extra`: where a package of an extra is missing, an error says what to install.

An extra is a set of packages that only a part of Fencepost needs, such as `fencepost[server]`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from fencepost.errors import FencepostError

PACKAGES = {
    "bench": {
        "matplotlib": "matplotlib",
        "geoindex_rs": "geoindex-rs",
        "psycopg": "psycopg",
        "scipy": "scipy",
    },
    "client": {"httpx": "httpx", "websockets": "websockets"},
    "crs": {"pyproj": "pyproj"},
    "geopackage": {"pyogrio": "pyogrio"},
    "plot": {"matplotlib": "matplotlib"},
    "server": {
        "uvicorn": "uvicorn",
        "aiomqtt": "aiomqtt",
        "httpcore": "httpcore",
        "httptools": "httptools",
        "httpx": "httpx",
        "paho": "paho-mqtt",
        "starlette": "starlette",
        "uvloop": "uvloop",
        "websockets": "websockets",
    },
    "spark": {
        "pyspark": "pyspark",
        "httpcore": "httpcore",
        "pandas": "pandas",
        "paho": "paho-mqtt",
    },
}
"""By extra: its packages by the name under which they are imported.

Nothing works without the first package of an extra. The others may be missing where they are not
used: the nodes of a cluster need `paho` only if they read from MQTT.
"""


@contextmanager
def requires_extra(what: str, *extras: str) -> Iterator[None]:
    """Say what to install if the body, or a decorated function, needs a package that is missing.

    Parameters
    ----------
    what
        The subject of the message, such as "fencepost serve".
    extras
        The extras that it needs, of `PACKAGES`.

    Raises
    ------
    FencepostError
        If the first package of an extra cannot be found, before the body runs; or if an import in
        the body fails because another package is missing or too old.
    """
    missing = [
        package
        for extra in extras
        for module, package in list(PACKAGES[extra].items())[:1]
        if find_spec(module) is None
    ]
    if missing:
        raise FencepostError(_message(what, missing, extras))
    try:
        yield
    except ImportError as error:
        module = (error.name or "").split(".")[0]
        packages = {name: package for e in extras for name, package in PACKAGES[e].items()}
        if module not in packages:
            raise
        too_old = find_spec(module) is not None
        raise FencepostError(_message(what, [packages[module]], extras, too_old)) from error


def _message(what: str, packages: list[str], extras: tuple[str, ...], too_old: bool = False) -> str:
    names = " and ".join(packages)
    command = f"pip install {'--upgrade ' * too_old}'fencepost[{','.join(extras)}]'"
    if too_old:
        return f"{what} needs a newer version of {names}; install it with: {command}"
    return f"{what} needs {names}; install {'it' if len(packages) == 1 else 'them'} with: {command}"
