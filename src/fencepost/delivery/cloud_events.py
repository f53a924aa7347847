"""`EnvelopeFormatter`: wraps messages as CloudEvents 1.0 in JSON.

`source` and `id` together identify a message; a message that is sent again has the same.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from fencepost.events.times import format_instant

CONTENT_TYPE = "application/cloudevents+json"
BATCH_CONTENT_TYPE = "application/cloudevents-batch+json"


def source_uri(tenant: str, subscriber: str) -> str:
    """Return the CloudEvents `source` of a subscriber's messages."""
    return f"urn:fencepost:{quote(tenant, safe='')}:{quote(subscriber, safe='')}"


class EnvelopeFormatter:
    """Formats the envelopes of one subscriber."""

    def __init__(self, tenant: str, subscriber: str) -> None:
        source = json.dumps(source_uri(tenant, subscriber))
        self._prefix = f'{{"specversion":"1.0","source":{source},'

    def wrap(
        self,
        position: int,
        created_ns: int,
        type: str,
        data: str,
        event: int | None,
        body: str | None,
    ) -> str:
        """Return a message as JSON text: its data, and the event as it was published.

        Parameters
        ----------
        position : int
            The message's position, to acknowledge and to resume after.
        created_ns : int
            When the message was created, in nanoseconds since 1970.
        type : str
            The kind of message.
        data : str
            A JSON object.
        event : int or None
            The event's position in the log.
        body : str or None
            The event as JSON.
        """
        event_members = "" if body is None else f',"position":{event},"event":{body}'
        return (
            f'{self._prefix}"id":"{position}","type":"fencepost.{type}",'
            f'"time":"{format_instant(created_ns)}","datacontenttype":"application/json",'
            f'"position":{position},"data":{data[:-1]}{event_members}}}}}'
        )


def unwrap(text: str) -> tuple[str, str]:
    """Return the type and the data of an envelope, both exactly as `wrap` was given them."""
    # The source is percent-encoded, so the first of these members are the envelope's own.
    type = text.partition('"type":"fencepost.')[2].partition('"')[0]
    return type, text.partition(',"data":')[2][:-1]
