"""`MqttEvents`: publishes the events that arrive over MQTT.

A payload is a Feature, a FeatureCollection, any JSON object, an array of objects, or one object a
line. Parts that cannot be used become dead letters of the tenant; the other events are published.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import NamedTuple

from aiomqtt import Message

from fencepost.delivery.mqtt_address import tenant_of
from fencepost.errors import FencepostError, StoreError
from fencepost.events.table import EventTable
from fencepost.formats.json_elements import elements
from fencepost.geometry.space import Space
from fencepost.server.broker.transaction import Transaction
from fencepost.server.http import request_bodies
from fencepost.server.http.problems import Busy, RequestError
from fencepost.server.http.request_bodies import ParsedEvents
from fencepost.server.http.schemas import PublishResult
from fencepost.server.service import Service
from fencepost.server.settings import Limits
from fencepost.store import api_keys, endpoint_rows
from fencepost.store.database import check_writable

_BUSY_PAUSE_S = 0.1
_MAX_INLINE_BYTES = 4_096  # of payloads that are parsed in the event loop, not in a thread
_MAX_ATTEMPTS = 2
_MAX_DEAD_LETTERS = 100  # of one payload
_MAX_DEAD_LETTER_CHARS = 65_536
_IDEMPOTENCY_PROPERTY = "idempotency-key"
_logger = logging.getLogger("fencepost")


class RejectedPayload(NamedTuple):
    """A payload or a row that cannot be used, and the reason."""

    reason: str
    body: str


class _Publication(NamedTuple):
    tenant: int
    events: ParsedEvents
    source: str
    idempotency_key: str | None
    text: str


class MqttEvents:
    """Publisher of the events in MQTT messages.

    Attributes
    ----------
    counts : dict of str to int
        Messages received since the start, and messages of which a part could not be used.
    """

    def __init__(self, service: Service) -> None:
        self.counts = {"mqtt_received": 0, "mqtt_unusable": 0}
        self._service = service
        self._tenants: dict[str, int] = {}
        self._retry_lock = asyncio.Lock()

    async def receive(self, message: Message) -> Awaitable[object]:
        """Queue the events of a message. Await the result to know that they are committed."""
        self.counts["mqtt_received"] += 1
        topic = str(message.topic)
        tenant = self._tenant(tenant_of(topic))
        if tenant is None:
            self.counts["mqtt_unusable"] += 1
            _logger.warning("MQTT topic %.80s names no tenant; its events are dropped", topic)
            return asyncio.gather()
        payload = bytes(message.payload)
        limits, space = self._service.settings.limits, self._service.space
        if len(payload) < _MAX_INLINE_BYTES:
            events, rejected = parse_payload(payload, limits, space)
        else:
            events, rejected = await asyncio.to_thread(parse_payload, payload, limits, space)
        self.counts["mqtt_unusable"] += bool(rejected)
        source = f"mqtt:{topic}"
        publication = _Publication(
            tenant, events, source, _idempotency_key(message), _truncated_text(payload)
        )
        writes: list[Awaitable[object]] = []
        if len(events.table):
            writes.append(self._wait_until_written(publication, await self._publish(publication)))
        if rejected:
            writes.append(self._add_dead_letters(publication, rejected))
        done = asyncio.gather(*writes)
        # Retrieve the exception, so that asyncio does not log it if nobody awaits the result.
        done.add_done_callback(lambda future: future.cancelled() or future.exception())
        return done

    async def _publish(self, publication: _Publication) -> Future[PublishResult]:
        while True:
            try:
                return self._service.broker.publish(
                    publication.tenant,
                    publication.events.table,
                    publication.events.bodies,
                    idempotency_key=publication.idempotency_key,
                    source=publication.source,
                )
            except Busy:  # the MQTT broker waits too, as nothing is acknowledged meanwhile
                await asyncio.sleep(_BUSY_PAUSE_S)

    async def _wait_until_written(
        self, publication: _Publication, done: Future[PublishResult]
    ) -> None:
        """Wait until a publication is written. If only it fails, keep it as a dead letter."""
        try:
            await asyncio.wrap_future(done)
            return
        except StoreError as error:
            reason = str(error)
        async with self._retry_lock:  # publications that are written together fail together
            for _ in range(_MAX_ATTEMPTS):
                # If this fails, the database is at fault: the MQTT broker sends everything again.
                await self._service.change(
                    lambda transaction: check_writable(transaction.connection)
                )
                try:
                    await asyncio.wrap_future(await self._publish(publication))
                    return
                except StoreError as error:
                    reason = str(error)
            await self._add_dead_letters(publication, [RejectedPayload(reason, publication.text)])

    async def _add_dead_letters(
        self, publication: _Publication, rejected: list[RejectedPayload]
    ) -> None:
        def work(transaction: Transaction) -> None:
            for reason, body in rejected:
                endpoint_rows.add_dead_letter(
                    transaction.connection,
                    publication.tenant,
                    transaction.now,
                    publication.source,
                    reason,
                    body,
                )

        await self._service.change(work)

    def _tenant(self, name: str) -> int | None:
        if name not in self._tenants:
            try:
                self._tenants[name] = self._service.database.read(api_keys.tenant_number, name)
            except StoreError:
                return None
        return self._tenants[name]


def parse_payload(
    payload: bytes, limits: Limits, space: Space
) -> tuple[ParsedEvents, list[RejectedPayload]]:
    """Return the events of a payload, and the parts of it that cannot be used."""
    no_events = ParsedEvents(EventTable([], space=space), [], [], [])
    if len(payload) > limits.body_bytes:
        reason = f"the payload is larger than {limits.body_bytes:,} bytes; publish it in parts"
        return no_events, [RejectedPayload(reason, _truncated_text(payload))]
    is_lines = False
    try:
        try:
            events = request_bodies.parse_events(
                payload, request_bodies.JSON_TYPES[0], limits, space
            )
        except RequestError:
            events = request_bodies.parse_events(
                payload, request_bodies.LINES_TYPES[0], limits, space
            )
            if not len(events.table):
                raise
            is_lines = True
    except FencepostError as error:
        return no_events, [RejectedPayload(str(error), _truncated_text(payload))]
    if not events.rejected:
        return events, []
    return events, _rejected_rows(payload, events, is_lines=is_lines)


def _rejected_rows(
    payload: bytes, events: ParsedEvents, *, is_lines: bool
) -> list[RejectedPayload]:
    rejected = sorted(events.rejected)
    shown = rejected[:_MAX_DEAD_LETTERS]
    if is_lines:
        lines = [line for line in payload.splitlines() if not _is_blank(line)]
        texts = {row: _truncated_text(lines[row]) for row, _ in shown}
    else:
        rows = {row for row, _ in shown}
        numbered = enumerate(elements(payload.decode("utf-8-sig"), "the payload"))
        texts = {
            row: element.text[:_MAX_DEAD_LETTER_CHARS] for row, element in numbered if row in rows
        }
    parts = [RejectedPayload(reason, texts[row]) for row, reason in shown]
    omitted = len(rejected) - len(parts)
    if omitted:
        parts.append(
            RejectedPayload(f"{omitted:,} more rows of the same payload cannot be used", "")
        )
    return parts


def _is_blank(line: bytes) -> bool:
    try:
        return not line.decode().strip("\ufeff\x1e \t\r\n")
    except UnicodeDecodeError:
        return False


def _truncated_text(payload: bytes) -> str:
    return payload[:_MAX_DEAD_LETTER_CHARS].decode("utf-8", "replace").replace("\0", "\ufffd")


def _idempotency_key(message: Message) -> str | None:
    """Return the idempotency key of a message, or None."""
    for name, value in getattr(message.properties, "UserProperty", ()):
        if name == _IDEMPOTENCY_PROPERTY and 0 < len(value) <= 200:
            return str(value)
    return None
