"""Query templates: `bind_text` reads texts that differ in literals only, without the parser.

A program that subscribes writes the same text again and again, with other literals. Tokens,
precedence, names, types and the normal form take most of the parser's time and come out the same.
A `QueryTemplate` keeps them, and knows which literal goes where; a `BoundTemplate` is a template
with the literals of one text.

    text    kind = 'hail' AND wind > 20 AND S_INTERSECTS(at, POINT(1 2))
              |
    split     |  key       kind = _ AND wind > _ AND S_INTERSECTS(at, POINT_)    kinds: '0(
              |  literals  'hail'  20  (1 2)
              v
            known_templates[key]
              |
              |-- absent         note that the key was seen; leave the text to the parser
              |-- _SEEN_ONCE     learn, verify, then bind: this is the second text of the key
              |-- QueryTemplate  bind
              `-- None           the key has no template: leave the text to the parser

    learn   Parse the text. Record for each of its terms which literals are its bounds, strings
            and coordinates. A text with a disjunction, say, has no template.
    verify  Bind the new template to the literals of this same text. The result must equal what
            the parser made of the text; otherwise the template is discarded.
    bind    Convert the literals to the bounds, strings and coordinates of a `BoundTemplate`, or
            leave the text to the parser.

A template is a conjunction of the most frequent conditions: an attribute compared with numbers,
strings, lists of strings, boxes, points, lines and polygons, and conditions without a literal.
What a text means can also depend on a literal's value: '2024-05-01' is a time as well as a string,
2**60 need not be a double, and a box may have no area. `bind` recognizes such literals and leaves
the text to the parser, as it does with invalid texts, so that only the parser words errors.
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
from fencepost.cql2.lexer import NUMBER_START, split_literals
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
from fencepost.kernels.index.memtable_arrays import lay_out_outlines

MAX_TEMPLATES = 1024
"""Keys that `known_templates` holds at most."""

_MAX_LITERALS = 64
_MAX_KEY_LENGTH = 4096  # characters
_EXACT_BELOW = 2.0**53  # every whole number below is a double
_SETS_LOW, _SETS_HIGH = ("=", ">", ">="), ("=", "<", "<=")  # operators by the bound they set
_DIMENSIONS = {"Point": POINTS, "LineString": LINES, "Polygon": AREAS}


class _ShapeSlots(NamedTuple):
    """Which literals are a geometry.

    Attributes
    ----------
    chains : tuple of int
        The literals that hold points, one for each chain; empty for a box.
    corners : int
        For a box, the first of its four numbers.
    dimension : int
    """

    chains: tuple[int, ...]
    corners: int
    dimension: int


class _TermSlots(NamedTuple):
    """A term of the first text, and which literals it takes.

    Attributes
    ----------
    term : Term
    low, high : float or int
        The bounds: a constant where it is a float, the index of a number where it is an int.
    texts : tuple of int
        The literals that are its strings.
    shape : _ShapeSlots, optional
    """

    term: Term
    low: float | int = 0.0
    high: float | int = 0.0
    texts: tuple[int, ...] = ()
    shape: _ShapeSlots | None = None


class QueryTemplate:
    """What all texts of one key have in common.

    Attributes
    ----------
    terms : Filter
        The terms of the first text, with its literals; the cheapest to evaluate comes first.
    needs_no_validation : bool
        Whether all geometries are boxes and points, which are always valid.
    caches : mapping
        What users of the template derived from it, by the user.
    """

    __slots__ = (
        "_bound_slots",
        "_bounds",
        "_negative",
        "_numbers",
        "_shapes",
        "_texts",
        "caches",
        "needs_no_validation",
        "terms",
    )

    def __init__(self, slots: Sequence[_TermSlots], numbers: Sequence[tuple[int, bool]]) -> None:
        slots = sorted(slots, key=lambda slot: cost_rank(slot.term))
        self.terms: Filter = tuple(slot.term for slot in slots)
        self._numbers = [literal for literal, _ in numbers]
        self._negative = [k for k, (_, negative) in enumerate(numbers) if negative]
        bounds = [bound for slot in slots for bound in (slot.low, slot.high)]
        self._bounds = [bound if isinstance(bound, float) else 0.0 for bound in bounds]
        self._bound_slots = [(k, bound) for k, bound in enumerate(bounds) if isinstance(bound, int)]
        self._texts = [
            (slot.texts, isinstance(slot.term.check, MemberCheck)) for slot in slots if slot.texts
        ]
        self._shapes = [slot.shape for slot in slots if slot.shape is not None]
        self.caches: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self.needs_no_validation = all(
            not shape.chains or shape.dimension == POINTS for shape in self._shapes
        )

    def bind(self, literals: Sequence[str], space: Space) -> BoundTemplate | None:
        """Return the template with the literals of a text; None if only the parser can read it."""
        numbers = [float(literals[k]) for k in self._numbers]
        if numbers and max(numbers) >= _EXACT_BELOW:
            return None
        for k in self._negative:
            if not numbers[k]:
                return None  # the parser tells -0, which is 0, from -0.0, which is not
            numbers[k] = -numbers[k]
        bounds = self._bounds.copy()
        for slot, k in self._bound_slots:
            bounds[slot] = numbers[k]
        texts = []
        for indexes, is_comparison in self._texts:
            strings = [literals[k][1:-1].replace("''", "'") for k in indexes]
            if is_comparison and any(map(parse_instant, strings)):
                return None
            texts.append(tuple(strings if len(strings) == 1 else dict.fromkeys(strings)))
        shapes = []
        for shape in self._shapes:
            outline = _outline(shape, numbers, literals)
            if outline is None or (space is not Space.PLANAR and _is_outside(outline, space)):
                return None
            shapes.append(outline)
        return BoundTemplate(self, tuple(bounds), tuple(texts), tuple(shapes))


class BoundTemplate:
    """A template with the literals of one text.

    Attributes
    ----------
    template : QueryTemplate
    bounds : tuple of float
        Two for each term: the ends of a range, or a distance and 0.
    texts : tuple of tuple of str
        The strings of each term that compares with strings.
    shapes : tuple of Outline
        The geometry of each term that compares with one.
    shapes_ref
        Struct reference of the shapes' arrays; None until `has_valid_shapes` built them.
    """

    __slots__ = ("bounds", "shapes", "shapes_ref", "template", "texts")

    def __init__(
        self,
        template: QueryTemplate,
        bounds: tuple[float, ...],
        texts: tuple[tuple[str, ...], ...],
        shapes: tuple[Outline, ...],
    ) -> None:
        self.template = template
        self.bounds = bounds
        self.texts = texts
        self.shapes = shapes
        self.shapes_ref: Any = None

    def has_valid_shapes(self) -> bool:
        """Return whether a fast check proves all geometries valid."""
        if self.template.needs_no_validation:
            return True
        self.shapes_ref, is_valid = lay_out_outlines(*outline_arrays(self.shapes))
        return bool(is_valid)


def invalid_rows(rows: Sequence[BoundTemplate | None]) -> set[int]:
    """Return the rows that have an invalid geometry; a row that is None counts as valid."""
    shapes: list[Outline] = []
    shape_row: list[int] = []
    for row, bound in enumerate(rows):
        if bound is not None and not bound.template.needs_no_validation:
            shapes += bound.shapes
            shape_row += [row] * len(bound.shapes)
    if not shapes:
        return set()
    problems = Shapes.lay_out(raw_shapes_of_outlines(shapes)).problems
    return {shape_row[problem.row] for problem in problems}


def _outline(slots: _ShapeSlots, numbers: list[float], literals: Sequence[str]) -> Outline | None:
    if not slots.chains:
        x0, y0, x1, y1 = numbers[slots.corners : slots.corners + 4]
        if x0 < x1 and y0 < y1:
            return (x0, y0, x1, y0, x1, y1, x0, y1, x0, y0), (5,), AREAS
        return None
    if len(slots.chains) == 1:
        xy = _coordinates(literals[slots.chains[0]])
        sizes: tuple[int, ...] = (len(xy) // 2,)
    else:
        chains = [_coordinates(literals[k]) for k in slots.chains]
        xy = tuple(number for chain in chains for number in chain)
        sizes = tuple(len(chain) // 2 for chain in chains)
    if slots.dimension == POINTS and len(xy) > 2:
        return None
    return xy, sizes, slots.dimension


def _coordinates(literal: str) -> tuple[float, ...]:
    return tuple(map(float, literal[1:-1].replace(",", " ").split()))


def _is_outside(outline: Outline, space: Space) -> bool:
    max_x, max_y = space.limits
    xy, _, _ = outline
    x, y = xy[::2], xy[1::2]
    return max(x) > max_x or min(x) < -max_x or max(y) > max_y or min(y) < -max_y


# -------------------------------------------------------------------------------- known templates

_SEEN_ONCE = object()
known_templates: dict[tuple[str, ...], Any] = {}
"""By key: a template; None where valid texts have no template; or `_SEEN_ONCE`. A template is
learned from the second text of a key only, because the first may stay the only one."""


def bind_text(text: str, space: Space) -> BoundTemplate | None:
    """Return the bound template of a text; None if only the parser can read the text."""
    if '"' in text or len(text) > MAX_LENGTH or not _is_encodable(text):
        return None
    key, literals = split_literals(text)
    template = known_templates.get(key, known_templates)
    if template is known_templates or template is _SEEN_ONCE:
        template = _learn(text, key, literals, template is _SEEN_ONCE)
    return None if template is None else template.bind(literals, space)


def _is_encodable(text: str) -> bool:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


def _learn(
    text: str, key: tuple[str, ...], literals: Sequence[str], seen_before: bool
) -> QueryTemplate | None:
    """Return the verified template of a key, if the key was seen before and has one."""
    if not 0 < len(literals) <= _MAX_LITERALS or sum(map(len, key)) > _MAX_KEY_LENGTH:
        return None
    template: Any = _SEEN_ONCE
    if seen_before:
        try:
            template = _TemplateBuilder(text, literals).build()
        except _NoTemplate:
            template = None
        except (LanguageError, SemanticError, RecursionError):
            return None
        if template is not None and not _is_verified(template, literals):
            return None
    if len(known_templates) >= MAX_TEMPLATES:
        known_templates.clear()
    known_templates[key] = template
    return template if seen_before else None


def _is_verified(template: QueryTemplate, literals: Sequence[str]) -> bool:
    """Return whether binding to the first text's literals gives the terms that the parser gave."""
    bound = template.bind(literals, Space.PLANAR)
    if bound is None:
        return False
    texts, shapes = iter(bound.texts), iter(bound.shapes)
    for k, term in enumerate(template.terms):
        check, (low, high) = term.check, bound.bounds[2 * k : 2 * k + 2]
        match check:
            case RangeCheck():
                is_same = (check.low, check.high) == ((low, 0.0), (high, 0.0))
            case MemberCheck():
                is_same = check.strings == next(texts)
            case ListCheck():
                items = tuple(getattr(item, "value", None) for item in check.items.items)
                is_same = items == next(texts)
            case RelateCheck() | NearCheck():
                xy = shapely.get_coordinates(check.geometry.value).ravel()
                is_same = tuple(xy.tolist()) == next(shapes)[0]
                distance = check.distance if isinstance(check, NearCheck) else 0.0
                is_same = is_same and low == distance
            case _:
                is_same = isinstance(check, BooleanCheck | NullCheck)
        if not is_same:
            return False
    return True


