"""The kinds of checks, one entry each: what a check is in a filter, and what in arrays.

`KINDS` says of each kind where its column is stored, how a check becomes a row of `CHECK` and how
a row is a check again, and what tells how many events pass it. Which box it has is known where all
boxes are derived, in `kernels/index/check_boxes`; what its item refers to, and how it is decided,
is in `kernels/match/check_evaluation`. So a new kind is a class in `filters/checks`, a rule in
`filters/normal_form` that makes it, a code and a branch in `kernels/match/check_evaluation`, and an
entry here.
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

_ARRAYS = tuple(ArrayFunction)
_MASKS = {
    function: tuple(spatial_relations.relation_mask(function, d) for d in range(3))
    for function in SpatialFunction
}
_NO_PAIR: DoubleDouble = (0.0, 0.0)
_ARRAY_CODE = {function: code for code, function in enumerate(_ARRAYS)}


class CheckFields(NamedTuple):
    """A row of `CHECK`, but for its kind, its column, and whether it is negated."""

    low: DoubleDouble = _NO_PAIR
    high: DoubleDouble = _NO_PAIR
    item: int = 0
    flags: int = 0
    function: int = 0
    masks: tuple[int, ...] = (0, 0, 0)


class CheckWriter(Protocol):
    """Where checks are written to: sets, strings and geometries get numbers there."""

    columns: ColumnRegistry

    def add_set(self, keys: Sequence[bytes]) -> int: ...
    def add_string(self, key: bytes) -> int: ...
    def add_geometry(self, geometry: object) -> int: ...


class CheckReader(Protocol):
    """Where checks are read from."""

    def set_at(self, number: int) -> list[bytes]: ...
    def geometry_at(self, number: int) -> BaseGeometry: ...


class CheckKind(NamedTuple):
    """A kind of check.

    `decode` is None of a kind that subscriptions in columns cannot have: others are known by their
    expressions. `estimate` is None where a check finds no filter, or words do.
    """

    check: type
    code: int
    storage: Storage
    encode: Callable[[Any, CheckWriter], CheckFields]
    decode: Callable[[Any, Column, CheckReader], Check] | None = None
    estimate: Callable[[CheckEstimates], None] | None = None


def string_key(text: str) -> bytes:
    """How a string, a pattern or a word stands in a vocabulary."""
    return text.encode("utf-8", "surrogatepass")


def word_key(word: str) -> bytes:
    """How a word of a text stands in a vocabulary: as the string in a list that equals it."""
    return b"s" + word.encode("utf-8", "surrogatepass")


# ------------------------------------------------------------------------------- strings and values


def _null(check: NullCheck, writer: CheckWriter) -> CheckFields:
    return CheckFields()


def _boolean(check: BooleanCheck, writer: CheckWriter) -> CheckFields:
    flags = check.allows_false * check_evaluation.ALLOWS_FALSE
    return CheckFields(flags=flags | check.allows_true * check_evaluation.ALLOWS_TRUE)


def _boolean_again(row: np.void, column: Column, reader: CheckReader) -> Check:
    flags = int(row["flags"])
    return BooleanCheck(
        column,
        bool(flags & check_evaluation.ALLOWS_FALSE),
        bool(flags & check_evaluation.ALLOWS_TRUE),
    )


def _range(check: RangeCheck, writer: CheckWriter) -> CheckFields:
    flags = (
        check.low_closed * check_evaluation.LOW_CLOSED
        | check.high_closed * check_evaluation.HIGH_CLOSED
    )
    return CheckFields(check.low, check.high, 0, flags)


def _range_again(row: np.void, column: Column, reader: CheckReader) -> Check:
    low, low_rest, high, high_rest = (
        float(row[name]) for name in ("low", "low_rest", "high", "high_rest")
    )
    closed = (
        bool(row["flags"] & bit)
        for bit in (check_evaluation.LOW_CLOSED, check_evaluation.HIGH_CLOSED)
    )
    return RangeCheck(column, (low, low_rest), (high, high_rest), *closed)


def _member(check: MemberCheck, writer: CheckWriter) -> CheckFields:
    return CheckFields(item=writer.add_set([string_key(text) for text in check.strings]))


def _member_again(row: np.void, column: Column, reader: CheckReader) -> Check:
    keys = reader.set_at(int(row["item"]))
    return MemberCheck(column, tuple(key.decode("utf-8", "surrogatepass") for key in keys))


def _order(check: OrderCheck, writer: CheckWriter) -> CheckFields:
    flags = (check.op in (ComparisonOp.LT, ComparisonOp.LE)) * check_evaluation.LESS
    flags |= (check.op in (ComparisonOp.LE, ComparisonOp.GE)) * check_evaluation.OR_EQUAL
    return CheckFields(item=writer.add_string(string_key(check.bound)), flags=flags)


def _like(check: LikeCheck, writer: CheckWriter) -> CheckFields:
    return CheckFields(item=writer.add_string(compile_pattern(check.pattern)))


# ------------------------------------------------------------------------------------------- lists


def _list(check: ListCheck, writer: CheckWriter) -> CheckFields:
    """A check owns two sets: the items as they are, and after it their words."""
    item = writer.add_set([literal_key(one) for one in check.items.items])
    strings = [one.value for one in check.items.items if isinstance(one, String)]
    writer.add_set([word_key(word) for word in writer.columns.tokenizer.keywords(strings)])
    flags = (len(strings) == len(check.items.items)) * check_evaluation.TOKENS
    return CheckFields(item=item, flags=flags, function=_ARRAY_CODE[check.function])


def _list_again(row: np.void, column: Column, reader: CheckReader) -> Check:
    """Of a list of strings, which is all that columns can have."""
    keys = sorted(reader.set_at(int(row["item"])))
    items = ListLiteral(tuple(String(key[1:].decode("utf-8", "surrogatepass")) for key in keys))
    return ListCheck(column, _ARRAYS[row["function"]], items)


# -------------------------------------------------------------------------------------- geometries


def _relate(check: RelateCheck, writer: CheckWriter) -> CheckFields:
    masks = _MASKS[check.function]
    item = writer.add_geometry(check.geometry.value)
    return CheckFields(
        _NO_PAIR, _NO_PAIR, item, 0, spatial_relations.FUNCTION_CODES[check.function], masks
    )


def _relate_again(row: np.void, column: Column, reader: CheckReader) -> Check:
    geometry = Geometry(reader.geometry_at(int(row["item"])))
    return RelateCheck(column, spatial_relations.FUNCTIONS_BY_CODE[row["function"]], geometry)


def near_function_code(measure: Measure, space: Space) -> int:
    """What stands for a distance in a check: which one, and how it is measured."""
    return measure.value | (check_evaluation.ON_WGS84 if space is Space.WGS84 else 0)


def decode_near_function(row: np.void) -> tuple[NearFunction, Space]:
    """The bound of a check again, as a function of the language, and how it is measured."""
    function = near_function_of(_bound_of(row))
    assert function is not None
    return function, Space.WGS84 if row["function"] & check_evaluation.ON_WGS84 else Space.PLANAR


def _bound_of(row: np.void) -> DistanceBound:
    measure = Measure(int(row["function"]) & ~check_evaluation.ON_WGS84)
    return DistanceBound(measure, bool(row["flags"] & check_evaluation.STRICT))


def _near(check: NearCheck, writer: CheckWriter) -> CheckFields:
    """`strict` is for those who decide a distance that is just the bound: kernels are not sure."""
    item, flags = writer.add_geometry(check.geometry.value), check.strict * check_evaluation.STRICT
    function = near_function_code(check.measure, writer.columns.space)
    return CheckFields((check.distance, 0.0), _NO_PAIR, item, flags, function)


def _near_again(row: np.void, column: Column, reader: CheckReader) -> Check:
    bound, geometry = _bound_of(row), Geometry(reader.geometry_at(int(row["item"])))
    return NearCheck(column, bound.measure, bound.strict, geometry, float(row["low"]))


# ----------------------------------------------------------------------------------------- entries

KINDS = (
    CheckKind(
        NullCheck,
        check_evaluation.NULL,
        Storage.MISSING,
        _null,
        None,
        selectivity.estimate_boolean_checks,
    ),
    CheckKind(
        BooleanCheck,
        check_evaluation.BOOLEAN,
        Storage.TRUTH,
        _boolean,
        _boolean_again,
        selectivity.estimate_boolean_checks,
    ),
    CheckKind(
        RangeCheck,
        check_evaluation.RANGE,
        Storage.NUMBER,
        _range,
        _range_again,
        selectivity.estimate_interval_checks,
    ),
    CheckKind(
        MemberCheck,
        check_evaluation.MEMBER,
        Storage.STRING,
        _member,
        _member_again,
        selectivity.estimate_string_checks,
    ),
    CheckKind(ListCheck, check_evaluation.LIST, Storage.LIST, _list, _list_again),
    CheckKind(
        OrderCheck,
        check_evaluation.ORDER,
        Storage.STRING,
        _order,
        None,
        selectivity.estimate_interval_checks,
    ),
    CheckKind(
        LikeCheck,
        check_evaluation.LIKE,
        Storage.STRING,
        _like,
        None,
        selectivity.estimate_interval_checks,
    ),
    CheckKind(
        RelateCheck,
        check_evaluation.RELATE,
        Storage.GEOMETRY,
        _relate,
        _relate_again,
        selectivity.estimate_spatial_checks,
    ),
    CheckKind(
        NearCheck,
        check_evaluation.NEAR,
        Storage.GEOMETRY,
        _near,
        _near_again,
        selectivity.estimate_spatial_checks,
    ),
)
KIND_BY_TYPE = {kind.check: kind for kind in KINDS}
STORAGE_BY_CODE = tuple(kind.storage for kind in KINDS)  # by code
assert [kind.code for kind in KINDS] == list(range(len(check_evaluation.ITEM_OF)))
assert tuple(kind.check for kind in KINDS) == get_args(Check)
