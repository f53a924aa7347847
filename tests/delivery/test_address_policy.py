"""Webhooks reach public addresses only, in every notation of an address."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.delivery import AddressPolicy, parse_webhook_url
from fencepost.delivery.address_policy import is_public
from fencepost.errors import DeliveryError, FencepostError, ModelError

PRIVATE = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200"),
    *("127.0.0.1", "127.255.255.254", "168.63.129.16", "169.254.169.254", "172.16.0.1"),
    *("172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1"),
    *("198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),
    *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1"),
    *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2002:7f00:1::1", "2002:a00:1::"),
    *("2002:c0a8:101::1", "3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254"),
    *("fe80::1", "fe80::1%eth0", "2606:4700::1%eth0", "fec0::1", "ff02::1", "ff0e::1"),
]
PUBLIC = [
    *("1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.0.0.1"),
    *("172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0", "223.255.255.255"),
    *("2606:4700::1111", "2a00:1450:4001:82a::200e", "::ffff:8.8.8.8", "64:ff9b::808:808"),
    *("2002:808:808::1", "2001:4860:4860::8888"),
]


@pytest.mark.parametrize("text", PRIVATE)
def test_private_addresses(text: str) -> None:
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses(text: str) -> None:
    assert is_public(ipaddress.ip_address(text))


@given(st.ip_addresses())
def test_public_addresses_are_global_to_python_too(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_public(address):
        mapped = getattr(address, "ipv4_mapped", None)
        assert (mapped or address).is_global
        assert not address.is_multicast
        assert not address.is_loopback


@given(st.ip_addresses(v=4))
def test_embedded_addresses_are_classified_like_plain_ones(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    for embedded in (
        (0xFFFF << 32) | number,
        (0x0064_FF9B << 96) | number,
        (0x2002 << 112) | (number << 80) | 1,
    ):
        assert is_public(ipaddress.IPv6Address(embedded)) == is_public(address)


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://example.org", "https://example.org/"),
        ("HTTPS://EXAMPLE.org:443/a?b=1", "https://example.org/a?b=1"),
        ("http://example.org.:8080/x", "http://example.org:8080/x"),
        ("https://[2606:4700:0::1111]/", "https://[2606:4700::1111]/"),
        ("http://1.1.1.1:80/", "http://1.1.1.1/"),
        ("https://xn--bcher-kva.example/%20", "https://xn--bcher-kva.example/%20"),
    ],
)
def test_urls_are_canonicalized(url: str, canonical: str) -> None:
    assert str(parse_webhook_url(url)) == canonical
    assert parse_webhook_url(canonical) == parse_webhook_url(url)


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.org", "//example.org/", "ftp://example.org/", "file:///etc/passwd"),
        *("gopher://example.org/", "javascript:1", "https://", "https:///x", "https://:443/"),
        *("http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://0177.0.0.1/"),
        *("http://127.1/", "http://017700000001/", "http://127.0.0.1.5/", "http://1.2.3.256/"),
        *("http://0x/", "http://example.0x7f/", "http://user@example.org/", "http://a:b@c.org/"),
        *("http://example.org@127.0.0.1/", "http://example.org\\@127.0.0.1/", "http://a b.org/"),
        *("http://example.org:0x50/", "http://example.org:99999/", "http://example.org:/"),
        *("http://example.org:22/", "http://example.org:25/x", "http://example.org/#x"),
        *("http://[::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[1.2.3.4]/", "http://[v1.x]/"),
        *("http://ex%61mple.org/", "http://-a.org/", "http://a..org/", "http://bücher.example/"),
        *("http://１２７.0.0.1/", "http://a.org/\r\nx: y", "http://a.org/\0", "http://" + "a" * 64),
        "http://a.org/" + "x" * 2_000,
    ],
)
def test_ambiguous_urls_are_rejected(url: str) -> None:
    with pytest.raises(ModelError):
        parse_webhook_url(url)


@given(st.text(max_size=60) | st.from_regex(r"https?://[^\s]{0,40}", fullmatch=True))
def test_any_text_is_a_url_or_rejected(text: str) -> None:
    try:
        url = parse_webhook_url(text)
    except ModelError:
        return
    assert parse_webhook_url(str(url)) == url
    assert url.scheme in ("http", "https")


def addresses(policy: AddressPolicy, host: str) -> list[str]:
    return [str(address) for address in asyncio.run(policy.resolve(host, 443))]


def policy_of(*resolved: str, allow_private: bool = False) -> AddressPolicy:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return resolved

    return AddressPolicy(allow_private=allow_private, resolver=resolve)


def test_every_address_of_a_name_is_checked() -> None:
    assert addresses(policy_of("1.1.1.1", "2606:4700::1"), "a.org") == ["1.1.1.1", "2606:4700::1"]
    for hidden in ("127.0.0.1", "::1", "fe80::1%eth0", "::ffff:10.0.0.1"):
        with pytest.raises(DeliveryError, match="private"):
            addresses(policy_of("1.1.1.1", hidden), "a.org")
    with pytest.raises(DeliveryError, match="no address"):
        addresses(policy_of(), "a.org")
    assert addresses(policy_of("10.0.0.1", allow_private=True), "a.org") == ["10.0.0.1"]


def test_errors_do_not_reveal_the_address() -> None:
    with pytest.raises(DeliveryError) as error:
        addresses(policy_of("10.11.12.13"), "inside.example")
    assert "10.11" not in str(error.value)


def test_the_system_resolver() -> None:
    policy = AddressPolicy()
    with pytest.raises(FencepostError, match="private"):
        addresses(policy, "localhost")
    with pytest.raises(DeliveryError, match="cannot be resolved"):
        addresses(policy, "nothing.invalid")
    policy.close()
