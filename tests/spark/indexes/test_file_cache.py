"""The cache of files of an object store, on a worker's disk."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from fencepost.errors import ModelError
from fencepost.spark.indexes.file_cache import FileCache
from tests.waiting import WAIT_S


class Source:
    """Downloads files of `size` bytes each, and records their names."""

    def __init__(self, size: int = 100) -> None:
        self.size = size
        self.requested: list[str] = []

    def __call__(self, name: str, to: BinaryIO) -> None:
        self.requested.append(name)
        to.write(name.encode().ljust(self.size, b"."))


def make_older(cache: FileCache, folder: str, age_s: int) -> None:
    path = cache.root / cache.index / folder
    os.utime(path, (path.stat().st_mtime - age_s,) * 2)


def test_files_are_downloaded_once(tmp_path: Path) -> None:
    cache, source = FileCache(tmp_path, "index", 10_000), Source()
    for _ in range(2):
        with cache.local_files(["a/x", "a/y", "b/x"], source) as path:
            assert (path / "b/x").read_bytes().startswith(b"b/x.")
    assert sorted(source.requested) == ["a/x", "a/y", "b/x"]
    with cache.local_files(["a/x", "a/z"], source):
        pass
    assert source.requested[3:] == ["a/z"]


def test_least_recently_used_files_are_evicted(tmp_path: Path) -> None:
    first, second, source = FileCache(tmp_path, "1", 350), FileCache(tmp_path, "2", 350), Source()
    for k, cache in enumerate((first, second, first)):
        with cache.local_files([f"{k}/x"], source):
            pass
        make_older(cache, str(k), 100 - k)
    with first.local_files(["0/x"], source):  # now the most recently used
        pass
    with first.local_files(["3/x"], source) as path:
        mapped = (path / "3/x").open("rb")
    assert sorted(str(f.relative_to(tmp_path)) for f in tmp_path.glob("*/*/x")) == [
        *("1/0/x", "1/2/x", "1/3/x")
    ]
    with mapped:
        assert len(mapped.read()) == 100
    assert len(source.requested) == 4


def test_files_in_use_are_not_evicted(tmp_path: Path) -> None:
    cache, source = FileCache(tmp_path, "index", 1), Source()
    with cache.local_files(["a/x"], source) as path:
        with cache.local_files(["b/x"], source):
            pass
        assert (path / "a/x").exists()  # in use, so nothing was evicted
    assert (path / "a/x").exists()  # files in use may exceed the capacity
    with cache.local_files(["c/x"], source):
        pass
    assert [file.parent.name for file in path.glob("*/x")] == ["c"]


def test_failed_download_leaves_no_file(tmp_path: Path) -> None:
    cache = FileCache(tmp_path, "index", 1_000)

    def broken(name: str, to: BinaryIO) -> None:
        to.write(b"half")
        raise OSError("the network is gone")

    with pytest.raises(OSError, match="network is gone"), cache.local_files(["a/x"], broken):
        pass
    assert not [file for file in (tmp_path / "index" / "a").iterdir() if file.is_file()]
    with cache.local_files(["a/x"], Source()) as path:
        assert (path / "a/x").stat().st_size == 100


_PROCESS = """
import sys
from pathlib import Path
from typing import BinaryIO
from fencepost.spark.indexes.file_cache import FileCache
root, log = Path(sys.argv[1]), Path(sys.argv[2])

def download(name, to):
    with log.open("a") as file:
        file.write(name + "\\n")
    to.write(b"x" * 100)

for k in range(30):
    cache = FileCache(root, "index", int(sys.argv[3]))
    with cache.local_files([f"{k % 5}/x", f"{k % 7}/y"], download) as path:
        assert (path / f"{k % 5}/x").stat().st_size == 100
        assert (path / f"{k % 7}/y").stat().st_size == 100
"""


@pytest.mark.parametrize("capacity", [10_000, 300])
def test_concurrent_processes(tmp_path: Path, capacity: int) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", _PROCESS, str(tmp_path / "cache"), str(log), str(capacity)]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait(WAIT_S) for process in running] == [0, 0, 0]
    requested = log.read_text().split()
    if capacity == 10_000:
        assert len(requested) == len(set(requested)) == 12, "each file is downloaded once"
    size = sum(file.stat().st_size for file in (tmp_path / "cache").glob("*/*/*"))
    assert size <= max(capacity, 400)


def test_concurrent_threads(tmp_path: Path) -> None:
    cache, source = FileCache(tmp_path, "index", 10_000), Source()

    def hold() -> None:
        with cache.local_files([f"a/{k}" for k in range(20)], source):
            pass

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(source.requested) == sorted(f"a/{k}" for k in range(20))


def test_environment_sets_folder_and_capacity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FENCEPOST_INDEX_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("FENCEPOST_INDEX_CACHE_BYTES", "1000")
    one, other = FileCache.of("s3://a/b"), FileCache.of("s3://a/c")
    assert (one.root, one.capacity_bytes) == (tmp_path, 1000)
    assert one.index != other.index
    monkeypatch.setenv("FENCEPOST_INDEX_CACHE_BYTES", "1 GB")
    with pytest.raises(ModelError, match="must be a number of bytes; saw '1 GB'"):
        FileCache.of("s3://a/b")
