"""What can be asked of a server: each operation as the steps that carry it out.

`MessageFollower` has the messages of a subscriber, from wherever the last connection broke off.
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
    messages_of,
    reason_of,
    refused,
    rejected_of,
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

_PAGE = "1000"
_JSON = {"content-type": "application/json"}
_LINES = {"content-type": "application/x-ndjson"}
_TOO_LARGE = 413


class Operations:
    """Makes the steps of operations.

    Parameters
    ----------
    server : str
        The address, for messages.
    retry_policy : RetryPolicy
    """

    def __init__(self, server: str, retry_policy: RetryPolicy) -> None:
        self.server = server
        self.retry_policy = patience

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
        """Ask a standing question, in the place of one of the same id.

        Parameters
        ----------
        id : str
        expression : str or mapping
            CQL2, as text or as JSON.
        subscriber : str, optional
            Who gets the messages; the id if left out.
        expires : str or datetime, optional
            When it ends, with a time zone.
        track : mapping, optional
            What moving objects do to it, in place of each event that answers it.
        composite : mapping or Composite, optional
            Several events together, in place of an expression.
        payload : optional
            Anything that JSON has; it comes back with each message.

        Returns
        -------
        dict
            The subscription as the server keeps it.

        Raises
        ------
        RequestRefused
            Where the server does not take it; its `position` says where in the expression.
        """
        definition = definition_of(
            expression, subscriber, expires, track, _plain_composite(composite), payload
        )
        path = f"/v1/subscriptions/{quote_segment(id)}"
        answer = yield from self._json("PUT", path, definition)
        return dict(answer)

    def subscribe_many(self, definitions: Iterable[Mapping[str, Any]]) -> Steps[SubscribeResult]:
        """Ask many standing questions at once.

        Parameters
        ----------
        definitions : iterable of mapping
            Each with `id`, `expression` or `composite`, and what else `subscribe` takes.
        """
        done = SubscribeResult()
        for part in split_batches(definitions):
            request = Request(
                "POST", "/v1/subscriptions", headers=_LINES, content=b"\n".join(part.lines)
            )
            answer = yield from self._asked(request)
            done = SubscribeResult(
                done.created + answer["created"],
                done.replaced + answer["replaced"],
                done.rejected + rejected_of(answer, part.first),
            )
        return done

    def unsubscribe(self, id: str) -> Steps[bool]:
        """Remove a subscription; whether there was one."""
        request = Request("DELETE", f"/v1/subscriptions/{quote_segment(id)}")
        answer, tries = yield from self._outcome(request)
        if isinstance(answer, Response) and answer.status == 404:
            return tries > 1  # the answer to an earlier try may have been lost
        self._checked(answer)
        return True

    def subscriptions(
        self, subscriber: str | None = None, contains: str = ""
    ) -> StreamSteps[dict[str, Any]]:
        """All subscriptions by id, as the server keeps them, read page by page.

        Parameters
        ----------
        subscriber : str, optional
            Only theirs.
        contains : str, optional
            Only those with this text in their id or definition.
        """
        query = {"limit": _PAGE, "contains": contains}
        if subscriber is not None:
            query["subscriber"] = subscriber
        return StreamSteps(self._pages(query))

    def _pages(self, query: Mapping[str, str]) -> Steps[None]:
        after: str | None = ""
        while after is not None:
            request = Request("GET", "/v1/subscriptions", {**query, "after": after})
            page = yield from self._asked(request)
            for one in page["subscriptions"]:
                yield YieldValue(one)
            after = page["next"]

    def publish(
        self, events: Mapping[str, Any] | Iterable[Mapping[str, Any] | bytes]
    ) -> Steps[PublishResult]:
        """Publish an event or many; done when they and all that they answer are on the disk.

        Many are sent in parts, in order. A part whose answer is lost is sent again under the same
        name, and taken once.

        Parameters
        ----------
        events : mapping or iterable of mapping
            GeoJSON Features, or attributes by name; geometries of Shapely, times and numbers of
            NumPy may be in them. Among many, bytes are a line of JSON each.

        Raises
        ------
        RequestRefused
            Where the server does not take any; a bad event among many is in `rejected` instead.
        """
        single = isinstance(events, Mapping)
        source = (new_batch(0, [json_line(events, 0)]),) if single else split_batches(events)
        done = PublishResult()
        for whole in source:
            parts = deque([whole])
            while parts:
                part = parts.popleft()
                answer, _ = yield from self._outcome(part.request())
                status = answer.status if isinstance(answer, Response) else 0
                if status == _TOO_LARGE and len(part.lines) > 1:
                    parts.extendleft(reversed(part.halves()))
                elif status in (_TOO_LARGE, 422) and not single and len(part.lines) == 1:
                    why = RejectedRow(part.first, str(error_of(answer, self.server)))
                    rejected = (*done.rejected, why)
                    done = PublishResult(
                        done.accepted, done.messages, rejected, done.first, done.last
                    )
                else:
                    done = merge_result(done, self._parsed(answer), part)
        return done

    def messages(
        self, subscriber: str, since: int | None = None, acknowledge: bool = True
    ) -> StreamSteps[Message]:
        """The messages of a subscriber, as they come, without end; each at least once, in order.

        A connection that breaks is opened again after the last message that was handed out; that
        is logged as `fencepost.client`.

        Parameters
        ----------
        subscriber : str
        since : int, optional
            The position to begin after; after the last acknowledged one if left out.
        acknowledge : bool
            Whether a message is acknowledged once the next one is asked for.

        Raises
        ------
        RequestRefused
            Where the server does not know the subscriber or the key.
        Unreachable
            Where the server was not there from the beginning.
        """
        following = MessageFollower(self.server, self.retry_policy, subscriber, since, acknowledge)
        return StreamSteps(following.steps())

    def acknowledge(self, subscriber: str, position: int) -> Steps[AcknowledgeResult]:
        """Note that a subscriber has read all messages up to a position."""
        answer = yield from self._asked(acknowledge_request(subscriber, position))
        return AcknowledgeResult(answer["acknowledged"], answer["depth"])

    def explain(self, id: str, event: Mapping[str, Any]) -> Steps[MatchExplanation]:
        """Why an event matches a subscription or not."""
        path = f"/v1/subscriptions/{quote_segment(id)}/explanation"
        return reason_of((yield from self._json("POST", path, {"event": event})))

    def try_expression(
        self, expression: str | Mapping[str, Any], events: Sequence[Mapping[str, Any]]
    ) -> Steps[list[MatchExplanation]]:
        """Of each sample event whether an expression matches it, and why; nothing is kept."""
        given = {"expression": expression, "events": [*events]}
        answer = yield from self._json("POST", "/v1/try", given)
        return [reason_of(one) for one in answer["results"]]

    def stats(self) -> Steps[dict[str, Any]]:
        """Numbers about the tenant, its index and its queues."""
        return dict((yield from self._asked(Request("GET", "/v1/stats"))))

    # Requests

    def _json(self, method: str, path: str, body: Mapping[str, Any]) -> Steps[Any]:
        request = Request(method, path, headers=_JSON, content=json_line(body, 0))
        return (yield from self._asked(request))

    def _asked(self, request: Request) -> Steps[Any]:
        return self._parsed((yield from self._outcome(request))[0])

    def _outcome(self, request: Request) -> Steps[tuple[Response | ConnectionLost, int]]:
        """What a request came to after as many tries as it took, and that number."""
        backoff = Backoff(self.retry_policy)
        tries = 0
        while True:
            outcome: Response | ConnectionLost = yield request
            tries += 1
            wait = backoff.failed(requested_wait_s(outcome)) if is_retryable(outcome) else None
            if wait is None:
                return outcome, tries
            logger.warning("%s; trying again in %.1f s", error_of(outcome, self.server), wait)
            yield Sleep(wait)

    def _parsed(self, outcome: Response | ConnectionLost) -> Any:
        """What an answer holds."""
        answer = self._checked(outcome)
        try:
            return json.loads(answer.body)
        except ValueError:
            raise refused(
                answer.status, f"{self.server} answers, but is no Fencepost server"
            ) from None

    def _checked(self, outcome: Response | ConnectionLost) -> Response:
        if isinstance(outcome, ConnectionLost) or outcome.status >= 300:
            raise error_of(outcome, self.server)
        return outcome


def definition_of(
    expression: Any, subscriber: Any, expires: Any, track: Any, composite: Any, payload: Any
) -> dict[str, Any]:
    """A subscription as the server takes it: what was given of it."""
    given = {
        "expression": expression,
        "composite": composite,
        "subscriber": subscriber,
        "expires": expires,
        "track": track,
        "payload": payload,
    }
    return {name: value for name, value in given.items() if value is not None}


def _plain_composite(composite: Any) -> Any:
    """A composite as the server takes it; its id is that of the subscription."""
    if composite is None or isinstance(composite, Mapping):
        return composite
    if not hasattr(composite, "to_json"):
        raise ModelError(f"a composite is a mapping or a Composite; saw {composite!r:.60}")
    return {name: value for name, value in composite.to_json().items() if name != "id"}


_DONE_AT_MOST = 100


class MessageFollower:
    """What is known of a subscriber's messages: which was handed out last, which are done with.

    A message is done with when the next one is asked for. That is told to the server once all
    that came together are, or a hundred.
    """

    def __init__(
        self, server: str, retry_policy: RetryPolicy, subscriber: str, since: int | None, tell: bool
    ) -> None:
        self._server, self._retry_policy = server, patience
        self._subscriber = subscriber
        self._path = f"/v1/subscribers/{quote_segment(subscriber)}/socket"
        self._last = since  # handed out; None where the server knows it
        self._tell = tell
        self._done: int | None = None  # up to here, what is not told yet
        self._untold = 0

    def steps(self) -> Steps[None]:
        """Connect, hand out, connect again."""
        backoff = Backoff(self._retry_policy)
        while True:
            query = {} if self._last is None else {"since": str(self._last)}
            lost: ConnectionLost | None = yield OpenSocket(self._path, query)
            if lost is None:
                if backoff.forever:
                    logger.warning("%s is reached again", self._server)
                backoff.forever = True  # who was there once comes back
                try:
                    lost = yield from self._read(backoff)
                except IterationStopped:
                    # As a request: a socket that is closed may take frames along that were sent.
                    if self._tell and self._done is not None:
                        yield acknowledge_request(self._subscriber, self._done)
                    return
            yield from wait_before_reconnect(backoff, lost, self._server)

    def _read(self, backoff: Backoff) -> Steps[ConnectionLost]:
        lost: (
            ConnectionLost | None
        ) = yield from self._acknowledged()  # as the last one may not have arrived
        while lost is None:
            frame: str | ConnectionLost = yield ReceiveFrame()
            if isinstance(frame, ConnectionLost):
                return frame
            backoff.succeeded()
            for message in messages_of(frame):
                if self._last is not None and message.position <= self._last:
                    continue
                yield YieldValue(message)
                self._last = self._done = message.position
                self._untold += 1
                if self._untold == _DONE_AT_MOST:
                    yield from self._acknowledged()
            lost = yield from self._acknowledged()
        return lost

    def _acknowledged(self) -> Steps[ConnectionLost | None]:
        self._untold = 0
        if not self._tell or self._done is None:
            return None
        lost: ConnectionLost | None = yield SendFrame(json.dumps({"position": self._done}))
        return lost


def acknowledge_request(subscriber: str, position: int) -> Request:
    """What tells the server that all messages up to a position are read."""
    path = f"/v1/subscribers/{quote_segment(subscriber)}/acknowledgement"
    content = json.dumps({"position": position}).encode()
    return Request("POST", path, headers={"content-type": "application/json"}, content=content)