class _NoTemplate(Exception):
    """A valid text has no template."""


class _TemplateBuilder:
    """Builds the template of a text that the parser reads."""

    def __init__(self, text: str, literals: Sequence[str]) -> None:
        self._root, self._tokens = read_text(text)
        texts = self._tokens.texts
        literal_tokens = [token for token, written in enumerate(texts) if _is_literal(written)]
        if [texts[token] for token in literal_tokens] != literals:
            raise _NoTemplate
        self._literal_of_token = {token: k for k, token in enumerate(literal_tokens)}
        self._numbers: list[tuple[int, bool]] = []

    def build(self) -> QueryTemplate:
        """Return the template; raise _NoTemplate if the text has none."""
        slots = list(self._conjunction(self._root))
        parsed = to_filters(compile_condition(self._root))
        if len(parsed) != 1 or parsed[0] != tuple(slot.term for slot in slots):
            raise _NoTemplate  # the normal form dropped a repeated term
        # Two terms of one kind could be equal in another text; the normal form would drop one.
        if len({_kind(slot) for slot in slots}) < len(slots):
            raise _NoTemplate
        return QueryTemplate(slots, self._numbers)

    def _conjunction(self, node: ParseNode) -> Iterator[_TermSlots]:
        if node.kind is NodeKind.CALL and node.value == "and":
            for arg in node.args:
                yield from self._conjunction(arg)
            return
        filters = to_filters(compile_condition(node))
        if len(filters) != 1:
            raise _NoTemplate
        terms = filters[0]
        if not any(token in self._literal_of_token for token in range(node.first, node.last + 1)):
            if not all(isinstance(term.check, BooleanCheck | NullCheck) for term in terms):
                raise _NoTemplate
            yield from map(_TermSlots, terms)
        else:
            yield from self._condition(node, terms)

    def _condition(self, node: ParseNode, terms: Filter) -> Iterator[_TermSlots]:
        name, args = node.value, node.args
        kinds = tuple(arg.kind for arg in args)
        match kinds:
            case (NodeKind.PROPERTY, NodeKind.NUMBER) if name in _SETS_LOW or name in _SETS_HIGH:
                number = self._number(args[1])
                low = number if name in _SETS_LOW else -inf
                yield _TermSlots(terms[0], low, number if name in _SETS_HIGH else inf)
            case (NodeKind.PROPERTY, NodeKind.NUMBER, NodeKind.NUMBER) if name == "between":
                yield _TermSlots(terms[0], self._number(args[1]), inf)
                yield _TermSlots(terms[1], -inf, self._number(args[2]))
            case (NodeKind.PROPERTY, NodeKind.STRING) if name == "=":
                yield _TermSlots(terms[0], texts=(self._string(args[1]),))
            case (NodeKind.PROPERTY, NodeKind.LIST) if name == "in" or name in ARRAY_FUNCTIONS:
                yield _TermSlots(terms[0], texts=tuple(map(self._string, args[1].args)))
            case (
                NodeKind.PROPERTY,
                NodeKind.GEOMETRY | NodeKind.CALL,
            ) if name in SPATIAL_FUNCTIONS:
                yield _TermSlots(terms[0], shape=self._shape(args[1]))
            case (
                NodeKind.PROPERTY,
                NodeKind.GEOMETRY | NodeKind.CALL,
                NodeKind.NUMBER,
            ) if name in NEAR_FUNCTIONS:
                shape = self._shape(args[1])
                yield _TermSlots(terms[0], self._number(args[2]), shape=shape)
            case _:
                raise _NoTemplate

    def _number(self, node: ParseNode) -> int:
        """Register a number, which may have a sign; return its index among the numbers."""
        signs = self._tokens.texts[node.first : node.last]
        if node.kind is not NodeKind.NUMBER or signs not in ([], ["-"], ["+"]):
            raise _NoTemplate
        self._numbers.append((self._literal_of_token[node.last], signs == ["-"]))
        return len(self._numbers) - 1

    def _string(self, node: ParseNode) -> int:
        """Return the index of a string among the literals."""
        if node.kind is not NodeKind.STRING or node.first != node.last:
            raise _NoTemplate
        return self._literal_of_token[node.first]

    def _shape(self, node: ParseNode) -> _ShapeSlots:
        if node.kind is NodeKind.CALL:
            if node.value != "bbox" or len(node.args) != 4:
                raise _NoTemplate
            corners = [self._number(arg) for arg in node.args]
            return _ShapeSlots((), corners[0], AREAS)
        dimension = _DIMENSIONS.get(node.value["type"])
        tokens = range(node.first, node.last + 1)
        chains = [token for token in tokens if token in self._literal_of_token]
        if dimension is None or not all(self._tokens.texts[k][0] == "(" for k in chains):
            raise _NoTemplate
        return _ShapeSlots(tuple(self._literal_of_token[token] for token in chains), 0, dimension)


def _is_literal(token: str) -> bool:
    first = token[:1]
    return (
        first == "'" or (first in NUMBER_START and first != "") or (first == "(" and token != "(")
    )


def _kind(slot: _TermSlots) -> tuple[object, ...]:
    """Return what a term keeps in all texts; only terms of equal kinds can become equal."""
    check: Any = slot.term.check
    bound_slots = tuple(isinstance(bound, int) for bound in (slot.low, slot.high))
    if isinstance(check, BooleanCheck | NullCheck):
        return slot.term, bound_slots
    function = getattr(check, "function", None)
    return type(check), check.column, function, bound_slots, slot.term.negated
