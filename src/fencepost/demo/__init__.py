"""The demonstration: subscriptions and events of a generated city, matched on local Spark.

- `city`: the generated city: its subscriptions and its events
- `map`: the outputs: a table of counts, a picture, and an interactive map in one HTML file
- `run`: `run`, which builds an index on Spark, matches a stream, and writes the outputs
"""

from __future__ import annotations

from fencepost.demo.run import run

__all__ = ["run"]
