"""`Operations`: each operation of a server as a generator of network effects, with its retries.

`MessageFollower` yields the messages of a subscriber and resumes after a lost connection.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fencepost.client.network_effects import (
    ConnectionLost,
    IterationStopped,
    OpenSocket,
    ReceiveFrame,
    Request,
    Response,
    SendFrame,
    Sleep,
    Steps,
    StreamSteps,
    YieldValue,
    quote_segment,
)
from fencepost.client.publish_batches import json_line, merge_result, new_batch, split_batches
from fencepost.client.results import (
    AcknowledgeResult,
    MatchExplanation,
    Message,
    PublishResult,
    RejectedRow,
    SubscribeResult,
    error_of,
    explanation_of,
    messages_of,
    rejected_rows,
    request_refused,
)
from fencepost.client.retry_policy import (
    Backoff,
    RetryPolicy,
    is_retryable,
    logger,
    requested_wait_s,
    wait_before_reconnect,
)
from fencepost.errors import ModelError

_PAGE_SIZE = "1000"
_JSON = {"content-type": "application/json"}
_NDJSON = {"content-type": "application/x-ndjson"}
_TOO_LARGE = 413
_UNPROCESSABLE = 422


class Operations:
    """The operations of a server.

    Parameters
    ----------
    server : str
        The server's URL, for error messages.
    retry_policy : RetryPolicy
    """

    def __init__(self, server: str, retry_policy: RetryPolicy) -> None:
        self.server = server
        self.retry_policy = retry_policy

    def subscribe(
        self,
        id: str,
        expression: str | Mapping[str, Any] | None = None,
        *,
        subscriber: str | None = None,
        expires: Any = None,
        track: Mapping[str, Any] | None = None,
        composite: Any = None,
        payload: Any = None,
    ) -> Steps[dict[str, Any]]:
        """Add a subscription, or replace the one of this id.

        Parameters
        ----------
        id : str
        expression : str or mapping
            CQL2, as text or as JSON.
        subscriber : str, optional
            The subscriber that gets the messages; `id` if left out.
        expires : str or datetime, optional
            When the subscription ends, with a time zone.
        track : mapping, optional
            Which movements of objects to notify of, instead of each event that matches.
        composite : mapping or Composite, optional
            A pattern of several events, instead of an expression.
        payload : optional
            Any JSON value; each message repeats it.

        Returns
        -------
        dict
            The subscription as the server stores it.

        Raises
        ------
        RequestRefused
            If the server rejects the subscription; `position` is the place of an error in the
            expression.
        """
        definition = definition_of(
            expression, subscriber, expires, track, _composite_json(composite), payload
        )
        path = f"/v1/subscriptions/{quote_segment(id)}"
        answer = yield from self._send_json("PUT", path, definition)
        return dict(answer)

    def subscribe_many(self, definitions: Iterable[Mapping[str, Any]]) -> Steps[SubscribeResult]:
        """Add or replace many subscriptions.

        Parameters
        ----------
        definitions : iterable of mapping
            Each has an `id`, an `expression` or `composite`, and any other parameter of
            `subscribe`.
        """
        total = SubscribeResult()
        for batch in split_batches(definitions):
            request = Request(
                "POST", "/v1/subscriptions", headers=_NDJSON, content=b"\n".join(batch.lines)
            )
            answer = yield from self._send(request)
            total = SubscribeResult(
                total.created + answer["created"],
                total.replaced + answer["replaced"],
                total.rejected + rejected_rows(answer, batch.first),
            )
        return total

    def unsubscribe(self, id: str) -> Steps[bool]:
        """Remove a subscription. Return whether it existed."""
        request = Request("DELETE", f"/v1/subscriptions/{quote_segment(id)}")
        result, tries = yield from self._send_with_retries(request)
        if isinstance(result, Response) and result.status == 404:
            return tries > 1  # an earlier try may have removed it and lost its response
        self._checked(result)
        return True

    def subscriptions(
        self, subscriber: str | None = None, contains: str = ""
    ) -> StreamSteps[dict[str, Any]]:
        """Yield all subscriptions in order of their ids, as the server stores them.

        Parameters
        ----------
        subscriber : str, optional
            Only the subscriptions of this subscriber.
        contains : str, optional
            Only subscriptions whose id or definition contains this text.
        """
        query = {"limit": _PAGE_SIZE, "contains": contains}
        if subscriber is not None:
            query["subscriber"] = subscriber
        return StreamSteps(self._subscription_pages(query))

    def _subscription_pages(self, query: Mapping[str, str]) -> Steps[None]:
        after: str | None = ""
        while after is not None:
            request = Request("GET", "/v1/subscriptions", {**query, "after": after})
            page = yield from self._send(request)
            for subscription in page["subscriptions"]:
                yield YieldValue(subscription)
            after = page["next"]

    def publish(
        self, events: Mapping[str, Any] | Iterable[Mapping[str, Any] | bytes]
    ) -> Steps[PublishResult]:
        """Publish one event or many. Return once the events and their messages are durable.

        Many events are sent in batches, in order. A batch whose response is lost is sent again with
        the same idempotency key, so that the server publishes it once.

        Parameters
        ----------
        events : mapping or iterable of mapping
            GeoJSON Features, or attributes by name. Values may be Shapely geometries, times and
            NumPy numbers. Among many events, bytes are taken for a line of JSON.

        Raises
        ------
        RequestRefused
            If the server rejects the request. A bad event among many is in `rejected` instead.
        """
        is_single = isinstance(events, Mapping)
        batches = (new_batch(0, [json_line(events, 0)]),) if is_single else split_batches(events)
        total = PublishResult()
        for whole_batch in batches:
            queue = deque([whole_batch])
            while queue:
                batch = queue.popleft()
                result, _ = yield from self._send_with_retries(batch.request())
                status = result.status if isinstance(result, Response) else 0
                is_one_of_many = not is_single and len(batch.lines) == 1
                if status == _TOO_LARGE and len(batch.lines) > 1:
                    queue.extendleft(reversed(batch.split()))
                elif status in (_TOO_LARGE, _UNPROCESSABLE) and is_one_of_many:
                    row = RejectedRow(batch.first, str(error_of(result, self.server)))
                    rejected = (*total.rejected, row)
                    total = PublishResult(
                        total.accepted, total.messages, rejected, total.first, total.last
                    )
                else:
                    total = merge_result(total, self._parsed(result), batch)
        return total

    def messages(
        self, subscriber: str, since: int | None = None, acknowledge: bool = True
    ) -> StreamSteps[Message]:
        """Yield the messages of a subscriber as they arrive, forever: at least once, in order.

        A lost connection is opened again and resumes after the last message that was yielded; the
        logger `fencepost.client` reports this.

        Parameters
        ----------
        subscriber : str
        since : int, optional
            The position to start after; by default the last acknowledged position.
        acknowledge : bool
            Whether to acknowledge a message when the loop asks for the next one.

        Raises
        ------
        RequestRefused
            If the server does not know the subscriber or the key.
        Unreachable
            If the first connection cannot be opened.
        """
        follower = MessageFollower(self.server, self.retry_policy, subscriber, since, acknowledge)
        return StreamSteps(follower.steps())

    def acknowledge(self, subscriber: str, position: int) -> Steps[AcknowledgeResult]:
        """Acknowledge all messages of a subscriber up to a position."""
        answer = yield from self._send(acknowledge_request(subscriber, position))
        return AcknowledgeResult(answer["acknowledged"], answer["depth"])

    def explain(self, event: Mapping[str, Any], id: str) -> Steps[MatchExplanation]:
        """Explain why an event matches a subscription or not."""
        path = f"/v1/subscriptions/{quote_segment(id)}/explanation"
        return explanation_of((yield from self._send_json("POST", path, {"event": event})))

    def try_expression(
        self, expression: str | Mapping[str, Any], events: Sequence[Mapping[str, Any]]
    ) -> Steps[list[MatchExplanation]]:
        """Explain for each sample event whether it matches an expression; nothing is stored."""
        body = {"expression": expression, "events": [*events]}
        answer = yield from self._send_json("POST", "/v1/try", body)
        return [explanation_of(result) for result in answer["results"]]

    def stats(self) -> Steps[dict[str, Any]]:
        """Return statistics of the tenant, its index and its queues."""
        return dict((yield from self._send(Request("GET", "/v1/stats"))))

    # Requests

    def _send_json(self, method: str, path: str, body: Mapping[str, Any]) -> Steps[Any]:
        request = Request(method, path, headers=_JSON, content=json_line(body, 0))
        return (yield from self._send(request))

    def _send(self, request: Request) -> Steps[Any]:
        return self._parsed((yield from self._send_with_retries(request))[0])

    def _send_with_retries(self, request: Request) -> Steps[tuple[Response | ConnectionLost, int]]:
        """Send a request. Return the last result and the number of tries."""
        backoff = Backoff(self.retry_policy)
        tries = 0
        while True:
            result: Response | ConnectionLost = yield request
            tries += 1
            wait_s = backoff.failed(requested_wait_s(result)) if is_retryable(result) else None
            if wait_s is None:
                return result, tries
            logger.warning("%s; trying again in %.1f s", error_of(result, self.server), wait_s)
            yield Sleep(wait_s)

    def _parsed(self, result: Response | ConnectionLost) -> Any:
        """Return the JSON of a response; raise the error of a failed request."""
        response = self._checked(result)
        try:
            return json.loads(response.body)
        except ValueError:
            raise request_refused(
                response.status, f"{self.server} answers, but is not a Fencepost server"
            ) from None

    def _checked(self, result: Response | ConnectionLost) -> Response:
        if isinstance(result, ConnectionLost) or result.status >= 300:
            raise error_of(result, self.server)
        return result


def definition_of(
    expression: Any, subscriber: Any, expires: Any, track: Any, composite: Any, payload: Any
) -> dict[str, Any]:
    """Return the definition of a subscription in JSON, without members that are None."""
    members = {
        "expression": expression,
        "composite": composite,
        "subscriber": subscriber,
        "expires": expires,
        "track": track,
        "payload": payload,
    }
    return {name: value for name, value in members.items() if value is not None}


def _composite_json(composite: Any) -> Any:
    """Return a composite in JSON, without its id: the subscription has its own."""
    if composite is None or isinstance(composite, Mapping):
        return composite
    if not hasattr(composite, "to_json"):
        raise ModelError(f"a composite is a mapping or a Composite; saw {composite!r:.60}")
    return {name: value for name, value in composite.to_json().items() if name != "id"}


_MAX_UNACKNOWLEDGED = 100


class MessageFollower:
    """Follows the messages of a subscriber: the last one yielded, and the last one processed.

    A message counts as processed when the caller's loop asks for the next one. Processed messages
    are acknowledged at the end of a frame, and at least every hundred messages.

    Parameters
    ----------
    server : str
        The server's URL, for error messages.
    retry_policy : RetryPolicy
    subscriber : str
    since : int or None
        The position to start after; None for the last acknowledged position.
    acknowledge : bool
        Whether to acknowledge processed messages.
    """

    def __init__(
        self,
        server: str,
        retry_policy: RetryPolicy,
        subscriber: str,
        since: int | None,
        acknowledge: bool,
    ) -> None:
        self._server, self._retry_policy = server, retry_policy
        self._subscriber = subscriber
        self._path = f"/v1/subscribers/{quote_segment(subscriber)}/socket"
        self._last_yielded = since
        self._acknowledge = acknowledge
        self._last_processed: int | None = None
        self._unacknowledged = 0

    def steps(self) -> Steps[None]:
        """Connect, yield messages, and connect again after a loss."""
        backoff = Backoff(self._retry_policy)
        while True:
            query = {} if self._last_yielded is None else {"since": str(self._last_yielded)}
            lost: ConnectionLost | None = yield OpenSocket(self._path, query)
            if lost is None:
                if backoff.forever:
                    logger.warning("%s is reached again", self._server)
                backoff.forever = True  # a server that was reached once is expected to come back
                try:
                    lost = yield from self._read_frames(backoff)
                except IterationStopped:
                    # By HTTP: a WebSocket that is closed may lose frames that were just sent.
                    if self._acknowledge and self._last_processed is not None:
                        yield acknowledge_request(self._subscriber, self._last_processed)
                    return
            yield from wait_before_reconnect(backoff, lost, self._server)

    def _read_frames(self, backoff: Backoff) -> Steps[ConnectionLost]:
        # The previous connection may have lost the last acknowledgement.
        lost: ConnectionLost | None = yield from self._send_acknowledgement()
        while lost is None:
            frame: str | ConnectionLost = yield ReceiveFrame()
            if isinstance(frame, ConnectionLost):
                return frame
            backoff.succeeded()
            for message in messages_of(frame):
                if self._last_yielded is not None and message.position <= self._last_yielded:
                    continue
                yield YieldValue(message)
                self._last_yielded = self._last_processed = message.position
                self._unacknowledged += 1
                if self._unacknowledged == _MAX_UNACKNOWLEDGED:
                    yield from self._send_acknowledgement()
            lost = yield from self._send_acknowledgement()
        return lost

    def _send_acknowledgement(self) -> Steps[ConnectionLost | None]:
        self._unacknowledged = 0
        if not self._acknowledge or self._last_processed is None:
            return None
        frame = json.dumps({"position": self._last_processed})
        lost: ConnectionLost | None = yield SendFrame(frame)
        return lost


def acknowledge_request(subscriber: str, position: int) -> Request:
    """Return the request that acknowledges all messages up to a position."""
    path = f"/v1/subscribers/{quote_segment(subscriber)}/acknowledgement"
    return Request("POST", path, headers=_JSON, content=json.dumps({"position": position}).encode())
