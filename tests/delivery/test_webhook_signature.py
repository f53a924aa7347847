"""Signatures of webhooks are verified."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp
from fencepost.delivery.webhook_signature import signature

SECRET = "fps_0123456789abcdef"


@given(st.binary(max_size=200), st.integers(0, 2**40))
def test_signed_bodies_are_verified(body: bytes, at_s: int) -> None:
    header = signature(SECRET, body, at_s)
    expected = hmac.digest(SECRET.encode(), str(at_s).encode() + b"." + body, hashlib.sha256)
    assert header == f"t={at_s},v1={expected.hex()}"
    fp.verify_webhook(SECRET, header, body, now_s=at_s + 299.0)
    fp.verify_webhook(SECRET, f"v1=00, {header}", body, now_s=at_s)


@pytest.mark.parametrize(
    ("secret", "header", "body", "now_s", "reason"),
    [
        ("fps_another", signature(SECRET, b"x", 1_000), b"x", 1_000, "fit"),
        (SECRET, signature(SECRET, b"x", 1_000), b"y", 1_000, "fit"),
        (SECRET, signature(SECRET, b"x", 1_000).replace("t=1000", "t=1001"), b"x", 1_000, "fit"),
        (SECRET, signature(SECRET, b"x", 1_000), b"x", 1_301, "ago"),
        (SECRET, signature(SECRET, b"x", 1_000), b"x", 699, "ago"),
        (SECRET, "", b"x", 1_000, "header"),
        (SECRET, "t=1000", b"x", 1_000, "header"),
        (SECRET, "v1=00", b"x", 1_000, "header"),
        (SECRET, "t=1,t=1,v1=00", b"x", 1_000, "header"),
        (SECRET, "t=-1,v1=00", b"x", 1_000, "header"),
        (SECRET, "t=²,v1=00", b"x", 1_000, "header"),
        (SECRET, "t=1000,v1=é\udcff", b"x", 1_000, "fit"),
    ],
)
def test_invalid_signatures_are_rejected(
    secret: str, header: str, body: bytes, now_s: float, reason: str
) -> None:
    with pytest.raises(fp.DeliveryError, match=reason):
        fp.verify_webhook(secret, header, body, now_s=now_s)


@given(st.text(max_size=80))
def test_any_header_is_parsed_without_a_crash(header: str) -> None:
    with pytest.raises(fp.DeliveryError):
        fp.verify_webhook(SECRET, header, b"body")
