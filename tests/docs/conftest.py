"""One Spark session for all pages and notebooks of a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from fencepost.spark import session
from tests.spark.cluster import LIGHT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("JAVA_TOOL_OPTIONS", LIGHT)
        made = session(cores=2, name="tests")
    yield made
    made.stop()
