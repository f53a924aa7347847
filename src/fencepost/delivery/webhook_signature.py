"""`signature` and `verify_webhook`: HMAC signatures that authenticate and date a webhook request.

The header `fencepost-signature` is `t=SECONDS,v1=HEX`: the HMAC-SHA256 of `SECONDS.BODY` with the
secret, where SECONDS count from 1970.
"""

from __future__ import annotations

import hashlib
import hmac
import time

from fencepost.errors import DeliveryError

HEADER = "fencepost-signature"


def signature(secret: str, body: bytes, time_s: int) -> str:
    """Return the signature header for a body that is posted at a time."""
    return f"t={time_s},v1={_hmac_hex(secret, body, time_s)}"


def verify_webhook(
    secret: str,
    header: str,
    body: bytes,
    *,
    tolerance_s: float = 300.0,
    now_s: float | None = None,
) -> None:
    """Check that a webhook request was signed with the secret, and recently.

    Parameters
    ----------
    secret : str
        The secret of the endpoint, as the server returned it when the endpoint was set.
    header : str
        The value of the header `fencepost-signature`.
    body : bytes
        The raw body of the request.
    tolerance_s : float
        The oldest request to accept, and the largest difference between the two clocks.
    now_s : float, optional
        The present in seconds since 1970; by default, the time of this machine.

    Raises
    ------
    DeliveryError
        If the signature is missing, wrong or too old. Answer with status 400, and do not use the
        body.
    """
    parts = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in parts if name == "t"]
    signatures = [value for name, _, value in parts if name == "v1"]
    has_time = len(times) == 1 and times[0].isascii() and times[0].isdigit() and len(times[0]) < 16
    if not has_time or not signatures:
        raise DeliveryError(f"the header {HEADER} is `t=SECONDS,v1=HEX`; saw {header!r:.80}")
    time_s = int(times[0])
    expected = _hmac_hex(secret, body, time_s).encode()
    # All are compared, each in constant time, so that timing reveals nothing.
    matches = [
        hmac.compare_digest(expected, given.encode("utf-8", "replace")) for given in signatures
    ]
    if not any(matches):
        raise DeliveryError("the signature does not fit the body and the secret")
    age_s = (time.time() if now_s is None else now_s) - time_s
    if abs(age_s) > tolerance_s:
        raise DeliveryError(
            f"the request was signed {age_s:.0f} s ago, more than {tolerance_s:g} s; it may be a "
            "replay, or one of the clocks is wrong"
        )


def _hmac_hex(secret: str, body: bytes, time_s: int) -> str:
    return hmac.new(secret.encode(), b"%d." % time_s + body, hashlib.sha256).hexdigest()
