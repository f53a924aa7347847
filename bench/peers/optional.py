"""Peers that may not be installed: a benchmark says so and goes on without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Any

from bench.peers.contest import Method
from bench.progress import Progress

INSTALL = "python -m pip install -c constraints.txt -e '.[bench]'"


class PeerMissing(Exception):
    """A peer cannot take part; the message says why, and what to install."""


def load(module: str, package: str) -> Any:
    """A module of a package that only benchmarks need.

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
    """The versions of those packages that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except ModuleNotFoundError:
            continue
    return found


def gather(
    makers: Mapping[str, Callable[[], list[Method]]], progress: Progress
) -> tuple[list[Method], dict[str, str]]:
    """The methods of all peers that are there; and of the others, why they are not."""
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
    """What a report says about a peer that is missing."""
    return f"NOT MEASURED: {name} does not take part. {why}"
