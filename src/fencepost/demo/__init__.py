"""The demonstration: a made-up city, standing questions, a stream of events matched on Spark."""

from __future__ import annotations

from fencepost.demo.run import run

__all__ = ["run"]
