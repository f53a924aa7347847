"""`load`, `gather`: peers that may not be installed; reports say which are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Any

from bench.peers.contest import Method
from bench.progress import Progress

INSTALL = "python -m pip install -c constraints.txt -e '.[bench]'"


class PeerMissing(Exception):
    """Raised if a peer cannot be measured; the message says why, and what to install."""


def load(module: str, package: str) -> Any:
    """Return a module of a package that only benchmarks need.

    Raises
    ------
    PeerMissing
        If it cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise PeerMissing(f"{package} is not installed ({error}); run: {INSTALL}") from error


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of the installed packages."""
    installed = {}
    for package in packages:
        try:
            installed[package] = version(package)
        except ModuleNotFoundError:
            continue
    return installed


def gather(
    makers: Mapping[str, Callable[[], list[Method]]], progress: Progress
) -> tuple[list[Method], dict[str, str]]:
    """Return the methods of all available peers, and the reasons why others are missing."""
    methods: list[Method] = []
    absent = {}
    for name, make in makers.items():
        progress.step(f"building {name}")
        try:
            methods += make()
        except PeerMissing as error:
            absent[name] = str(error)
            progress.step(absence(name, absent[name]))
    return methods, absent


def absence(name: str, why: str) -> str:
    """Return the note of a report about a missing peer."""
    return f"NOT MEASURED: {name}. {why}"
