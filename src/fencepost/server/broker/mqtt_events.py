"""Events that come in over MQTT.

A payload is a Feature, a FeatureCollection, any JSON object, an array of them, or one object a
line. What cannot be used is a dead letter of the tenant, and what follows it is taken.
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
from fencepost.store.database import probe

_BUSY_PAUSE_S = 0.1
_SMALL = 4_096
_MOST_LETTERS = 100
_TRIES = 2
_LONGEST_LETTER = 65_536
_IDEMPOTENCY = "idempotency-key"
_logger = logging.getLogger("fencepost")


class RejectedPayload(NamedTuple):
    """What cannot be used, and why."""

    reason: str
    body: str


class _Publication(NamedTuple):
    tenant: int
    events: ParsedEvents
    source: str
    name: str | None
    shown: str


class MqttEvents:
    """Takes events from messages.

    Attributes
    ----------
    counts : dict
        Messages that came, and those of which something could not be used, since the start.
    """

    def __init__(self, service: Service) -> None:
        self.counts = {"mqtt_received": 0, "mqtt_unusable": 0}
        self._service = service
        self._tenants: dict[str, int] = {}
        self._alone = asyncio.Lock()

    async def take(self, message: Message) -> Awaitable[object]:
        """Have the events of a message written; what it gives is done when they are."""
        self.counts["mqtt_received"] += 1
        topic = str(message.topic)
        tenant = self._tenant(tenant_of(topic))
        if tenant is None:
            self.counts["mqtt_unusable"] += 1
            _logger.warning("MQTT topic %.80s: there is no such tenant, so its events go", topic)
            return asyncio.gather()
        payload = bytes(message.payload)
        limits, space = self._service.settings.limits, self._service.space
        if len(payload) < _SMALL:
            events, letters = parse_payload(payload, limits, space)
        else:
            events, letters = await asyncio.to_thread(parse_payload, payload, limits, space)
        self.counts["mqtt_unusable"] += bool(letters)
        source = f"mqtt:{topic}"
        publication = _Publication(tenant, events, source, _name(message), _shown(payload))
        written: list[Awaitable[object]] = []
        if len(events.table):
            written.append(self._written(publication, await self._publish(publication)))
        if letters:
            written.append(self._set_aside(publication, letters))
        done = asyncio.gather(*written)
        done.add_done_callback(lambda one: one.cancelled() or one.exception())  # if nobody waits
        return done

    async def _publish(self, one: _Publication) -> Future[PublishResult]:
        while True:
            try:
                return self._service.broker.publish(
                    one.tenant,
                    one.events.table,
                    one.events.bodies,
                    name=one.name,
                    source=one.source,
                )
            except Busy:  # who publishes waits with us, as nothing is acknowledged
                await asyncio.sleep(_BUSY_PAUSE_S)

    async def _written(self, one: _Publication, done: Future[PublishResult]) -> None:
        """Wait until it is written. What cannot be, though all else can, is set aside at last."""
        try:
            await asyncio.wrap_future(done)
            return
        except StoreError as error:
            reason = str(error)
        async with self._alone:  # what is written together fails together
            for _ in range(_TRIES):
                await self._service.changed(
                    lambda transaction: probe(transaction.connection)
                )  # where it fails, the broker sends all again
                try:
                    await asyncio.wrap_future(await self._publish(one))
                    return
                except StoreError as error:
                    reason = str(error)
            await self._set_aside(one, [RejectedPayload(reason, one.shown)])

    async def _set_aside(self, one: _Publication, letters: list[RejectedPayload]) -> None:
        def work(transaction: Transaction) -> None:
            for reason, body in letters:
                endpoint_rows.add_dead_letter(
                    transaction.connection, one.tenant, transaction.now, one.source, reason, body
                )

        await self._service.changed(work)

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
    """The events of a payload, and what in it is none."""
    nothing = ParsedEvents(EventTable([], space=space), [], [], [])
    if len(payload) > limits.body_bytes:
        reason = f"it is larger than {limits.body_bytes:,} bytes; publish it in parts"
        return nothing, [RejectedPayload(reason, _shown(payload))]
    as_lines = False
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
            as_lines = True
    except FencepostError as error:
        return nothing, [RejectedPayload(str(error), _shown(payload))]
    if not events.rejected:
        return events, []
    return events, _letters(payload, events, as_lines=as_lines)


def _letters(payload: bytes, events: ParsedEvents, *, as_lines: bool) -> list[RejectedPayload]:
    rejected = sorted(events.rejected)
    if as_lines:
        lines = [one for one in payload.splitlines() if not _is_blank(one)]
        texts = {row: _shown(lines[row]) for row, _ in rejected[:_MOST_LETTERS]}
    else:
        wanted = {row for row, _ in rejected[:_MOST_LETTERS]}
        found = enumerate(elements(payload.decode("utf-8-sig"), "the payload"))
        texts = {row: one.text[:_LONGEST_LETTER] for row, one in found if row in wanted}
    letters = [RejectedPayload(reason, texts[row]) for row, reason in rejected[:_MOST_LETTERS]]
    more = len(rejected) - len(letters)
    if more:
        letters.append(
            RejectedPayload(f"{more:,} more rows of the same payload cannot be used", "")
        )
    return letters


def _is_blank(line: bytes) -> bool:
    try:
        return not line.decode().strip("\ufeff\x1e \t\r\n")
    except UnicodeDecodeError:
        return False


def _shown(payload: bytes) -> str:
    return payload[:_LONGEST_LETTER].decode("utf-8", "replace").replace("\0", "\ufffd")


def _name(message: Message) -> str | None:
    """What a publisher calls a publication, so that it is taken once however often it comes."""
    for name, value in getattr(message.properties, "UserProperty", ()):
        if name == _IDEMPOTENCY and 0 < len(value) <= 200:
            return str(value)
    return None
