"""Webhooks are posted to a real receiver: requests, responses, and forbidden addresses."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import fencepost as fp
from fencepost.delivery import AddressPolicy, DeliveryResult, Outcome, PendingMessage, WebhookSender
from fencepost.delivery.retry_schedule import parse_retry_after
from fencepost.delivery.webhook_poster import WebhookPoster
from fencepost.store.endpoint_rows import Endpoint
from tests.delivery.receiver import Answer, Receiver, Request, receiving
from tests.waiting import WAIT_S

CERTIFICATE = Path(__file__).parent / "hooks.example.pem"  # self-signed, for this host name
SECRET = "fps_0123456789abcdef"
TWO = [PendingMessage(1, 0, '{"id":"1"}'), PendingMessage(2, 0, '{"id":"2","x":"é"}')]


def endpoint(url: str, failures: int = 0, **target: Any) -> Endpoint:
    full_target = {"url": url, "secret": SECRET, "headers": {}, "batch": 1, **target}
    return Endpoint(1, 1, "me", "default", "webhook", full_target, 0, failures, 0, 0, None, 0)


def post(
    to: Endpoint,
    messages: Sequence[PendingMessage] = TWO[:1],
    policy: AddressPolicy | None = None,
    **more: Any,
) -> DeliveryResult:
    async def run() -> DeliveryResult:
        webhooks = WebhookSender(WebhookPoster(policy or AddressPolicy(allow_private=True), **more))
        try:
            return await webhooks.deliver(to, messages)
        finally:
            await webhooks.close()

    return asyncio.run(run())


def test_a_message_is_a_signed_cloud_event() -> None:
    with receiving() as receiver:
        outcome = post(endpoint(receiver.url, headers={"authorization": "Bearer x"}))
        request = receiver.next()
    assert outcome == DeliveryResult(Outcome.OK, 1)
    assert request.body == TWO[0].text.encode()
    assert request.headers["content-type"].startswith("application/cloudevents+json")
    assert request.headers["authorization"] == "Bearer x"
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    fp.verify_webhook(SECRET, request.headers["fencepost-signature"], request.body)


def test_messages_are_posted_in_batches() -> None:
    with receiving() as receiver:
        assert post(endpoint(receiver.url, batch=10), TWO) == DeliveryResult(Outcome.OK, 2)
        assert post(endpoint(receiver.url, batch=10), TWO[:1]) == DeliveryResult(Outcome.OK, 1)
        both, alone = receiver.next(), receiver.next()
    assert both.headers["content-type"].startswith("application/cloudevents-batch+json")
    assert [message["id"] for message in both.messages] == ["1", "2"]
    fp.verify_webhook(SECRET, both.headers["fencepost-signature"], both.body)
    assert alone.body == b'[{"id":"1"}]'


@pytest.mark.parametrize(
    ("status", "headers", "outcome", "retry_after_s"),
    [
        (200, {}, Outcome.OK, 0),
        (299, {}, Outcome.OK, 0),
        (301, {"location": "http://127.0.0.1/"}, Outcome.MOVED, 0),
        (308, {"location": "http://127.0.0.1/"}, Outcome.MOVED, 0),
        (400, {}, Outcome.REJECTED, 0),
        (404, {"retry-after": "7"}, Outcome.REJECTED, 0),
        (408, {}, Outcome.FAILED, 0),
        (410, {}, Outcome.GONE, 0),
        (425, {}, Outcome.FAILED, 0),
        (429, {"retry-after": "7"}, Outcome.FAILED, 7),
        (500, {}, Outcome.FAILED, 0),
        (503, {"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, Outcome.FAILED, 50),
    ],
)
def test_the_outcome_of_a_status(
    status: int, headers: dict[str, str], outcome: Outcome, retry_after_s: float
) -> None:
    with receiving(lambda _: Answer(status, headers)) as receiver:
        result = post(endpoint(receiver.url), clock_s=lambda: 10.0)
        assert receiver.next().path == "/hook"
    assert (result.outcome, result.retry_after_s) == (outcome, retry_after_s)
    assert result.outcome is Outcome.OK or str(status) in (result.problem or "")
    assert result.delivered == (1 if outcome is Outcome.OK else 0)


def test_messages_after_a_rejected_one_are_not_posted() -> None:
    three = [*TWO, PendingMessage(3, 0, '{"id":"3"}')]

    def answer(request: Request) -> Answer:
        return Answer(400 if b'"2"' in request.body else 204)

    with receiving(answer) as receiver:
        result = post(endpoint(receiver.url), three)
        assert (result.outcome, result.delivered) == (Outcome.REJECTED, 1)
        assert [receiver.next().messages[0]["id"] for _ in range(2)] == ["1", "2"]
        together = post(endpoint(receiver.url, batch=3), three)
        assert (together.outcome, together.delivered) == (Outcome.FAILED, 0)
        assert len(receiver.next().messages) == 3
        assert receiver.requests.empty()


@pytest.mark.parametrize("text", ["", "-1", "soon", "1e9", "\xff", "99999999999999999999"])
def test_any_retry_after_is_a_number(text: str) -> None:
    assert 0.0 <= parse_retry_after(text, 0.0) <= 1e10


def test_redirects_are_not_followed() -> None:
    with receiving() as inside:
        there = {"location": inside.url}
        with receiving(lambda _: Answer(307, there)) as receiver:
            result = post(endpoint(receiver.url))
            receiver.next()
        assert result.outcome is Outcome.MOVED
        assert "redirects are not followed" in (result.problem or "")
        assert inside.requests.empty()


def test_responses_are_read_up_to_a_limit() -> None:
    with receiving(lambda _: Answer(200, body=bytes(20 << 20))) as receiver:
        assert post(endpoint(receiver.url)).outcome is Outcome.OK


def test_an_endpoint_that_does_not_answer_fails() -> None:
    released = threading.Event()

    def wait(_: Request) -> Answer:
        released.wait(WAIT_S)
        return Answer()

    with receiving(wait) as receiver:
        result = post(endpoint(receiver.url), timeout_s=0.05)
        released.set()
    assert result.outcome is Outcome.FAILED
    assert "within" in (result.problem or "")


def test_a_closed_port_fails() -> None:
    with receiving() as receiver:
        url = receiver.url
    result = post(endpoint(url))
    assert result.outcome is Outcome.FAILED
    assert "cannot be reached" in (result.problem or "")


def resolving(*answers: Sequence[str]) -> Callable[[str, int], Any]:
    """Return a resolver with another result at each call, as in DNS rebinding."""
    remaining = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    return resolve


def test_rebound_names_reach_no_private_address() -> None:
    with receiving() as receiver:
        policy = AddressPolicy(resolver=resolving(["1.1.1.1"], ["127.0.0.1"]))
        # Public when the endpoint is set.
        asyncio.run(policy.resolve("rebound.example", receiver.port))
        to = endpoint(f"http://rebound.example:{receiver.port}/")
        for _ in range(3):
            result = post(to, policy=policy)
            assert result.outcome is Outcome.FAILED
            assert "private" in (result.problem or "")
        mixed = AddressPolicy(resolver=resolving(["1.1.1.1", "127.0.0.1"]))
        assert "private" in (post(to, policy=mixed).problem or "")
        for literal in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost", "127.0.0.1."):
            result = post(endpoint(f"http://{literal}:{receiver.port}/"), policy=AddressPolicy())
            assert result.outcome is Outcome.FAILED, literal
            assert "private" in (result.problem or ""), literal
        assert receiver.requests.empty()


def test_connections_use_the_checked_address() -> None:
    resolved: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        resolved.append(host)
        return ["127.0.0.9", "127.0.0.1"]  # nothing listens at the first

    with receiving() as receiver:
        to = endpoint(f"http://hooks.example:{receiver.port}/x?y")
        result = post(to, policy=AddressPolicy(allow_private=True, resolver=resolve))
        request = receiver.next()
    assert result.outcome is Outcome.OK
    assert resolved == ["hooks.example"]
    assert request.headers["host"] == f"hooks.example:{receiver.port}"
    assert request.path == "/x?y"


def test_tls_checks_the_name_not_the_address() -> None:
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(CERTIFICATE)
    trusted = ssl.create_default_context(cafile=CERTIFICATE)
    policy = AddressPolicy(allow_private=True, resolver=resolving(["127.0.0.1"]))
    with receiving(tls=serving) as receiver:
        right = endpoint(f"https://hooks.example:{receiver.port}/")
        assert post(right, policy=policy, tls=trusted).outcome is Outcome.OK
        for name in ("other.example", "127.0.0.1"):
            wrong = post(endpoint(f"https://{name}:{receiver.port}/"), policy=policy, tls=trusted)
            assert wrong.outcome is Outcome.FAILED
            assert "certificate" in (wrong.problem or "").lower()
        untrusted = post(right, policy=policy)
        assert untrusted.outcome is Outcome.FAILED
        assert receiver.requests.qsize() == 1


def test_cookies_are_not_kept() -> None:
    def answer(request: Request) -> Answer:
        return Answer(204, {"set-cookie": "who=me"})

    async def twice(receiver: Receiver) -> None:
        webhooks = WebhookSender(WebhookPoster(AddressPolicy(allow_private=True)))
        for _ in range(2):
            assert (await webhooks.deliver(endpoint(receiver.url), TWO[:1])).outcome is Outcome.OK
        await webhooks.close()

    with receiving(answer) as receiver:
        asyncio.run(twice(receiver))
        assert all("cookie" not in receiver.next().headers for _ in range(2))


def test_slow_endpoints_do_not_delay_others() -> None:
    """There are more slow requests than the limit; another tenant's request succeeds meanwhile."""
    released = threading.Event()

    def answer(request: Request) -> Answer:
        if request.path == "/slow":
            released.wait(WAIT_S)
        return Answer()

    async def run(receiver: Receiver) -> None:
        webhooks = WebhookSender(WebhookPoster(AddressPolicy(allow_private=True), timeout_s=WAIT_S))
        slow = f"http://127.0.0.1:{receiver.port}/slow"
        waiting = [
            asyncio.create_task(webhooks.deliver(endpoint(slow, failures), TWO[:1]))
            for failures in [0] * 40 + [1] * 40
        ]
        while receiver.requests.qsize() < 40:  # 32 endpoints without failures, 8 that failed before
            await asyncio.sleep(0.01)
        quick = endpoint(receiver.url)
        other = Endpoint(2, 2, "you", "other", "webhook", quick.target, 0, 0, 0, 0, None, 0)
        assert (await webhooks.deliver(other, TWO[:1])).outcome is Outcome.OK
        assert not any(task.done() for task in waiting)
        released.set()
        assert {result.outcome for result in await asyncio.gather(*waiting)} == {Outcome.OK}
        await webhooks.close()

    with receiving(answer) as receiver:
        asyncio.run(run(receiver))
