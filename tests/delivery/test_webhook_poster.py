"""Post to a real receiver: what is sent, what answers mean, and who is never reached."""

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

CERTIFICATE = Path(__file__).parent / "hooks.example.pem"  # for this name, signed by itself
SECRET = "fps_0123456789abcdef"
TWO = [PendingMessage(1, 0, '{"id":"1"}'), PendingMessage(2, 0, '{"id":"2","x":"é"}')]


def endpoint(url: str, failures: int = 0, **target: Any) -> Endpoint:
    whole = {"url": url, "secret": SECRET, "headers": {}, "batch": 1, **target}
    return Endpoint(1, 1, "me", "default", "webhook", whole, 0, failures, 0, 0, None, 0)


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


def test_messages_go_together_where_an_endpoint_wants_that() -> None:
    with receiving() as receiver:
        assert post(endpoint(receiver.url, batch=10), TWO) == DeliveryResult(Outcome.OK, 2)
        assert post(endpoint(receiver.url, batch=10), TWO[:1]) == DeliveryResult(Outcome.OK, 1)
        both, alone = receiver.next(), receiver.next()
    assert both.headers["content-type"].startswith("application/cloudevents-batch+json")
    assert [one["id"] for one in both.messages] == ["1", "2"]
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
def test_what_an_answer_means(
    status: int, headers: dict[str, str], outcome: Outcome, retry_after_s: float
) -> None:
    with receiving(lambda _: Answer(status, headers)) as receiver:
        found = post(endpoint(receiver.url), clock_s=lambda: 10.0)
        assert receiver.next().path == "/hook"
    assert (found.outcome, found.retry_after_s) == (outcome, retry_after_s)
    assert found.outcome is Outcome.OK or str(status) in (found.problem or "")
    assert found.delivered == (1 if outcome is Outcome.OK else 0)


def test_messages_after_one_that_is_not_taken_are_not_posted() -> None:
    three = [*TWO, PendingMessage(3, 0, '{"id":"3"}')]

    def answer(request: Request) -> Answer:
        return Answer(400 if b'"2"' in request.body else 204)

    with receiving(answer) as receiver:
        found = post(endpoint(receiver.url), three)
        assert (found.outcome, found.delivered) == (Outcome.REJECTED, 1)
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
            found = post(endpoint(receiver.url))
            receiver.next()
        assert found.outcome is Outcome.MOVED
        assert "redirects are not followed" in (found.problem or "")
        assert inside.requests.empty()


def test_answers_are_read_up_to_a_bound() -> None:
    with receiving(lambda _: Answer(200, body=bytes(20 << 20))) as receiver:
        assert post(endpoint(receiver.url)).outcome is Outcome.OK


def test_an_endpoint_that_does_not_answer_fails() -> None:
    let_go = threading.Event()

    def wait(_: Request) -> Answer:
        let_go.wait(WAIT_S)
        return Answer()

    with receiving(wait) as receiver:
        found = post(endpoint(receiver.url), timeout_s=0.05)
        let_go.set()
    assert found.outcome is Outcome.FAILED
    assert "within" in (found.problem or "")


def test_nobody_at_a_port_fails() -> None:
    with receiving() as receiver:
        url = receiver.url
    found = post(endpoint(url))
    assert found.outcome is Outcome.FAILED
    assert "cannot be reached" in (found.problem or "")


def resolving(*answers: Sequence[str]) -> Callable[[str, int], Any]:
    """A resolver that says something else each time, as one that rebinds a name does."""
    left = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


def test_a_name_that_is_bound_anew_reaches_nothing_private() -> None:
    with receiving() as receiver:
        policy = AddressPolicy(resolver=resolving(["1.1.1.1"], ["127.0.0.1"]))
        asyncio.run(policy.resolve("rebound.example", receiver.port))  # when it is set: public
        to = endpoint(f"http://rebound.example:{receiver.port}/")
        for _ in range(3):
            found = post(to, policy=policy)
            assert found.outcome is Outcome.FAILED
            assert "private" in (found.problem or "")
        mixed = AddressPolicy(resolver=resolving(["1.1.1.1", "127.0.0.1"]))
        assert "private" in (post(to, policy=mixed).problem or "")
        for literal in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost", "127.0.0.1."):
            found = post(endpoint(f"http://{literal}:{receiver.port}/"), policy=AddressPolicy())
            assert found.outcome is Outcome.FAILED, literal
            assert "private" in (found.problem or ""), literal
        assert receiver.requests.empty()


def test_connections_go_to_the_address_that_was_looked_at() -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.9", "127.0.0.1"]  # nobody is at the first

    with receiving() as receiver:
        to = endpoint(f"http://hooks.example:{receiver.port}/x?y")
        found = post(to, policy=AddressPolicy(allow_private=True, resolver=resolve))
        request = receiver.next()
    assert found.outcome is Outcome.OK
    assert asked == ["hooks.example"]
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


def test_cookies_of_one_endpoint_are_not_another_s() -> None:
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


def test_endpoints_that_let_us_wait_hold_up_no_others() -> None:
    """More of them than may be posted to at once; another tenant's are answered meanwhile."""
    let_go = threading.Event()

    def answer(request: Request) -> Answer:
        if request.path == "/slow":
            let_go.wait(WAIT_S)
        return Answer()

    async def run(receiver: Receiver) -> None:
        webhooks = WebhookSender(WebhookPoster(AddressPolicy(allow_private=True), timeout_s=WAIT_S))
        slow = f"http://127.0.0.1:{receiver.port}/slow"
        waiting = [
            asyncio.create_task(webhooks.deliver(endpoint(slow, failures), TWO[:1]))
            for failures in [0] * 40 + [1] * 40
        ]
        while receiver.requests.qsize() < 40:  # 32 that answered so far, 8 that failed before
            await asyncio.sleep(0.01)
        quick = endpoint(receiver.url)
        other = Endpoint(2, 2, "you", "other", "webhook", quick.target, 0, 0, 0, 0, None, 0)
        assert (await webhooks.deliver(other, TWO[:1])).outcome is Outcome.OK
        assert not any(one.done() for one in waiting)
        let_go.set()
        assert {one.outcome for one in await asyncio.gather(*waiting)} == {Outcome.OK}
        await webhooks.close()

    with receiving(answer) as receiver:
        asyncio.run(run(receiver))
