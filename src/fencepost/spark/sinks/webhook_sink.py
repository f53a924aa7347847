"""Provides `send_webhooks`, a streaming sink that posts matches to webhooks, as the server does.

Requests are signed, and an address policy guards against private addresses. Messages to one host
are sent in order; hosts do not wait for each other. A request that fails is retried after growing,
randomised pauses. When the attempts are used up, the message and all later ones of the task to the
same host become dead letters.
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
    """Post each match of a stream to a URL, at least once.

    Every request has the match's id, which is the same in every attempt, in the body and in the
    header ``Idempotency-Key``. After a crash, the interrupted batch is sent again, so receivers
    should ignore ids that they have seen.

    Parameters
    ----------
    matches : DataFrame
        The matches of a stream, from `fencepost.spark.match`.
    to : str or Column
        The URL: a string, or an expression over the columns of matches.
    checkpoint : str or Path
        Spark's checkpoint of this query.
    folder : str or Path
        The folder for dead letters and the log of sent batches; driver and workers must share it.
    event : str
        The column that identifies an event.
    secret : str, optional
        Signs every body; receivers verify the signature with `fencepost.verify_webhook`.
    allow_private : bool
        If true, private and special addresses are allowed, and any port.
    timeout_s : float
        The time to wait for a response.
    attempts : int
        The largest number of attempts to post a message.
    pause_s : float
        The upper bound of the first pause; it doubles with each attempt.
    available_now : bool
        If true, the query ends when it has processed the data available at its start.
    every : str, optional
        The interval of micro-batches, such as ``"5 seconds"``; by default, each begins when the
        last one has ended.

    Returns
    -------
    StreamingQuery
        The running query.
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
    WebhookOptions(options)  # raises here, not in a task, if an option is invalid
    matches.sparkSession.dataSource.register(WebhookSink)
    writer = messages_of(matches, to, event).writeStream.format(FORMAT).options(**options)
    return start_query(writer, checkpoint, available_now, every)


class WebhookSink(DataSource):
    """The data source that Spark registers as `fencepost-webhook`."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> MessageStreamWriter:
        """Return the writer of a stream."""
        make = partial(WebhookSender, WebhookOptions(self.options))
        return MessageStreamWriter(schema.names, self.options["folder"], make)


class WebhookOptions:
    """The parsed options of the sink.

    Parameters
    ----------
    options : mapping
        The options as strings, as Spark passes them.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self.timeout_s = _seconds(options, "timeout", 10.0)
        self.attempts = integer_option(options, "attempts", 5)
        self.schedule = RetrySchedule(_seconds(options, "pause", 0.5), _MAX_PAUSE_S, _MAX_PAUSE_S)
        self.secret = options.get("secret")
        self.allow_private = flag_option(options, "private")


class WebhookSender:
    """Posts messages to their URLs.

    Parameters
    ----------
    options : WebhookOptions
        The secret, the timeout and the retries.
    sleep : callable
        Waits for a number of seconds.
    random_fraction : callable
        Returns a random number from 0 to 1.
    """

    def __init__(
        self,
        options: WebhookOptions,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        random_fraction: Callable[[], float] = random.random,
    ) -> None:
        self._options = options
        self._sleep = sleep
        self._random_fraction = random_fraction
        self._failed_hosts: dict[str, str] = {}  # with the reason; no further attempts
        self._poster = WebhookPoster(
            AddressPolicy(allow_private=options.allow_private), timeout_s=options.timeout_s
        )
        self._runner = asyncio.Runner()

    def send(self, messages: list[OutgoingMessage]) -> list[RejectedMessage]:
        """Post messages; return the rejected ones with reasons."""
        rejected: list[RejectedMessage] = []
        by_host: dict[str, list[OutgoingMessage]] = defaultdict(list)
        for message in messages:
            try:
                url = self._poster.parse_url(message.to)
            except ModelError as error:
                rejected.append(RejectedMessage(message, str(error)))
            else:
                by_host[f"{url.scheme}://{url.authority}"].append(message)
        return rejected + self._runner.run(self._post_all(by_host))

    def close(self) -> None:
        """Close the connections."""
        self._runner.run(self._poster.close())
        self._runner.close()

    async def _post_all(
        self, by_host: Mapping[str, list[OutgoingMessage]]
    ) -> list[RejectedMessage]:
        limit = asyncio.Semaphore(_MAX_CONCURRENT_HOSTS)
        posts = (self._post_to_host(host, messages, limit) for host, messages in by_host.items())
        return [
            rejection for rejections in await asyncio.gather(*posts) for rejection in rejections
        ]

    async def _post_to_host(
        self, host: str, messages: list[OutgoingMessage], limit: asyncio.Semaphore
    ) -> list[RejectedMessage]:
        """Post the messages of one host in order; return the rejected ones."""
        rejected: list[RejectedMessage] = []
        async with limit:
            for message in messages:
                if host not in self._failed_hosts:
                    result = await self._post(message)
                    if result.outcome is Outcome.OK:
                        continue
                    if result.outcome is not Outcome.FAILED:
                        rejected.append(RejectedMessage(message, result.problem or ""))
                        continue
                    self._failed_hosts[host] = f"{result.problem}, {self._options.attempts} times"
                rejected.append(RejectedMessage(message, self._failed_hosts[host]))
        return rejected

    async def _post(self, message: OutgoingMessage) -> DeliveryResult:
        """Post a message; retry failures until the attempts are used up."""
        options, failures = self._options, 0
        headers = {"idempotency-key": message.id}
        while True:
            result = await self._poster.post(
                message.to, message.body.encode(), _CONTENT_TYPE, headers, options.secret
            )
            failures += 1
            if result.outcome is not Outcome.FAILED or failures == options.attempts:
                return result
            await self._sleep(
                options.schedule.wait_s(failures, result.retry_after_s, self._random_fraction())
            )


def _seconds(options: Mapping[str, str], name: str, default: float) -> float:
    try:
        seconds = float(options.get(name, default))
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise FencepostError(
            f"the option {name!r} is {options[name]!r}; give a number of seconds above 0"
        )
    return seconds
