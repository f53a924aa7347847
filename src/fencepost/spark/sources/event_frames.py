"""Provides `read_events`, which reads a file or a folder of events as a DataFrame."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from fencepost.errors import FencepostError
from fencepost.spark.feature_frames import check_rows, is_collection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CSV = (".csv",)
_JSON_LINES = (".ndjson", ".jsonl", ".geojsonl", ".geojsons", ".geojsonseq")
_JSON = (".geojson", ".json")
_TEXT_OF_JSON = "_corrupt_record"


def read_events(spark: SparkSession, path: str | Path) -> DataFrame:
    """Read events, or subscriptions, from a file or a folder.

    Parameters
    ----------
    spark : SparkSession
        The session that reads.
    path : str or Path
        A file or a folder, or an address that Spark can read. The ending decides the format, also
        before `.gz`: CSV with a header (`.csv`), one JSON object or Feature a line (`.ndjson`,
        `.jsonl`), GeoJSON or one object a line (`.geojson`, `.json`), Parquet otherwise.

    Returns
    -------
    DataFrame
        A row is an object, a Feature or a row of the table. The Features of a FeatureCollection
        are one row each.

    Raises
    ------
    FencepostError
        If there is no such file, or it holds no JSON.
    """
    text = str(path)
    if "://" not in text:
        if not Path(text).exists():
            raise FencepostError(f"there is no file or folder {text}")
        text = escape_globs(text)
    ending = text.removesuffix(".gz")
    if ending.endswith(_CSV):
        return spark.read.csv(text, header=True, inferSchema=True)
    if ending.endswith(_JSON_LINES):
        rows = spark.read.json(text)
    elif ending.endswith(_JSON):
        rows = _read_json(spark, text)
    else:
        return spark.read.parquet(text)
    check_rows(rows)
    return rows


def escape_globs(path: str) -> str:
    """Return a path with glob characters escaped, which Spark would expand."""
    return re.sub(r"([\\\[\]{}*?])", r"\\\1", path)


def _read_json(spark: SparkSession, path: str) -> DataFrame:
    """Read JSON that is one object a line, or one FeatureCollection or array in any layout."""
    rows = spark.read.json(path)
    if _TEXT_OF_JSON in rows.columns:  # a line is no object: the file may be one text
        whole = spark.read.json(path, multiLine=True)
        if is_collection(whole) or path.removesuffix(".gz").endswith(".geojson"):
            rows = whole
    return rows.selectExpr("inline(features)") if is_collection(rows) else rows
