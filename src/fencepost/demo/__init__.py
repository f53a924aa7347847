"""The demonstration: a made-up city, standing questions, a stream of events matched on Spark.

- `city`: A small made-up city: places people ask about, and what happens there
- `map`: What the demonstration shows: counts, a picture, and a map, one HTML file that loads
  nothing
- `run`: Runs the demonstration: an index built on Spark, a stream through it, a summary, pictures
"""

from __future__ import annotations

from fencepost.demo.run import run

__all__ = ["run"]
