"""Signatures of webhooks: who holds the secret can tell that a body is ours, and new.

The header `fencepost-signature` is `t=SECONDS,v1=HEX`: the HMAC-SHA256 of `SECONDS.BODY` with the
secret, SECONDS since 1970.
"""

from __future__ import annotations

import hashlib
import hmac
import time

from fencepost.errors import DeliveryError

HEADER = "fencepost-signature"


def signature(secret: str, body: bytes, at_s: int) -> str:
    """The header for a body that is posted at a time."""
    return f"t={at_s},v1={_hex(secret, body, at_s)}"


def verify_webhook(
    secret: str,
    header: str,
    body: bytes,
    *,
    tolerance_s: float = 300.0,
    now_s: float | None = None,
) -> None:
    """Check that a webhook was posted by who knows the secret, and not long ago.

    Parameters
    ----------
    secret : str
        As it was told when the endpoint was set.
    header : str
        The value of `fencepost-signature`.
    body : bytes
        As it came, before anything is read from it.
    tolerance_s : float
        How far the clocks of the two may differ, and how old a request may be.
    now_s : float, optional
        The present in seconds since 1970, if not by this machine's clock.

    Raises
    ------
    DeliveryError
        Where it was not; answer with a status of 400, and use nothing of the body.
    """
    parts = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    given = [value for name, _, value in parts if name == "v1"]
    plain = len(times) == 1 and times[0].isascii() and times[0].isdigit() and len(times[0]) < 16
    if not plain or not given:
        raise DeliveryError(f"the header {HEADER} is `t=SECONDS,v1=HEX`; saw {header!r:.80}")
    at_s = int(times[0])
    expected = _hex(secret, body, at_s).encode()
    # All are compared, each in constant time: how long it takes tells nothing.
    matches = [hmac.compare_digest(expected, one.encode("utf-8", "replace")) for one in given]
    if not any(matches):
        raise DeliveryError("the signature does not fit the body and the secret")
    age = (time.time() if now_s is None else now_s) - at_s
    if abs(age) > tolerance_s:
        raise DeliveryError(
            f"the request was signed {age:.0f} s ago, and {tolerance_s:g} s are allowed; it may be "
            "a copy, or one of the clocks is wrong"
        )


def _hex(secret: str, body: bytes, at_s: int) -> str:
    return hmac.new(secret.encode(), b"%d." % at_s + body, hashlib.sha256).hexdigest()
