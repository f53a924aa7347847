"""Texts of one form: the same but for their numbers, strings and points.

Whoever subscribes by program writes the same text again and again, with other literals. So the
first text of a form is read as any text is, and what is kept of it says where each literal goes; of
the next ones nothing is read but the literals. Tokens, precedence, names, types, and multiplying
out take most of the time otherwise.

A form is a plain conjunction of the commonest conditions: numbers, strings, lists of strings,
boxes, points, lines and polygons beside an attribute, and whatever has no literal. What a text
says can still depend on its literals: '2024-05-01' is a time too, 2**60 need not be a double, and a
box may have no area. Such a text, and all that is of no form, is for the reader of any text, which
also has the words for what is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import shapely

from fencepost.cql2.condition_builder import compile_condition
from fencepost.cql2.expression_limits import MAX_LENGTH
from fencepost.cql2.keywords import ARRAY_FUNCTIONS, NEAR_FUNCTIONS, SPATIAL_FUNCTIONS
from fencepost.cql2.lexer import DIGITS, split_literals
from fencepost.cql2.parse_tree import NodeKind, ParseNode, SemanticError
from fencepost.cql2.text_reader import read_text
from fencepost.errors import LanguageError
from fencepost.events.times import parse_instant
from fencepost.filters.checks import (
    BooleanCheck,
    Filter,
    ListCheck,
    MemberCheck,
    NearCheck,
    NullCheck,
    RangeCheck,
    RelateCheck,
    Term,
    cost_rank,
)
from fencepost.filters.normal_form import to_filters
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.raw_shapes import AREAS, LINES, POINTS
from fencepost.geometry.readers.single_geometry import (
    Outline,
    outline_arrays,
    raw_shapes_of_outlines,
)
from fencepost.geometry.space import Space
from fencepost.kernels.index.memtable_arrays import laid_out

MAX_TEMPLATES = 1024  # kept at a time
_MOST_LITERALS = 64
_LONGEST = 4096  # characters of a form
_EXACT = 2.0**53  # below it whole numbers are doubles
_LOWER, _UPPER = ("=", ">", ">="), ("=", "<", "<=")  # for which a number is the bound
_DIMENSIONS = {"Point": POINTS, "LineString": LINES, "Polygon": AREAS}


class _Shape(NamedTuple):
    """Where a geometry comes from: the literals of its chains, or four numbers of a box."""

    chains: tuple[int, ...]
    corners: int
    dimension: int


class _Said(NamedTuple):
    """A term, and what it compares with: constants (floats), or which of the numbers (ints)."""

    term: Term
    low: float | int = 0.0
    high: float | int = 0.0
    texts: tuple[int, ...] = ()  # literals
    shape: _Shape | None = None


class QueryTemplate:
    """What all texts of a form have in common.

    Attributes
    ----------
    terms : Filter
        Those of the first text, cheapest first: with its literals.
    is_plain : bool
        Whether geometries are boxes and points only, with which nothing can be wrong.
    kept : mapping
        What others worked out of it, by whom it is for.
    """

    __slots__ = (
        "_bounds",
        "_negative",
        "_numbers",
        "_places",
        "_shapes",
        "_texts",
        "is_plain",
        "kept",
        "terms",
    )

    def __init__(self, said: Sequence[_Said], numbers: Sequence[tuple[int, bool]]) -> None:
        said = sorted(said, key=lambda one: cost_rank(one.term))
        self.terms: Filter = tuple(one.term for one in said)
        self._numbers = [literal for literal, _ in numbers]
        self._negative = [k for k, (_, negative) in enumerate(numbers) if negative]
        ends = [end for one in said for end in (one.low, one.high)]
        self._bounds = [end if isinstance(end, float) else 0.0 for end in ends]
        self._places = [(place, k) for place, k in enumerate(ends) if isinstance(k, int)]
        self._texts = [
            (one.texts, isinstance(one.term.check, MemberCheck)) for one in said if one.texts
        ]
        self._shapes = [one.shape for one in said if one.shape is not None]
        self.kept: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self.is_plain = all(not s.chains or s.dimension == POINTS for s in self._shapes)

    def bind(self, literals: Sequence[str], space: Space) -> BoundTemplate | None:
        """What a text of this form asks; None where that depends on more than the form."""
        numbers = [float(literals[k]) for k in self._numbers]
        if numbers and max(numbers) >= _EXACT:
            return None
        for k in self._negative:
            if not numbers[k]:
                return None  # -0 is 0, and -0.0 is not
            numbers[k] = -numbers[k]
        bounds = self._bounds.copy()
        for place, k in self._places:
            bounds[place] = numbers[k]
        texts = []
        for own, compared in self._texts:
            said = [literals[k][1:-1].replace("''", "'") for k in own]
            if compared and any(map(parse_instant, said)):
                return None
            texts.append(tuple(said if len(said) == 1 else dict.fromkeys(said)))
        shapes = []
        for shape in self._shapes:
            outline = _outline(shape, numbers, literals)
            if outline is None or (space is not Space.PLANAR and _is_outside(outline, space)):
                return None
            shapes.append(outline)
        return BoundTemplate(self, tuple(bounds), tuple(texts), tuple(shapes))


class BoundTemplate:
    """What a text of a form asks.

    Attributes
    ----------
    form : QueryTemplate
    bounds : tuple of float
        Two for each of its terms: the ends of a range, or a distance and nothing.
    texts : tuple of tuple of str
        Of each term that compares with strings.
    shapes : tuple of Outline
        Of each term that compares with a geometry.
    laid_out
        Handle of the shapes as arrays, once `has_valid_shapes` looked at them.
    """

    __slots__ = ("bounds", "form", "laid_out", "shapes", "texts")

    def __init__(
        self,
        form: QueryTemplate,
        bounds: tuple[float, ...],
        texts: tuple[tuple[str, ...], ...],
        shapes: tuple[Outline, ...],
    ) -> None:
        self.template = form
        self.bounds = bounds
        self.texts = texts
        self.shapes = shapes
        self.laid_out: Any = None

    def has_valid_shapes(self) -> bool:
        """Whether the geometries are good, and easily seen to be."""
        if self.template.needs_no_validation:
            return True
        self.laid_out, usable = laid_out(*outline_arrays(self.shapes))
        return bool(usable)


def invalid_rows(given: Sequence[BoundTemplate | None]) -> set[int]:
    """Which of many have geometries that are not good; texts of no form are none of them."""
    shapes: list[Outline] = []
    owner: list[int] = []
    for k, one in enumerate(given):
        if one is not None and not one.template.needs_no_validation:
            shapes += one.shapes
            owner += [k] * len(one.shapes)
    if not shapes:
        return set()
    return {
        owner[problem.row] for problem in Shapes.lay_out(raw_shapes_of_outlines(shapes)).problems
    }


def _outline(shape: _Shape, numbers: list[float], literals: Sequence[str]) -> Outline | None:
    if not shape.chains:
        x0, y0, x1, y1 = numbers[shape.corners : shape.corners + 4]
        if x0 < x1 and y0 < y1:
            return (x0, y0, x1, y0, x1, y1, x0, y1, x0, y0), (5,), AREAS
        return None
    if len(shape.chains) == 1:
        xy = _points(literals[shape.chains[0]])
        sizes: tuple[int, ...] = (len(xy) // 2,)
    else:
        chains = [_points(literals[k]) for k in shape.chains]
        xy = tuple(number for own in chains for number in own)
        sizes = tuple(len(own) // 2 for own in chains)
    if shape.dimension == POINTS and len(xy) > 2:
        return None
    return xy, sizes, shape.dimension


def _points(written: str) -> tuple[float, ...]:
    return tuple(map(float, written[1:-1].replace(",", " ").split()))


def _is_outside(outline: Outline, space: Space) -> bool:
    most_x, most_y = space.limits
    xy, _, _ = outline
    x, y = xy[::2], xy[1::2]
    return max(x) > most_x or min(x) < -most_x or max(y) > most_y or min(y) < -most_y


# ------------------------------------------------------------------------------------ known forms

_ONCE = object()
known_templates: dict[tuple[str, ...], Any] = {}
"""By what a text has besides its literals: the form; None: no form, though a good text; or that
it was seen once, for the first may be the only one."""


def bind_text(text: str, space: Space) -> BoundTemplate | None:
    """What a text asks, if it is of a form; None of others, good or bad."""
    if '"' in text or len(text) > MAX_LENGTH or not _is_encodable(text):
        return None
    key, literals = split_literals(text)
    form = known_templates.get(key, known_templates)
    if form is known_templates or form is _ONCE:
        form = _learnt(text, key, literals, form is _ONCE)
    return None if form is None else form.bind(literals, space)


def _is_encodable(text: str) -> bool:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


def _learnt(
    text: str, key: tuple[str, ...], literals: Sequence[str], again: bool
) -> QueryTemplate | None:
    """The form of a text that comes again, if it is of one."""
    if not 0 < len(literals) <= _MOST_LITERALS or sum(map(len, key)) > _LONGEST:
        return None
    form: Any = _ONCE
    if again:
        try:
            form = _Reading(text, literals).form()
        except _NoForm:
            form = None
        except (LanguageError, SemanticError, RecursionError):
            return None
        if form is not None and not _says_the_same(form, literals):
            return None
    if len(known_templates) >= MAX_TEMPLATES:
        known_templates.clear()
    known_templates[key] = form
    return form if again else None


def _says_the_same(form: QueryTemplate, literals: Sequence[str]) -> bool:
    """Whether the form, filled with the literals of its first text, asks what that text asks."""
    own = form.bind(literals, Space.PLANAR)
    if own is None:
        return False
    texts, shapes = iter(own.texts), iter(own.shapes)
    for k, term in enumerate(form.terms):
        check, (low, high) = term.check, own.bounds[2 * k : 2 * k + 2]
        match check:
            case RangeCheck():
                same = (check.low, check.high) == ((low, 0.0), (high, 0.0))
            case MemberCheck():
                same = check.strings == next(texts)
            case ListCheck():
                items = tuple(getattr(item, "value", None) for item in check.items.items)
                same = items == next(texts)
            case RelateCheck() | NearCheck():
                xy = shapely.get_coordinates(check.geometry.value).ravel()
                same = tuple(xy.tolist()) == next(shapes)[0]
                same = same and low == (check.distance if isinstance(check, NearCheck) else 0.0)
            case _:
                same = isinstance(check, BooleanCheck | NullCheck)
        if not same:
            return False
    return True


class _NoForm(Exception):
    """That a text is good, but of no form."""


class _Reading:
    """The first text of a form: which literal goes where."""

    def __init__(self, text: str, literals: Sequence[str]) -> None:
        self._part, self._tokens = read_text(text)
        places = [k for k, written in enumerate(self._tokens.texts) if _is_literal(written)]
        if [self._tokens.texts[k] for k in places] != literals:
            raise _NoForm
        self._literal = {token: number for number, token in enumerate(places)}
        self._numbers: list[tuple[int, bool]] = []

    def form(self) -> QueryTemplate:
        """The form."""
        said = list(self._conjunction(self._part))
        whole = to_filters(compile_condition(self._part))
        if len(whole) != 1 or whole[0] != tuple(one.term for one in said):
            raise _NoForm  # one is said twice
        # Two of a kind could be equal in another text, and then are one.
        kinds = {_kind(one) for one in said}
        if len(kinds) < len(said):
            raise _NoForm
        return QueryTemplate(said, self._numbers)

    def _conjunction(self, part: ParseNode) -> Iterator[_Said]:
        if part.kind is NodeKind.CALL and part.value == "and":
            for arg in part.args:
                yield from self._conjunction(arg)
            return
        normal = to_filters(compile_condition(part))
        if len(normal) != 1:
            raise _NoForm
        terms = normal[0]
        if not any(token in self._literal for token in range(part.first, part.last + 1)):
            if not all(isinstance(term.check, BooleanCheck | NullCheck) for term in terms):
                raise _NoForm
            yield from map(_Said, terms)
        else:
            yield from self._condition(part, terms)

    def _condition(self, part: ParseNode, terms: Filter) -> Iterator[_Said]:
        name, args = part.value, part.args
        kinds = tuple(arg.kind for arg in args)
        match kinds:
            case (NodeKind.PROPERTY, NodeKind.NUMBER) if name in _LOWER or name in _UPPER:
                number = self._number(args[1])
                low = number if name in _LOWER else -inf
                yield _Said(terms[0], low, number if name in _UPPER else inf)
            case (NodeKind.PROPERTY, NodeKind.NUMBER, NodeKind.NUMBER) if name == "between":
                yield _Said(terms[0], self._number(args[1]), inf)
                yield _Said(terms[1], -inf, self._number(args[2]))
            case (NodeKind.PROPERTY, NodeKind.STRING) if name == "=":
                yield _Said(terms[0], texts=(self._string(args[1]),))
            case (NodeKind.PROPERTY, NodeKind.LIST) if name == "in" or name in ARRAY_FUNCTIONS:
                yield _Said(terms[0], texts=tuple(map(self._string, args[1].args)))
            case (NodeKind.PROPERTY, NodeKind.GEOMETRY | NodeKind.CALL) if (
                name in SPATIAL_FUNCTIONS
            ):
                yield _Said(terms[0], shape=self._shape(args[1]))
            case (NodeKind.PROPERTY, NodeKind.GEOMETRY | NodeKind.CALL, NodeKind.NUMBER) if (
                name in NEAR_FUNCTIONS
            ):
                shape = self._shape(args[1])
                yield _Said(terms[0], self._number(args[2]), shape=shape)
            case _:
                raise _NoForm

    def _number(self, part: ParseNode) -> int:
        """Which of the numbers one is that may have a sign."""
        signs = self._tokens.texts[part.first : part.last]
        if part.kind is not NodeKind.NUMBER or signs not in ([], ["-"], ["+"]):
            raise _NoForm
        self._numbers.append((self._literal[part.last], signs == ["-"]))
        return len(self._numbers) - 1

    def _string(self, part: ParseNode) -> int:
        if part.kind is not NodeKind.STRING or part.first != part.last:
            raise _NoForm
        return self._literal[part.first]

    def _shape(self, part: ParseNode) -> _Shape:
        if part.kind is NodeKind.CALL:
            if part.value != "bbox" or len(part.args) != 4:
                raise _NoForm
            corners = [self._number(arg) for arg in part.args]
            return _Shape((), corners[0], AREAS)
        dimension = _DIMENSIONS.get(part.value["type"])
        within = range(part.first, part.last + 1)
        chains = [token for token in within if token in self._literal]
        if dimension is None or not all(self._tokens.texts[k][0] == "(" for k in chains):
            raise _NoForm
        return _Shape(tuple(self._literal[token] for token in chains), 0, dimension)


def _is_literal(written: str) -> bool:
    first = written[:1]
    return first == "'" or (first in DIGITS and first != "") or (first == "(" and written != "(")


def _kind(one: _Said) -> tuple[object, ...]:
    check: Any = one.term.check
    ends = tuple(isinstance(end, int) for end in (one.low, one.high))
    if isinstance(check, BooleanCheck | NullCheck):
        return one.term, ends
    return type(check), check.column, getattr(check, "function", None), ends, one.term.negated
