"""Messages as CloudEvents 1.0 in JSON.

`source` and `id` together name a message: the same message, sent again, has the same.
"""

from __future__ import annotations

import json
from urllib.parse import quote

from fencepost.events.times import format_instant

CONTENT_TYPE = "application/cloudevents+json"
BATCH_CONTENT_TYPE = "application/cloudevents-batch+json"


def source(tenant: str, subscriber: str) -> str:
    """Where the messages of a subscriber come from, as a URI."""
    return f"urn:fencepost:{quote(tenant, safe='')}:{quote(subscriber, safe='')}"


class EnvelopeFormatter:
    """Makes the envelopes of one subscriber."""

    def __init__(self, tenant: str, subscriber: str) -> None:
        self._start = f'{{"specversion":"1.0","source":{json.dumps(source(tenant, subscriber))},'

    def wrap(
        self, position: int, at: int, type: str, data: str, event: int | None, body: str | None
    ) -> str:
        """A message as JSON text: its data, with the event as it was published.

        Parameters
        ----------
        position : int
            Of the message; what to acknowledge, and where to go on after.
        at : int
            When it was made, in nanoseconds since 1970.
        type : str
            What kind of message it is.
        data : str
            A JSON object.
        event : int or None
            The position of the event in the log.
        body : str or None
            The event as JSON.
        """
        about = "" if body is None else f',"position":{event},"event":{body}'
        return (
            f'{self._start}"id":"{position}","type":"fencepost.{type}",'
            f'"time":"{format_instant(at)}","datacontenttype":"application/json",'
            f'"position":{position},"data":{data[:-1]}{about}}}}}'
        )


def unwrap(text: str) -> tuple[str, str]:
    """The type and the data of an envelope; what was put in comes out, digit by digit."""
    # Nothing before the data holds a quotation mark that is not ours: names are percent-encoded.
    type = text.partition('"type":"fencepost.')[2].partition('"')[0]
    return type, text.partition(',"data":')[2][:-1]
