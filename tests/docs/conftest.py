"""The Spark session of `tests/spark`, for pages and notebooks."""

from __future__ import annotations

from tests.spark.conftest import spark

__all__ = ["spark"]
