"""`write_subscriptions`: the subscriptions of a matcher as lines of JSON."""

from __future__ import annotations

import json
from typing import IO

from fencepost.engine.matcher import Matcher
from fencepost.engine.subscriptions import parse_expiry
from fencepost.events.times import format_instant


def write_subscriptions(matcher: Matcher, file: IO[bytes]) -> None:
    """Write the live subscriptions of a matcher as newline-delimited JSON.

    A line has the fields that `read_subscriptions` reads. A subscription that was added as columns
    gets an expression made from its checks.
    """
    view, never = matcher.view(), parse_expiry(None)
    with view.lock:
        for segment, rows in view.live_segments():
            for row in rows.tolist():
                id = segment.id_of(row)
                expires = view.expires(id)
                values = {
                    "id": id,
                    "subscriber": view.subscriber(id),
                    "expression": view.expression(id),
                    "expires": None if expires == never else format_instant(expires),
                }
                file.write(json.dumps(values, ensure_ascii=False).encode() + b"\n")
    file.flush()
