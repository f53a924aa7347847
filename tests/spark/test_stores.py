"""An index in an object store: built and matched through an S3 server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from fencepost import spark as fps
from fencepost.engine import Matcher
from fencepost.errors import IndexingError
from fencepost.spark.indexes.index_folders import (
    ObjectStoreFolder,
    folder_of,
    removed_version_error,
)
from fencepost.spark.matches import open_indexes, part_routing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

SUBSCRIPTIONS = "id string, expression string, deleted boolean"


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """Provide the address of a folder on an S3 server, with `{}` in place of its name."""
    server = pytest.importorskip("moto.server", reason="moto is not installed: no server of S3")
    made = server.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    made.start()
    try:
        host, port = made.get_host_and_port()
        options = f"endpoint_override={host}:{port}&scheme=http&region=us-east-1"
        system, _ = fs.FileSystem.from_uri(
            f"s3://key:secret@bucket/?{options}&allow_bucket_creation=true"
        )
        system.create_dir("bucket")
        yield f"s3://key:secret@bucket/{{}}?{options}"
    finally:
        made.stop()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set the cache of this process; workers have their own."""
    monkeypatch.setenv("FENCEPOST_INDEX_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def matches(result: DataFrame) -> list[tuple[int, str]]:
    return sorted((row["n"], row["subscription"]) for row in result.collect())


def test_index_in_an_object_store(
    spark: SparkSession, bucket: str, tmp_path: Path, cache: Path
) -> None:
    path = bucket.format("some/index")
    given = [(f"s{k}", f"n % 5 = {k}", False) for k in range(5)] + [("bad", "n >", False)]
    built = fps.build_index(
        spark, spark.createDataFrame(given, SUBSCRIPTIONS), path, parts=2, space="planar"
    )
    assert built.path == "s3://bucket/some/index"
    assert (built.version, built.subscriptions, built.dead_letters) == (1, 5, 1)
    assert built.dead_letters_path is not None
    system, where = fs.FileSystem.from_uri(built.dead_letters_path)
    assert [row["id"] for row in pq.read_table(where, filesystem=system).to_pylist()] == ["bad"]
    assert "secret" not in str(built.path)

    source = tmp_path / "source"
    batch = spark.range(10).withColumnRenamed("id", "n")
    batch.coalesce(1).write.parquet(str(source))
    query = (
        fps.match(spark.readStream.schema("n long").parquet(str(source)), path)
        .writeStream.format("memory")
        .queryName("from_a_store")
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        query.processAllAvailable()
        right = [(n, f"s{n % 5}") for n in range(10)]
        assert matches(spark.table("from_a_store")) == right
        early = fps.match(batch, path, how="partitioned")

        changes = [("s0", "n = 3", False), ("s1", None, True)]
        built = fps.build_index(
            spark, spark.createDataFrame(changes, SUBSCRIPTIONS), path, mode="update"
        )
        assert (built.version, built.subscriptions, built.removed) == (2, 4, 2)
        changed = sorted([(n, f"s{n % 5}") for n in range(10) if n % 5 > 1] + [(3, "s0")])
        for how in ("whole", "partitioned"):
            assert matches(fps.match(batch, path, how=how)) == changed
        assert matches(early) == right
        batch.coalesce(1).write.mode("append").parquet(str(source))
        query.processAllAvailable()
        assert matches(spark.table("from_a_store")) == sorted(right + changed)
    finally:
        query.stop()
    with pytest.raises(IndexingError, match=r"an index exists in s3://bucket/some/index"):
        fps.build_index(spark, spark.createDataFrame(given, SUBSCRIPTIONS), path, space="planar")


def test_build_fails_if_another_build_published(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with two simultaneous builds in an object store, which has no locks."""
    path = tmp_path / "index"
    one = spark.createDataFrame([("a", "n > 0", False)], SUBSCRIPTIONS)
    write = part_routing.write_router

    def publish_another(*given: Any) -> str:
        (path / "manifest.json").write_text("of another build")
        return write(*given)

    monkeypatch.setattr("fencepost.spark.matches.part_routing.write_router", publish_another)
    with pytest.raises(IndexingError, match=r"another build published an index in .* meanwhile"):
        fps.build_index(spark, one, path, space="planar")
    assert (path / "manifest.json").read_text() == "of another build"


def test_object_store_folder(tmp_path: Path, cache: Path) -> None:
    root = tmp_path / "store"
    store = ObjectStoreFolder("test://host/store", fs.LocalFileSystem(), str(root))
    assert (store.read_text("a"), store.stamp("a"), store.modified_s()) == (None, None, {})
    assert not store.has_index()
    store.replace("a", "1")
    first = store.stamp("a")
    store.replace("a", "22")
    assert (store.read_text("a"), store.stamp("a") == first) == ("22", False)
    with store.staging_folder() as path:
        (path / "folder/inner").mkdir(parents=True)
        (path / "folder/x").write_text("x")
        (path / "folder/inner/y").write_text("y")
    with store.local_files(["folder/x", "folder/inner/y"]) as path:
        assert path.is_relative_to(cache)
        assert (path / "folder/x").read_text() + (path / "folder/inner/y").read_text() == "xy"
    assert sorted(store.modified_s()) == ["a", "folder"]
    assert abs(store.modified_s()["a"] - (root / "a").stat().st_mtime) < 1e-3
    store.remove(["a", "folder", "nothing"])
    assert store.modified_s() == {}
    with pytest.raises(FileNotFoundError), store.local_files(["folder/z"]):
        pass
    assert store.address_of("x") == "test://host/store/x"
    with suppress(ValueError), store.staging_folder() as path:
        (path / "half").write_text("")
        raise ValueError
    assert store.modified_s() == {}


def test_saved_index_in_an_object_store(tmp_path: Path, cache: Path) -> None:
    """Copied to a store; a missing file is an error."""
    made = Matcher(space="planar")
    made.subscribe("a", "n > 1")
    made.save(tmp_path / "index")
    store = ObjectStoreFolder("test://host/index", fs.LocalFileSystem(), str(tmp_path / "index"))
    assert open_indexes.whole_index(store, None).match({"n": 2}) == ["a"]
    again = ObjectStoreFolder("test://host/other", fs.LocalFileSystem(), str(tmp_path / "index"))
    next((tmp_path / "index").glob("segment-*/names.arrow")).unlink()
    with pytest.raises(IndexingError, match=r"test://host/other is damaged .*; build it again"):
        open_indexes.whole_index(again, None)


def test_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Matcher(space="planar").save(tmp_path / "an index")
    assert folder_of(f"file://{tmp_path}/an%20index").has_index()
    assert fps.plan(f"file://{tmp_path}/an%20index").parts == 0
    monkeypatch.chdir(tmp_path)
    assert folder_of("an index").name == os.path.join(tmp_path, "an index")
    with pytest.raises(IndexingError, match=r"cannot reach an object store at odd://b/c: .*; give"):
        folder_of("odd://a:secret@b/c")
    assert "start the stream again" in str(removed_version_error("x", 3))
