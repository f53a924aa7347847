"""What `fencepost index` does with an index that exists: verifies its files, or dumps it."""

from __future__ import annotations

import sys
from pathlib import Path

from fencepost.cli.terminal import format_bytes, print_json, print_line, print_warning, progress
from fencepost.engine.matcher import Matcher
from fencepost.engine.storage.verification import verify as verify_files
from fencepost.formats.subscription_writer import write_subscriptions
from fencepost.geometry.space import DEFAULT_SPACE


def verify(folder: Path, as_json: bool) -> bool:
    """Compare all files of an index with their checksums, and print which ones are damaged.

    Returns
    -------
    bool
        Whether all files are intact.
    """
    with progress("Verifying", None):
        found = verify_files(folder)
    if as_json:
        damaged = [{"file": name, "reason": reason} for name, reason in found.damaged]
        print_json(folder=str(folder), files=found.files, bytes=found.bytes, damaged=damaged)
        return not damaged
    for name, reason in found.damaged:
        print_line(f"{folder / name} {reason}")
    if found.damaged:
        print_line(
            f"{len(found.damaged):,} of {found.files:,} files are damaged; build the index again"
        )
    else:
        print_line(f"{folder} is intact: {found.files:,} files, {format_bytes(found.bytes)}")
    return not found.damaged


def dump(folder: Path) -> None:
    """Write the subscriptions of an index to standard output, as newline-delimited JSON.

    A warning names the options with which `fencepost index` builds an equal index.
    """
    matcher = Matcher.open(folder)
    write_subscriptions(matcher, sys.stdout.buffer)
    options = []
    if matcher.space != DEFAULT_SPACE:
        options.append(f"--space {matcher.space}")
    if matcher.stop_words:
        options.append(f"--stop-words with the {len(matcher.stop_words):,} stop words of the index")
    if options:
        print_warning(f"to build an equal index, give {' and '.join(options)}")
