"""A streaming sink that posts matches to webhooks.

Messages to one host go in order, over one connection; hosts do not wait for each other. A host
that fails is tried again after pauses that grow and vary; when it goes on failing, the message
and those after it for this host, in this task, are set aside as dead letters.
"""

from __future__ import annotations

import http.client
import random
import ssl
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from pyspark.sql import Column, DataFrame
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from fencepost.errors import FencepostError
from fencepost.spark.mqtt_client import whole_number
from fencepost.spark.sinks.messages import messages_of
from fencepost.spark.sinks.sending import Outgoing, Refusal, Sender, SendingWriter, absolute
from fencepost.spark.sinks.starting import started

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

FORMAT = "fencepost-webhook"
_AGAIN = {408, 425, 429, 500, 502, 503, 504}
_LONGEST_PAUSE_S = 30.0
_LONGEST_ANSWER = 1 << 16
_HOSTS_AT_ONCE = 16


def send_webhooks(
    matches: DataFrame,
    to: str | Column,
    checkpoint: str | Path,
    folder: str | Path,
    *,
    event: str = "id",
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
        "folder": absolute(folder),
        "timeout": str(timeout_s),
        "attempts": str(attempts),
        "pause": str(pause_s),
    }
    Posting(options)  # bad options are reported here, not in a task later
    matches.sparkSession.dataSource.register(WebhookSink)
    writer = messages_of(matches, to, event).writeStream.format(FORMAT).options(**options)
    return started(writer, checkpoint, available_now, every)


class WebhookSink(DataSource):
    """The sink that is registered with Spark as `fencepost-webhook`."""

    @classmethod
    def name(cls) -> str:
        """What `format` calls it."""
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> SendingWriter:
        """What Spark gives the rows to."""
        return _Writer(schema.names, self.options["folder"], Posting(self.options))


class Posting:
    """How to post: timeout, attempts and pauses, from options."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.timeout_s = _seconds(options, "timeout", 10.0)
        self.attempts = whole_number(options, "attempts", 5)
        self.pause_s = _seconds(options, "pause", 0.5)


class _Writer(SendingWriter):
    def __init__(self, names: list[str], folder: str, posting: Posting) -> None:
        super().__init__(names, folder)
        self._posting = posting

    @contextmanager
    def sender(self) -> Iterator[Sender]:
        webhooks = Webhooks(self._posting)
        try:
            yield webhooks
        finally:
            webhooks.close()


class Webhooks:
    """Posts messages to their addresses."""

    def __init__(self, posting: Posting) -> None:
        self._posting = posting
        self._hosts: dict[tuple[str, str], _Host] = {}

    def send(self, messages: list[Outgoing]) -> list[Refusal]:
        """Post messages; which were not taken, and why."""
        refused: list[Refusal] = []
        groups: dict[tuple[str, str], list[tuple[Outgoing, SplitResult]]] = defaultdict(list)
        for message in messages:
            url = _url(message.to)
            if isinstance(url, str):
                refused.append(Refusal(message, url))
            else:
                groups[url.scheme, url.netloc].append((message, url))
        for key in groups:
            self._hosts.setdefault(key, _Host(*key, self._posting))
        with ThreadPoolExecutor(_HOSTS_AT_ONCE) as pool:
            work = [pool.submit(self._hosts[key].post, group) for key, group in groups.items()]
            for done in work:
                refused += done.result()
        return refused

    def close(self) -> None:
        """End the connections."""
        for host in self._hosts.values():
            host.close()


class _Failed(Exception):
    """An attempt that may go better next time, and after how many seconds if that was said."""

    def __init__(self, reason: str, after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.after_s = after_s


class _Refused(Exception):
    """An answer that would be the same next time."""


class _Host:
    """A connection to a host, and why it is given up, if it is."""

    def __init__(self, scheme: str, netloc: str, posting: Posting) -> None:
        self._posting = posting
        timeout = posting.timeout_s
        self._connection = (
            http.client.HTTPSConnection(
                netloc, timeout=timeout, context=ssl.create_default_context()
            )
            if scheme == "https"
            else http.client.HTTPConnection(netloc, timeout=timeout)
        )
        self._down: str | None = None

    def post(self, messages: list[tuple[Outgoing, SplitResult]]) -> list[Refusal]:
        """Post messages one after the other."""
        refused = []
        for message, url in messages:
            if self._down is None:
                try:
                    self._post_patiently(message, url)
                    continue
                except _Refused as error:
                    refused.append(Refusal(message, str(error)))
                    continue
                except _Failed as error:
                    self._down = f"{error}, {self._posting.attempts} times"
            refused.append(Refusal(message, self._down))
        return refused

    def close(self) -> None:
        self._connection.close()

    def _post_patiently(self, message: Outgoing, url: SplitResult) -> None:
        for attempt in range(1, self._posting.attempts + 1):
            try:
                self._post_once(message, url)
                return
            except _Failed as error:
                if attempt == self._posting.attempts:
                    raise
                # At random up to a bound that doubles, so that many senders do not come as one.
                pause = random.uniform(0.0, self._posting.pause_s * 2.0 ** (attempt - 1))
                time.sleep(min(max(pause, error.after_s), _LONGEST_PAUSE_S))

    def _post_once(self, message: Outgoing, url: SplitResult) -> None:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": message.id,
            "User-Agent": "fencepost",
        }
        try:
            self._connection.request("POST", path, message.body.encode(), headers)
            answer = self._connection.getresponse()
            answer.read(_LONGEST_ANSWER)
            if not answer.isclosed():
                self._connection.close()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            reason = str(error) or type(error).__name__
            raise _Failed(f"no answer from {url.netloc}: {reason}") from error
        if answer.status in _AGAIN:
            after = answer.headers.get("Retry-After", "")
            raise _Failed(
                f"{url.netloc} answers {answer.status} {answer.reason}",
                float(after) if after.isascii() and after.isdigit() else 0.0,
            )
        if not 200 <= answer.status < 300:
            raise _Refused(f"{url.netloc} answers {answer.status} {answer.reason}")


def _url(address: str | None) -> SplitResult | str:
    """The URL that an address is, or why it is none."""
    if not address:
        return "there is no address to send it to"
    try:
        url = urlsplit(address)
        usable = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
        usable = usable and url.username is None and address.isascii() and " " not in address
    except ValueError:
        usable = False
    if not usable:
        return f"{address!r} is no URL such as https://host/path"
    return url


def _seconds(options: Mapping[str, str], name: str, default: float) -> float:
    try:
        seconds = float(options.get(name, default))
    except ValueError:
        seconds = 0.0
    if not 0.0 < seconds < float("inf"):
        raise FencepostError(f"the option {name!r} is {options[name]!r}; give seconds above 0")
    return seconds
