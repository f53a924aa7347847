"""Matches as messages: an id that is the same whenever it is sent, an address, a body."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from fencepost.errors import ModelError

_ID_LETTERS = 32
_NULLS = {"ignoreNullFields": "false"}


def messages_of(matches: DataFrame, to: str | Column, event: str = "id") -> DataFrame:
    """A message for each match.

    Parameters
    ----------
    matches : DataFrame
        What `fencepost.spark.match` gives, batch or streaming.
    to : str or Column
        Where each goes, a topic or a URL: one for all, or an expression of the match's columns.
    event : str
        The column that tells events apart.

    Returns
    -------
    DataFrame
        `id`: 32 hexadecimal letters, a hash of event and subscription, the same for the same
        match in every run; where the event's id is null, a hash of the whole match instead.
        `to`. `body`: a JSON object of that id, `subscription`, `subscriber`, and `event`, which
        has the other columns (binary ones in base64).
    """
    for name in (event, "subscription", "subscriber"):
        if name not in matches.columns:
            raise ModelError(
                f"the matches have no column {name!r}; they have: {', '.join(matches.columns)}"
                + (f"; keep it with match(..., columns=[{name!r}])" if name == event else "")
            )
    own = [name for name in matches.columns if name not in {"subscription", "subscriber"}]
    attributes = f.struct(*(_named(matches, name) for name in own))
    key = f.struct(_named(matches, event).alias("event"), f.col("subscription"))
    whole = f.struct(f.col("subscription"), attributes.alias("event"))
    text = f.when(_named(matches, event).isNull(), f.to_json(whole, _NULLS)).otherwise(
        f.to_json(key, _NULLS)
    )
    id = f.substring(f.sha2(text, 256), 1, _ID_LETTERS)
    body = f.struct(
        id.alias("id"), f.col("subscription"), f.col("subscriber"), attributes.alias("event")
    )
    address = f.lit(to) if isinstance(to, str) else to
    return matches.select(
        id.alias("id"), address.cast("string").alias("to"), f.to_json(body, _NULLS).alias("body")
    )


def _named(matches: DataFrame, name: str) -> Column:
    return f.col(f"`{name.replace('`', '``')}`").alias(name)
