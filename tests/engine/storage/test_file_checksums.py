"""Damaged files of a saved index are refused by name, or give the same answers."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from fencepost.engine import Matcher
from fencepost.engine.storage import file_checksums
from fencepost.errors import IndexingError
from tests.engine.manifests import write_manifest
from tests.seeds import seeds

EVENTS: list[dict[str, Any]] = [
    {"n": n, "s": s, "t": t, "g": g}
    for n in (0, 5)
    for s in ("x", "y")
    for t in ("the storm", "calm")
    for g in ("POINT (0.5 0.5)", "POINT (7 7)")
]
STRIDE = 32


def answers(matcher: Matcher) -> list[list[str]]:
    return [matcher.match(event) for event in EVENTS]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    matcher = Matcher(stop_words=["the"], space="planar")
    matcher.subscribe("a", "n + 1 > 1 AND s = 'x'")
    matcher.subscribe("b", "S_INTERSECTS(g, BBOX(0, 0, 1, 1))", subscriber="me")
    matcher.subscribe("c", "A_CONTAINS(t, ('storm'))", expires="2100-01-01T00:00:00Z")
    matcher.subscribe("gone", "n > 0")
    matcher.compact()
    matcher.unsubscribe("gone")
    path: Path = tmp_path_factory.mktemp("saved") / "index"
    matcher.save(path)
    return path


@pytest.fixture
def copy(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "copy"))


def files_of(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("offset", seeds(6, 1))
def test_flipped_bytes(saved: Path, copy: Path, offset: int) -> None:
    """Each offset flips every 32nd byte of every file."""
    rng = random.Random(offset)
    expected = answers(Matcher.open(saved))
    assert sum(map(len, expected)) > 10
    for file in files_of(copy):
        intact = file.read_bytes()
        for position in range(offset, len(intact), STRIDE):
            content = bytearray(intact)
            content[position] ^= rng.randrange(1, 256)
            file.write_bytes(content)
            reason = ""
            try:
                found = answers(Matcher.open(copy))
            except IndexingError as error:
                reason = str(error)
            assert file.name in reason if reason else found == expected, (file, position, reason)
        file.write_bytes(intact)


@pytest.mark.parametrize("seed", range(5))
def test_many_bytes_of_a_larger_index(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    matcher = Matcher(space="planar")
    for k in range(900):
        x, y = rng.uniform(0, 9), rng.uniform(0, 9)
        matcher.subscribe(f"s{k}", f"S_INTERSECTS(g, BBOX({x}, {y}, {x + 1}, {y + 1})) AND n > {k}")
    matcher.compact()
    matcher.save(tmp_path)
    (file,) = tmp_path.glob("segment-*/arrays")
    content = bytearray(file.read_bytes())
    for position in rng.sample(range(len(content)), 256):
        content[position] ^= 1 << rng.randrange(8)
    file.write_bytes(content)
    with pytest.raises(IndexingError, match=r"arrays differs from its checksum.*build it again"):
        Matcher.open(tmp_path)


def test_files_of_another_segment(copy: Path, tmp_path: Path) -> None:
    other = Matcher(space="planar")
    for id in "dbca":
        other.subscribe(id, "n > 0")
    other.save(tmp_path / "other")
    for name in ("arrays", "deleted_version.npy", "names.arrow"):
        damaged = Path(shutil.copytree(copy, tmp_path / name))
        (source,) = (tmp_path / "other").glob(f"segment-*/{name}")
        (target,) = damaged.glob(f"segment-*/{name}")
        shutil.copy(source, target)
        with pytest.raises(IndexingError, match=name):
            Matcher.open(damaged)


def test_large_files_are_not_read(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file,) = copy.glob("segment-*/arrays")
    content = bytearray(file.read_bytes())
    entry = json.loads((copy / "manifest.json").read_bytes())["segments"][0]
    expires = entry["arrays"]["expires"]
    # A byte between two arrays, or the last of a time far away: nothing that an answer needs.
    content[expires["start"] + 8 * expires["shape"][0] - 8] ^= 1
    file.write_bytes(content)
    with pytest.raises(IndexingError, match="arrays differs"):
        Matcher.open(copy)
    monkeypatch.setattr(file_checksums, "MAX_CHECKED_BYTES", len(content) - 1)
    assert len(Matcher.open(copy)) == 3
    monkeypatch.setattr(file_checksums, "MAX_CHECKED_BYTES", len(content))
    with pytest.raises(IndexingError, match="arrays differs"):
        Matcher.open(copy)


NAMES = ["..", ".", "../elsewhere", "/etc", "a/b", "", "a\n", "..x", "a\0", "segment-1/../../x"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("field", ["folder", "deleted_file", "checksums", "router"])
def test_names_that_leave_the_folder(copy: Path, field: str, name: str) -> None:
    manifest = json.loads((copy / "manifest.json").read_bytes())
    (entry,) = manifest["segments"]
    if field == "router":
        manifest["router"] = name
    elif field == "checksums":
        entry["checksums"][name] = 0
    else:
        entry[field] = name
    write_manifest(copy / "manifest.json", manifest)
    with pytest.raises(IndexingError, match=r"manifest.json: Expected `str` matching regex"):
        Matcher.open(copy)


def test_a_manifest_without_a_checksum(copy: Path) -> None:
    manifest = json.loads((copy / "manifest.json").read_bytes())
    del manifest["segments"][0]["checksums"]["arrays"]
    write_manifest(copy / "manifest.json", manifest)
    with pytest.raises(IndexingError, match=r"has no checksum of segment-.*/arrays"):
        Matcher.open(copy)
    del manifest["crc32"]
    (copy / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(IndexingError, match=r"manifest.json differs from its checksum"):
        Matcher.open(copy)
