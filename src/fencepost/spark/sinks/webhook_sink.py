"""A streaming sink that posts matches to webhooks, as the server does: signed, and guarded.

Messages to one host go in order; hosts do not wait for each other. A host that fails is tried
again after pauses that grow and vary; when it goes on failing, the message and those after it for
this host, in this task, are set aside as dead letters.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from fencepost.delivery.address_policy import AddressPolicy
from fencepost.delivery.dispatcher import DeliveryResult, Outcome
from fencepost.delivery.retry_schedule import RetrySchedule
from fencepost.delivery.webhook_poster import WebhookPoster
from fencepost.errors import FencepostError, ModelError
from fencepost.spark.sinks import start_query
from fencepost.spark.sinks.sink_messages import (
    MessageStreamWriter,
    OutgoingMessage,
    RejectedMessage,
    absolute_path,
    messages_of,
)
from fencepost.spark.sources.mqtt_client import flag_option, integer_option

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

FORMAT = "fencepost-webhook"
_MAX_PAUSE_S = 30.0
_MAX_CONCURRENT_HOSTS = 16
_CONTENT_TYPE = "application/json"


def send_webhooks(
    matches: DataFrame,
    to: str | Column,
    checkpoint: str | Path,
    folder: str | Path,
    *,
    event: str = "id",
    secret: str | None = None,
    allow_private: bool = False,
    timeout_s: float = 10.0,
    attempts: int = 5,
    pause_s: float = 0.5,
    available_now: bool = False,
    every: str | None = None,
) -> StreamingQuery:
    """Post each match of a stream to a URL.

    Every request has the match's id, which is the same whenever it is sent, in the body and in the
    header ``Idempotency-Key``. After a crash the batch that was being sent is sent again: at
    least once, and once for a receiver that remembers ids.

    Parameters
    ----------
    matches : DataFrame
        What `fencepost.spark.match` gives for a stream.
    to : str or Column
        The URL: one for all, or an expression of the match's columns.
    checkpoint : str or Path
        Spark's checkpoint of this query.
    folder : str or Path
        Where dead letters and the record of batches go; driver and workers must share it.
    event : str
        The column that tells events apart.
    secret : str, optional
        With which every body is signed; receivers check that with `fencepost.verify_webhook`.
    allow_private : bool
        Whether addresses that are private or special may be posted to, and any port.
    timeout_s, attempts, pause_s : float, int, float
        How long to wait for an answer; how often to try; the first pause, doubled each time.
    available_now : bool
        Whether to end when what is there now is done.
    every : str, optional
        How often a batch begins, such as ``"5 seconds"``; as soon as the last is done otherwise.

    Returns
    -------
    StreamingQuery
        Running.
    """
    options = {
        "folder": absolute_path(folder),
        "timeout": str(timeout_s),
        "attempts": str(attempts),
        "pause": str(pause_s),
        "private": str(allow_private).lower(),
    }
    if secret is not None:
        options["secret"] = secret
    WebhookOptions(options)  # bad options are reported here, not in a task later
    matches.sparkSession.dataSource.register(WebhookSink)
    writer = messages_of(matches, to, event).writeStream.format(FORMAT).options(**options)
    return start_query(writer, checkpoint, available_now, every)


class WebhookSink(DataSource):
    """The sink that is registered with Spark as `fencepost-webhook`."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> MessageStreamWriter:
        """What Spark gives the rows to."""
        make = partial(WebhookSender, WebhookOptions(self.options))
        return MessageStreamWriter(schema.names, self.options["folder"], make)


class WebhookOptions:
    """How to post, from options."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.timeout_s = _seconds(options, "timeout", 10.0)
        self.attempts = integer_option(options, "attempts", 5)
        self.schedule = RetrySchedule(_seconds(options, "pause", 0.5), _MAX_PAUSE_S, _MAX_PAUSE_S)
        self.secret = options.get("secret")
        self.allow_private = flag_option(options, "private")


class WebhookSender:
    """Posts messages to their addresses.

    Parameters
    ----------
    posting : Posting
    sleep, chance : callable
        Waits so many seconds; a number at random from 0 to 1.
    """

    def __init__(
        self,
        posting: WebhookOptions,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._posting = posting
        self._sleep = sleep
        self._chance = chance
        self._down: dict[str, str] = {}  # hosts that are given up, and why
        self._poster = WebhookPoster(
            AddressPolicy(allow_private=posting.allow_private), timeout_s=posting.timeout_s
        )
        self._runner = asyncio.Runner()

    def send(self, messages: list[OutgoingMessage]) -> list[RejectedMessage]:
        """Post messages; which were not taken, and why."""
        refused: list[RejectedMessage] = []
        groups: dict[str, list[OutgoingMessage]] = defaultdict(list)
        for message in messages:
            try:
                url = self._poster.parse_url(message.to)
            except ModelError as error:
                refused.append(RejectedMessage(message, str(error)))
            else:
                groups[f"{url.scheme}://{url.authority}"].append(message)
        return refused + self._runner.run(self._post_all(groups))

    def close(self) -> None:
        """End the connections."""
        self._runner.run(self._poster.close())
        self._runner.close()

    async def _post_all(self, groups: Mapping[str, list[OutgoingMessage]]) -> list[RejectedMessage]:
        at_once = asyncio.Semaphore(_MAX_CONCURRENT_HOSTS)
        work = (self._post_to_host(host, own, at_once) for host, own in groups.items())
        return [one for refused in await asyncio.gather(*work) for one in refused]

    async def _post_to_host(
        self, host: str, messages: list[OutgoingMessage], at_once: asyncio.Semaphore
    ) -> list[RejectedMessage]:
        """Post messages one after the other."""
        refused: list[RejectedMessage] = []
        async with at_once:
            for message in messages:
                if host not in self._down:
                    result = await self._post(message)
                    if result.outcome is Outcome.OK:
                        continue
                    if result.outcome is not Outcome.FAILED:
                        refused.append(RejectedMessage(message, result.problem or ""))
                        continue
                    self._down[host] = f"{result.problem}, {self._posting.attempts} times"
                refused.append(RejectedMessage(message, self._down[host]))
        return refused

    async def _post(self, message: OutgoingMessage) -> DeliveryResult:
        """Post a message until it is clear how that went, or attempts are used up."""
        posting, failures = self._posting, 0
        headers = {"idempotency-key": message.id}
        while True:
            result = await self._poster.post(
                message.to, message.body.encode(), _CONTENT_TYPE, headers, posting.secret
            )
            failures += 1
            if result.outcome is not Outcome.FAILED or failures == posting.attempts:
                return result
            await self._sleep(
                posting.schedule.wait_s(failures, result.retry_after_s, self._chance())
            )


def _seconds(options: Mapping[str, str], name: str, default: float) -> float:
    try:
        seconds = float(options.get(name, default))
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise FencepostError(f"the option {name!r} is {options[name]!r}; give seconds above 0")
    return seconds
