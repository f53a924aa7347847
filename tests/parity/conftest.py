"""A Spark session for all tests of a process; the mark `xdist_group` keeps them in one process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from fencepost.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    spark_session = session(cores=2, name="tests")
    yield spark_session
    spark_session.stop()
