"""A saved index, read as docs/format.md specifies: `SavedIndex` shares no code with the engine."""

from __future__ import annotations

import ast
import json
import math
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from fencepost.engine import Matcher
from fencepost.engine.storage.manifest import ArrayEntry, ColumnEntry, Manifest, SegmentEntry
from fencepost.errors import IndexingError
from fencepost.kernels.geometry.shape_arrays import CHAIN_DTYPE, SHAPE_DTYPE
from fencepost.kernels.match.check_evaluation import CHECK
from fencepost.kernels.match.segment_search import SegmentArrays
from tests.engine.manifests import write_manifest

RANGE, MEMBER, RELATE = 2, 3, 7
NOT_DELETED = 2**32 - 1
NEVER = 2**63 - 1


class Check(NamedTuple):
    """The fields of the 48 bytes of a check, without padding."""

    low: float
    low_rest: float
    high: float
    high_rest: float
    column: int
    item: int
    kind: int
    flags: int
    function: int
    points_mask: int
    lines_mask: int
    areas_mask: int


class SavedIndex:
    """An index with one segment."""

    def __init__(self, folder: Path) -> None:
        self.manifest = json.loads((folder / "manifest.json").read_bytes())
        (self.entry,) = self.manifest["segments"]
        segment = folder / self.entry["folder"]
        self.bytes = (segment / "arrays").read_bytes()
        assert len(self.bytes) == self.entry["arrays_bytes"]
        with pa.OSFile(str(segment / "names.arrow")) as file:
            self.names = pa.ipc.open_file(file).read_all()
        self.is_deleted = [version == 0 for version in read_npy(segment / "deleted_version.npy")]
        stop = 0
        for entry in self.entry["arrays"].values():
            assert entry["start"] % 64 == 0
            assert not any(self.bytes[stop : entry["start"]])
            stop = entry["start"] + int(np.prod(entry["shape"])) * itemsize(entry["dtype"])
        assert stop == len(self.bytes)

    def array(self, name: str) -> NDArray[Any]:
        entry = self.entry["arrays"][name]
        count = int(np.prod(entry["shape"]))
        array = np.frombuffer(self.bytes, entry["dtype"], count, entry["start"])
        return array.reshape(entry["shape"])

    def records(self, name: str, layout: str) -> list[tuple[Any, ...]]:
        entry = self.entry["arrays"][name]
        size = struct.calcsize(layout)
        assert size == itemsize(entry["dtype"])
        return [
            struct.unpack_from(layout, self.bytes, entry["start"] + k * size)
            for k in range(entry["shape"][0])
        ]

    def checks_of(self, subscription: int) -> list[list[Check]]:
        """Return the checks of each filter of a subscription."""
        checks = [Check(*fields) for fields in self.records("checks", "<4d2I6B2x")]
        start = self.array("filter_check").tolist()
        owners = self.array("filter_subscription").tolist()
        return [
            checks[start[f] : start[f + 1]]
            for f, owner in enumerate(owners)
            if owner == subscription
        ]

    def words(self, number: int) -> list[str]:
        """Return the words of a set."""
        text = self.array("vocabulary.bytes").tobytes()
        start, sets = self.array("vocabulary.start"), self.array("set_start")
        items = self.array("set_items")[sets[number] : sets[number + 1]]
        return [text[start[w] : start[w + 1]].decode() for w in items.tolist()]

    def box(self, shape: int) -> tuple[float, ...]:
        return self.records("shapes.shapes", "<4d3Ii")[shape][:4]

    def property(self, storage: str, column: int) -> str:
        order = ["NUMBER", "TRUTH", "MISSING", "STRING", "GEOMETRY", "LIST"]
        name: str = self.manifest["columns"][order.index(storage)][column]["property"]
        return name

    def term(self, check: Check) -> tuple[str, tuple[Any, ...]]:
        """Return the attribute of a check, and the values that it must have."""
        assert not check.flags & 1
        if check.kind == RANGE:
            bounds = check.low + check.low_rest, check.high + check.high_rest
            return self.property("NUMBER", check.column), (*bounds, check.flags & 6)
        if check.kind == MEMBER:
            return self.property("STRING", check.column), tuple(self.words(check.item))
        assert check.kind == RELATE
        return self.property("GEOMETRY", check.column), self.box(check.item)


def itemsize(dtype: str | list[list[str]]) -> int:
    return int(dtype[2:]) if isinstance(dtype, str) else sum(itemsize(field) for _, field in dtype)


def read_npy(path: Path) -> list[int]:
    """Read an array in NumPy's file format 1.0."""
    content = path.read_bytes()
    assert content[:8] == b"\x93NUMPY\x01\x00"
    (size,) = struct.unpack_from("<H", content, 8)
    header = ast.literal_eval(content[10 : 10 + size].decode())
    assert header["descr"] == "<u4"
    return list(struct.unpack_from(f"<{header['shape'][0]}I", content, 10 + size))


def save(matcher: Matcher, folder: Path) -> SavedIndex:
    matcher.compact()
    matcher.save(folder)
    return SavedIndex(folder)


