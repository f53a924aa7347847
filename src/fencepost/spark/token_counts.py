"""How many rows have each token, in all or by place: `token_statistics`, a job on Spark.

Rows are texts, lists of keywords, or subscriptions in CQL2 that ask for keywords; tokens are those
of the matcher's own tokeniser. Each batch is counted by itself, and Spark adds the counts up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.index.event_lists import is_text, lists_of
from fencepost.language.ast import Array, Property, String
from fencepost.match.simplify_many import read_subscriptions
from fencepost.model.arrow_text import readable
from fencepost.model.space import Space
from fencepost.model.tokens import Tokeniser
from fencepost.plan.checks import Filter, ListCheck
from fencepost.plan.covering.predicates import boxes_of
from fencepost.spark.matching import plainly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Tokens = tuple[Ints, pa.Array]  # rows, and tokens of theirs, each once
_TEXT, _PLACE = "text", "place"
_CELLS = ("cell_x", "cell_y")


def token_statistics(
    rows: DataFrame,
    column: str,
    *,
    attribute: str | None = None,
    place: str | None = None,
    cell: float | None = None,
    stop_words: Iterable[str] = (),
) -> DataFrame:
    """How many rows have each token: its document frequency, df.

    Parameters
    ----------
    rows : DataFrame
    column : str
        Of texts or of lists of strings; or, with `attribute`, of expressions in CQL2.
    attribute : str, optional
        Which attribute the expressions ask about: counted are the tokens of the keywords that they
        ask it to contain.
    place : str, optional
        A column of geometries, WKB or WKT. With `attribute` and `cell` it may be left out: then an
        expression lies where the areas lie that it names.
    cell : float, optional
        The side of a cell: df is counted for each cell of a grid, by the middles of rows' boxes.
    stop_words : iterable of str
        Words whose tokens are not counted.

    Returns
    -------
    DataFrame
        `token` and `df`; with `cell` before them `cell_x` and `cell_y`, whole numbers of cells,
        both null for rows that lie nowhere. Rows that cannot be read have no tokens.
    """
    if cell is not None and not (np.isfinite(cell) and cell > 0):
        raise ModelError(f"cell must be a length greater than 0; saw {cell!r:.40}")
    if (cell is None and place is not None) or (cell is not None and place is attribute is None):
        raise ModelError("counts by place need both: place=, a column, and cell=, a length")
    used = [column] if place is None else [column, place]
    missing = [name for name in used if name not in rows.columns]
    if missing:
        raise ModelError(
            f"the rows have no column {missing[0]!r}; they have: {', '.join(rows.columns)}"
        )
    from pyspark.sql import functions as F

    keys = ("token",) if cell is None else (*_CELLS, "token")
    schema = (
        "token string, df long"
        if cell is None
        else "cell_x long, cell_y long, token string, df long"
    )
    count = _Count(attribute, place is not None, cell, Tokeniser.without(stop_words))
    counted = plainly(rows, used).mapInArrow(count, schema)
    return counted.groupBy(*keys).agg(F.sum("df").alias("df"))


@dataclass(frozen=True, slots=True)
class _Count:
    """Batches of texts, and where asked for places, to counts."""

    attribute: str | None
    has_place: bool
    cell: float | None
    tokeniser: Tokeniser

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [_TEXT, _PLACE] if self.has_place else [_TEXT]
        for batch in batches:
            _, table, _ = readable(pa.Table.from_batches([batch]).rename_columns(names), names)
            yield from self._counts(table).to_batches()

    def _counts(self, table: pa.Table) -> pa.Table:
        texts = table.column(_TEXT).combine_chunks()
        middles = _middles(table.column(_PLACE)) if self.has_place else None
        if self.attribute is None:
            rows, tokens = tokens_of(texts, self.tokeniser)
        else:
            (rows, tokens), own = asked_tokens(texts, self.attribute, self.tokeniser)
            middles = own if middles is None else middles
        columns: dict[str, Any] = {}
        if self.cell is not None and middles is not None:
            number = np.floor(middles / self.cell)
            # Beyond that a number has no whole part that tells cells apart.
            known = (np.abs(number) < 2**53).all(axis=1)
            for name, side in zip(_CELLS, number.T, strict=True):
                cells = np.where(known, side, 0).astype(np.int64)
                columns[name] = pa.array(cells, mask=~known).take(pa.array(rows))
        columns["token"] = tokens
        found = pa.table(columns).group_by(list(columns)).aggregate([([], "count_all")])
        return found.rename_columns([*columns, "df"])


def tokens_of(texts: pa.Array, tokeniser: Tokeniser) -> Tokens:
    """The tokens of texts, or of lists of keywords."""
    if not is_text(texts.type):
        if not (pa.types.is_list(texts.type) and is_text(texts.type.value_type)):
            raise ModelError(
                f"tokens are counted in strings and lists of strings; saw {texts.type}"
            )
        texts = pc.binary_join(_without_nulls(texts), " ")
    found = lists_of(texts, tokeniser)
    assert found is not None
    buffers = [None, pa.py_buffer(found.item_start.astype(np.int64)), pa.py_buffer(found.text)]
    keys = pa.Array.from_buffers(pa.large_string(), len(found.item_start) - 1, buffers)
    rows = np.repeat(np.arange(len(texts)), found.stop - found.start)
    return rows, pc.utf8_slice_codeunits(keys, 1).cast(pa.string())  # a key begins with its kind


def _without_nulls(lists: pa.Array) -> pa.Array:
    """Lists whose strings are all there."""
    if not lists.flatten().null_count:
        return lists
    filled = [None if own is None else [text or "" for text in own] for own in lists.to_pylist()]
    return pa.array(filled, lists.type)


def asked_tokens(
    expressions: pa.Array, attribute: str, tokeniser: Tokeniser
) -> tuple[Tokens, Floats]:
    """The tokens that expressions ask an attribute to contain, and the middles of their areas."""
    numbers = [str(row) for row in range(len(expressions))]
    table = pa.table({"id": numbers, "expression": expressions})
    read = read_subscriptions(table, [], Space.PLANAR, tokeniser)
    asked = [(own.row, _keywords(own.filters, attribute, tokeniser)) for own in read]
    rows = np.repeat([row for row, _ in asked], [len(own) for _, own in asked]).astype(np.int64)
    tokens = pa.array([token for _, own in asked for token in own], pa.string())
    middles = np.full((len(expressions), 2), np.nan)
    boxes = boxes_of([own.filters for own in read])[1]
    boxes[~np.isfinite(boxes).all(axis=1)] = np.nan
    middles[[own.row for own in read]] = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    return (rows, tokens), middles


def _keywords(filters: Iterable[Filter], attribute: str, tokeniser: Tokeniser) -> list[str]:
    source = Property(attribute)
    found: dict[str, None] = {}
    for term in (term for terms in filters for term in terms):
        check = term.check
        if (
            isinstance(check, ListCheck)
            and not term.negated
            and check.function is Array.A_CONTAINS
            and check.column.source == source
        ):
            texts = [item.value for item in check.items.items if isinstance(item, String)]
            found |= dict.fromkeys(tokeniser.keywords(texts))
    return list(found)


def _middles(places: pa.ChunkedArray) -> Floats:
    """The middles of geometries' boxes; not a number where there is none."""
    values = places.to_numpy(zero_copy_only=False)
    read = shapely.from_wkt if is_text(places.type) else shapely.from_wkb
    boxes = shapely.bounds(read(values, on_invalid="ignore"))
    found: Floats = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    return found
