"""`KINDS`: how each kind of check is encoded as a row of `CHECK`, decoded, and estimated.

An entry also names the array of events that holds the column of the check. Bounding boxes of checks
are derived in `kernels/index/check_boxes`. What the item of a row refers to, and how a row is
evaluated, is in `kernels/match/check_evaluation`.

To add a kind, add a class to `filters/checks`, a rule that makes it to `filters/normal_form`, a
code and a branch to `kernels/match/check_evaluation`, and an entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, get_args

import numpy as np
from shapely.geometry.base import BaseGeometry

from fencepost.cql2.ast import (
    ArrayFunction,
    ComparisonOp,
    Geometry,
    ListLiteral,
    NearFunction,
    SpatialFunction,
    String,
)
from fencepost.engine import selectivity
from fencepost.engine.columns.column_registry import ColumnRegistry, Storage
from fencepost.engine.selectivity import CheckEstimates
from fencepost.events.value_types import DoubleDouble
from fencepost.filters import spatial_relations
from fencepost.filters.checks import (
    BooleanCheck,
    Check,
    Column,
    DistanceBound,
    LikeCheck,
    ListCheck,
    Measure,
    MemberCheck,
    NearCheck,
    NullCheck,
    OrderCheck,
    RangeCheck,
    RelateCheck,
    near_function_of,
)
from fencepost.filters.evaluation import literal_key
from fencepost.geometry.space import Space
from fencepost.kernels.match import check_evaluation
from fencepost.kernels.text.like import compile_pattern

_ARRAY_FUNCTIONS = tuple(ArrayFunction)
_MASKS = {
    function: tuple(spatial_relations.relation_mask(function, d) for d in range(3))
    for function in SpatialFunction
}
_NO_PAIR: DoubleDouble = (0.0, 0.0)
_ARRAY_FUNCTION_CODES = {function: code for code, function in enumerate(_ARRAY_FUNCTIONS)}


class CheckFields(NamedTuple):
    """The fields of a row of `CHECK`, without its kind, its column and its negation."""

    low: DoubleDouble = _NO_PAIR
    high: DoubleDouble = _NO_PAIR
    item: int = 0
    flags: int = 0
    function: int = 0
    masks: tuple[int, ...] = (0, 0, 0)


class CheckWriter(Protocol):
    """Numbers the sets, strings and geometries of checks that are being encoded."""

    columns: ColumnRegistry

    def add_set(self, keys: Sequence[bytes]) -> int: ...
    def add_string(self, key: bytes) -> int: ...
    def add_geometry(self, geometry: object) -> int: ...


class CheckReader(Protocol):
    """Returns the strings, sets and geometries of checks that are being decoded."""

    def string_at(self, number: int) -> bytes: ...
    def set_at(self, number: int) -> list[bytes]: ...
    def geometry_at(self, number: int) -> BaseGeometry: ...


class CheckKind(NamedTuple):
    """A kind of check.

    Attributes
    ----------
    check : type
        The class of `filters.checks`.
    code : int
        `kind` in a row of `CHECK`.
    storage : Storage
    encode : callable
    decode : callable, optional
        Left out for a kind that only expressions can have: these are stored as text.
    estimate : callable, optional
        Estimates the selectivity of checks. Left out for lists: the posting passes estimate words.
    """

    check: type
    code: int
    storage: Storage
    encode: Callable[[Any, CheckWriter], CheckFields]
    decode: Callable[[Any, Column, CheckReader], Check] | None = None
    estimate: Callable[[CheckEstimates], None] | None = None


def string_key(text: str) -> bytes:
    """Return the vocabulary key of a string."""
    return text.encode("utf-8", "surrogatepass")


def word_key(word: str) -> bytes:
    """Return the vocabulary key of a word of a text; an equal string in a list has it, too."""
    return b"s" + word.encode("utf-8", "surrogatepass")


# ------------------------------------------------------------------------------- strings and values


def _encode_null(check: NullCheck, writer: CheckWriter) -> CheckFields:
    return CheckFields()


def _decode_null(row: np.void, column: Column, reader: CheckReader) -> Check:
    return NullCheck(column)


def _encode_boolean(check: BooleanCheck, writer: CheckWriter) -> CheckFields:
    flags = check.allows_false * check_evaluation.ALLOWS_FALSE
    return CheckFields(flags=flags | check.allows_true * check_evaluation.ALLOWS_TRUE)


def _decode_boolean(row: np.void, column: Column, reader: CheckReader) -> Check:
    flags = int(row["flags"])
    return BooleanCheck(
        column,
        bool(flags & check_evaluation.ALLOWS_FALSE),
        bool(flags & check_evaluation.ALLOWS_TRUE),
    )


def _encode_range(check: RangeCheck, writer: CheckWriter) -> CheckFields:
    flags = (
        check.low_closed * check_evaluation.LOW_CLOSED
        | check.high_closed * check_evaluation.HIGH_CLOSED
    )
    return CheckFields(check.low, check.high, 0, flags)


def _decode_range(row: np.void, column: Column, reader: CheckReader) -> Check:
    low, low_rest, high, high_rest = (
        float(row[name]) for name in ("low", "low_rest", "high", "high_rest")
    )
    closed = (
        bool(row["flags"] & bit)
        for bit in (check_evaluation.LOW_CLOSED, check_evaluation.HIGH_CLOSED)
    )
    return RangeCheck(column, (low, low_rest), (high, high_rest), *closed)


def _encode_member(check: MemberCheck, writer: CheckWriter) -> CheckFields:
    return CheckFields(item=writer.add_set([string_key(text) for text in check.strings]))


def _decode_member(row: np.void, column: Column, reader: CheckReader) -> Check:
    keys = reader.set_at(int(row["item"]))
    return MemberCheck(column, tuple(key.decode("utf-8", "surrogatepass") for key in keys))


def _encode_order(check: OrderCheck, writer: CheckWriter) -> CheckFields:
    flags = (check.op in (ComparisonOp.LT, ComparisonOp.LE)) * check_evaluation.LESS
    flags |= (check.op in (ComparisonOp.LE, ComparisonOp.GE)) * check_evaluation.OR_EQUAL
    return CheckFields(item=writer.add_string(string_key(check.bound)), flags=flags)


def _decode_order(row: np.void, column: Column, reader: CheckReader) -> Check:
    less, or_equal = (
        bool(row["flags"] & bit) for bit in (check_evaluation.LESS, check_evaluation.OR_EQUAL)
    )
    op = {
        (True, False): ComparisonOp.LT,
        (True, True): ComparisonOp.LE,
        (False, False): ComparisonOp.GT,
        (False, True): ComparisonOp.GE,
    }[less, or_equal]
    bound = reader.string_at(int(row["item"])).decode("utf-8", "surrogatepass")
    return OrderCheck(column, op, bound)


def _encode_like(check: LikeCheck, writer: CheckWriter) -> CheckFields:
    return CheckFields(item=writer.add_string(compile_pattern(check.pattern)))


# ------------------------------------------------------------------------------------------- lists


def _encode_list(check: ListCheck, writer: CheckWriter) -> CheckFields:
    """Encode a check of a list. It has two sets: its items and, in the next set, their words."""
    item = writer.add_set([literal_key(literal) for literal in check.items.items])
    strings = [literal.value for literal in check.items.items if isinstance(literal, String)]
    writer.add_set([word_key(word) for word in writer.columns.tokenizer.keywords(strings)])
    flags = (len(strings) == len(check.items.items)) * check_evaluation.TOKENS
    return CheckFields(item=item, flags=flags, function=_ARRAY_FUNCTION_CODES[check.function])


def _decode_list(row: np.void, column: Column, reader: CheckReader) -> Check:
    """Decode a check of a list of strings: subscriptions added as columns have no other items."""
    keys = sorted(reader.set_at(int(row["item"])))
    items = ListLiteral(tuple(String(key[1:].decode("utf-8", "surrogatepass")) for key in keys))
    return ListCheck(column, _ARRAY_FUNCTIONS[row["function"]], items)


# -------------------------------------------------------------------------------------- geometries


def _encode_relate(check: RelateCheck, writer: CheckWriter) -> CheckFields:
    masks = _MASKS[check.function]
    item = writer.add_geometry(check.geometry.value)
    return CheckFields(
        _NO_PAIR, _NO_PAIR, item, 0, spatial_relations.FUNCTION_CODES[check.function], masks
    )


def _decode_relate(row: np.void, column: Column, reader: CheckReader) -> Check:
    geometry = Geometry(reader.geometry_at(int(row["item"])))
    return RelateCheck(column, spatial_relations.FUNCTIONS_BY_CODE[row["function"]], geometry)


def near_function_code(measure: Measure, space: Space) -> int:
    """Return the `function` of a row: which distance it bounds, and in which space."""
    return measure.value | (check_evaluation.ON_WGS84 if space is Space.WGS84 else 0)


def decode_near_function(row: np.void) -> tuple[NearFunction, Space]:
    """Return the function of the language that a distance check stands for, and its space."""
    function = near_function_of(_bound_of(row))
    assert function is not None
    return function, Space.WGS84 if row["function"] & check_evaluation.ON_WGS84 else Space.PLANAR


def _bound_of(row: np.void) -> DistanceBound:
    measure = Measure(int(row["function"]) & ~check_evaluation.ON_WGS84)
    return DistanceBound(measure, bool(row["flags"] & check_evaluation.STRICT))


def _encode_near(check: NearCheck, writer: CheckWriter) -> CheckFields:
    """Encode a distance check.

    Above distance 0, only the exact evaluation reads `STRICT`: kernels leave a distance that is
    very close to its bound undecided.
    """
    item, flags = writer.add_geometry(check.geometry.value), check.strict * check_evaluation.STRICT
    function = near_function_code(check.measure, writer.columns.space)
    return CheckFields((check.distance, 0.0), _NO_PAIR, item, flags, function)


def _decode_near(row: np.void, column: Column, reader: CheckReader) -> Check:
    bound, geometry = _bound_of(row), Geometry(reader.geometry_at(int(row["item"])))
    return NearCheck(column, bound.measure, bound.strict, geometry, float(row["low"]))


# ----------------------------------------------------------------------------------------- entries

KINDS = (
    CheckKind(
        NullCheck,
        check_evaluation.NULL,
        Storage.MISSING,
        _encode_null,
        _decode_null,
        selectivity.estimate_boolean_checks,
    ),
    CheckKind(
        BooleanCheck,
        check_evaluation.BOOLEAN,
        Storage.TRUTH,
        _encode_boolean,
        _decode_boolean,
        selectivity.estimate_boolean_checks,
    ),
    CheckKind(
        RangeCheck,
        check_evaluation.RANGE,
        Storage.NUMBER,
        _encode_range,
        _decode_range,
        selectivity.estimate_interval_checks,
    ),
    CheckKind(
        MemberCheck,
        check_evaluation.MEMBER,
        Storage.STRING,
        _encode_member,
        _decode_member,
        selectivity.estimate_string_checks,
    ),
    CheckKind(ListCheck, check_evaluation.LIST, Storage.LIST, _encode_list, _decode_list),
    CheckKind(
        OrderCheck,
        check_evaluation.ORDER,
        Storage.STRING,
        _encode_order,
        _decode_order,
        selectivity.estimate_interval_checks,
    ),
    CheckKind(
        LikeCheck,
        check_evaluation.LIKE,
        Storage.STRING,
        _encode_like,
        None,
        selectivity.estimate_interval_checks,
    ),
    CheckKind(
        RelateCheck,
        check_evaluation.RELATE,
        Storage.GEOMETRY,
        _encode_relate,
        _decode_relate,
        selectivity.estimate_spatial_checks,
    ),
    CheckKind(
        NearCheck,
        check_evaluation.NEAR,
        Storage.GEOMETRY,
        _encode_near,
        _decode_near,
        selectivity.estimate_spatial_checks,
    ),
)
KIND_BY_TYPE = {kind.check: kind for kind in KINDS}
STORAGE_BY_CODE = tuple(kind.storage for kind in KINDS)
assert [kind.code for kind in KINDS] == list(range(len(check_evaluation.ITEM_OF)))
assert tuple(kind.check for kind in KINDS) == get_args(Check)


def can_decode(check: Check) -> bool:
    """Return whether a check can be decoded from its row: decoding knows lists of strings only."""
    if isinstance(check, ListCheck):
        return all(isinstance(item, String) for item in check.items.items)
    return KIND_BY_TYPE[type(check)].decode is not None