def test_ids_boxes_and_an_expression(tmp_path: Path) -> None:
    boxes = np.array([[k, 2 * k, k + 3.5, 2 * k + 1.25] for k in range(20)])
    kinds = ["rain", "hail", None, "snow"] * 5
    matcher = Matcher(stop_words=["the"], space="planar")
    matcher.subscribe_columns(
        [f"s{k}" for k in range(20)],
        regions={"place": (boxes, "S_INTERSECTS")},
        equals={"kind": kinds},
    )
    text = "temperature BETWEEN 2.5 AND 40 AND kind IN ('hail', 'snow')"
    matcher.subscribe("text", text, subscriber="me", expires="2100-01-01T00:00:00Z")
    matcher.compact()
    assert matcher.unsubscribe("s7")
    matcher.save(tmp_path / "index")
    read = SavedIndex(tmp_path / "index")
    assert read.manifest["format"] == 12
    assert (read.manifest["space"], read.manifest["stop_words"]) == ("planar", ["the"])
    ids = read.names["id"].to_pylist()
    assert sorted(ids) == sorted([*(f"s{k}" for k in range(20)), "text"])
    assert len(ids) == read.entry["subscriptions"]
    assert [id for id, deleted in zip(ids, read.is_deleted, strict=True) if deleted] == ["s7"]
    assert read.names.column_names == read.entry["names"]
    for row, id in enumerate(ids):
        (checks,) = read.checks_of(row)
        terms = [read.term(check) for check in checks]
        if id == "text":
            assert sorted(term for term in terms if term[0] == "temperature") == [
                ("temperature", (-math.inf, 40.0, 6)),
                ("temperature", (2.5, math.inf, 6)),
            ]
            (strings,) = (values for name, values in terms if name == "kind")
            assert sorted(strings) == ["hail", "snow"]
            assert read.names["expression"][row].as_py() == text
            assert read.names["subscriber"][row].as_py() == "me"
            assert read.array("expires")[row] == 4_102_444_800 * 10**9
        else:
            number = int(id[1:])
            kind_terms = [] if kinds[number] is None else [("kind", (kinds[number],))]
            assert sorted(terms) == [*kind_terms, ("place", tuple(boxes[number].tolist()))]
            assert read.array("expires")[row] == NEVER


def test_filters_stored_as_postings_only(tmp_path: Path) -> None:
    boxes = np.array([[k, -k, k + 1, 1 - k] for k in range(1, 6)], float)
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(
        list("abcde"),
        regions={"place": (boxes, "S_INTERSECTS")},
        keywords={"words": [[f"w{k}"] for k in range(5)]},
    )
    read = save(matcher, tmp_path / "index")
    assert read.entry["arrays"]["checks"]["shape"] == [0]
    owners = read.array("postings.owner").tolist()
    exact = dict(zip(owners, read.array("postings.exact").tolist(), strict=True))
    ids = read.names["id"].to_pylist()
    assert {ids[row]: box for row, box in exact.items()} == dict(
        zip("abcde", boxes.tolist(), strict=True)
    )


DAMAGE: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown field": ({"flavour": 1}, r"unknown field `flavour`"),
    "another type": ({"stop_words": 5}, r"Expected `array`, got `int` - at `\$.stop_words`"),
    "another space": ({"space": "moon"}, r"'moon' - at `\$.space`"),
    "version 0": ({"version": 0}, r"\$.version"),
    "a path": ({"router": "../other"}, r"\$.router"),
    "a kind": (
        {"columns": [[{"kind": "X", "property": "n"}]]},
        r"'X' - at `\$.columns\[0\]\[0\].kind`",
    ),
    "another format": ({"format": 9}, "has format 9 .*this version reads 12"),
    "a segment without a folder": (
        {"segments": [{"subscriptions": 1}]},
        r"required field `folder` - at `\$.segments",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_errors_name_the_file_the_field_and_the_remedy(name: str, tmp_path: Path) -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("a", "n > 0")
    matcher.save(tmp_path)
    path = tmp_path / "manifest.json"
    fields, message = DAMAGE[name]
    write_manifest(path, {**json.loads(path.read_bytes()), **fields})
    with pytest.raises(IndexingError, match=message) as raised:
        Matcher.open(tmp_path)
    assert str(tmp_path) in str(raised.value)
    assert "manifest.json" in str(raised.value)
    assert "build it again" in str(raised.value)


def test_the_document_names_every_field_and_array() -> None:
    document = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
    for struct_type in (Manifest, SegmentEntry, ArrayEntry, ColumnEntry):
        for field in struct_type.__struct_fields__:
            assert f"`{field}`" in document, field
    for name in SegmentArrays._fields:
        assert f"`{name}`" in document or f"`{name}." in document or name == "deleted_version", name
    for dtype in (CHECK, SHAPE_DTYPE, CHAIN_DTYPE):
        assert dtype.names is not None
        assert f"{dtype.itemsize} bytes" in document
        for field in dtype.names:
            assert f"`{field}`" in document, field
