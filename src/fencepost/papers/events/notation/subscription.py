"""Subscriptions of OPS4ST, as expressions or composites, and back into the notation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from sys import float_info

from fencepost.composite.member_conditions import (
    TOLERANCE,
    MemberCondition,
    Operator,
    Predicate,
    Region,
    is_name,
)
from fencepost.composite.model import Composite, Member
from fencepost.cql2 import ast
from fencepost.cql2.ast import Condition, Value
from fencepost.errors import LanguageError
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.papers.events.notation.location_conditions import placed
from fencepost.papers.events.notation.notation_reader import (
    Composed,
    Node,
    Settings,
    read_subscription,
)

_ARGUMENT, _SUBJECT = "a", "b"


def parse_ops4st(
    text: str,
    *,
    id: str | None = None,
    within_s: float | None = None,
    subscriber: str | None = None,
    same_place_m: float | None = None,
    tolerance: float = TOLERANCE,
    geometry: str = "geometry",
    values: Mapping[str, object] | None = None,
) -> Condition | Composite:
    """The expression of a subscription on one event, or the composite of one on several.

    Parameters
    ----------
    text : str
        In the notation of OPS4ST; ``docs/ops4st.md`` has its grammar and meaning.
    id, within_s, subscriber
        Of the composite, where it is one: see `Composite`. The notation has no window of time, so
        `within_s` must be given; the id is the text if left out. Composites within it are called
        after it, and have its window.
    same_place_m : float, optional
        The distance of ``SPL`` where the text has none and the region is no circle.
    tolerance : float
        How far a distance may be off in ``DIST(R;=;l)`` where the text has no tolerance.
    geometry : str
        The attribute that holds the location of an event.
    values : mapping of str to number or str, optional
        What names stand for, where the text has names in place of values: ``{"x": 3, "y": 4}``.

    Returns
    -------
    Condition or Composite
        A condition is the tree that CQL2 gives, and goes to `Matcher.subscribe`. In a composite the
        subscription in an operator's brackets is the member "a", the one behind it "b".

    Raises
    ------
    LanguageError
        Where the text cannot be read, at the place.
    ModelError
        Where a composite lacks its window.

    Examples
    --------
    >>> from fencepost.cql2.writer import render_text
    >>> render_text(parse_ops4st('DIST((3,4);<;2000)(STRING:type="TAXI")'))
    "S_CLOSER(geometry, POINT(3 4), 2000.0) AND type = 'TAXI'"
    >>> parse_ops4st('OVLP((STRING:k="fire"))(STRING:k="smoke")', id="alarm", within_s=60)
    Composite('alarm', members={'a': "k = 'fire'", 'b': "k = 'smoke'"}, where=['OVLP(b, a)'], \
within_s=60.0)
    """
    if not isinstance(text, str):
        raise LanguageError(f"a subscription in OPS4ST is text; saw {short_repr(text)}; give a str")
    near = None if same_place_m is None else _length("same_place_m", same_place_m)
    slack = _length("tolerance", tolerance)
    node = read_subscription(text, Settings(geometry, near, slack, values or {}))
    if not isinstance(node, Composed):
        return node
    return _composite(node, text if id is None else id, within_s, subscriber)


def _length(name: str, value: object) -> float:
    if isinstance(value, int | float) and 0 <= value <= float_info.max:
        return float(value)
    raise LanguageError(f"{name} is a finite number of 0 or more; saw {short_repr(value)}")


def _composite(
    node: Composed, id: str, within_s: float | None, subscriber: str | None = None
) -> Composite:
    members: dict[str, object] = {}
    right: str | Region
    if isinstance(node.argument, Region):
        right = node.argument
    else:
        right = _ARGUMENT
        members[_ARGUMENT] = _member(node.argument, f"{id}.{_ARGUMENT}", within_s)
    members[_SUBJECT] = _member(node.subject, f"{id}.{_SUBJECT}", within_s)
    where = [MemberCondition(node.asked, _SUBJECT, right)]
    return Composite(id, members, where, within_s, subscriber)


def _member(node: Node, id: str, within_s: float | None) -> Member:
    return _composite(node, id, within_s) if isinstance(node, Composed) else node


def render_ops4st(subscription: Condition | Composite, *, geometry: str = "geometry") -> str:
    """The text of an expression or a composite in the notation of OPS4ST.

    Of an expression, what is about places comes first; of a composite, the names of members and
    the window of time are not said.

    Raises
    ------
    LanguageError
        Where the notation cannot say it: other expressions than conjunctions of places and
        predicates; composites of more than two members, with more or less than one condition, or
        whose parts have another window.
    """
    if not isinstance(subscription, Composite):
        return render_condition(subscription, geometry)
    if len(subscription.where) != 1:
        raise _unsayable(subscription, "one condition")
    [condition] = subscription.where
    left, right = condition.left, condition.right
    if not isinstance(left, str) or {*condition.names} != {*subscription.members}:
        raise _unsayable(subscription, "one or two members")
    nested = [one for one in subscription.members.values() if isinstance(one, Composite)]
    if any(one.within_s != subscription.within_s for one in nested):
        raise _unsayable(subscription, "one window of time for all parts")
    if isinstance(right, Region):
        if not nested:
            raise _unsayable(subscription, "regions of a single event in its expression")
        operator = render_operator(condition.predicate, render_region(right), of_region=True)
    else:
        argument = render_ops4st(subscription.members[right], geometry=geometry)
        operator = render_operator(condition.predicate, argument, of_region=False)
    return operator + render_ops4st(subscription.members[left], geometry=geometry)


def _unsayable(composite: Composite, what: str) -> LanguageError:
    return LanguageError(
        f"OPS4ST has {what}; saw {short_repr(composite)}; keep the composite in JSON (to_json)"
    )


def render_condition(condition: Condition, geometry: str = "geometry") -> str:
    """A condition on one event: operators with regions, then the predicates in brackets.

    What is about the place comes first, in the order of the condition, and all the rest behind it.

    Raises
    ------
    LanguageError
        Where the notation cannot say it.
    """
    parts = condition.parts if isinstance(condition, ast.And) else (condition,)
    operators: list[str] = []
    predicates: list[str] = []
    for part in parts:
        found = placed(part, ast.Property(geometry))
        if found is not None:
            asked, region = found
            operators.append(render_operator(asked, render_region(region), of_region=True))
        elif part != ast.Boolean(True):
            predicates.append(_predicate(part))
    return "".join(operators) + "(" + ";".join(predicates) + ")"


def render_operator(asked: Predicate, argument: str, of_region: bool) -> str:
    """An operator, given what stands in its brackets first."""
    match asked.operator:
        case Operator.IN:
            return f"@({argument})" if of_region else f"IN({argument})"
        case Operator.OVLP:
            return f"OVLP({argument})"
        case Operator.SPL:
            return f"SPL({argument};{asked.distance!r})"
    assert asked.compare is not None
    tolerance = f";{asked.tolerance!r}" if asked.compare is ast.ComparisonOp.EQ else ""
    return f"DIST({argument};{asked.compare.value};{asked.distance!r}{tolerance})"


def render_region(region: Region) -> str:
    """A region: points, or a circle.

    Raises
    ------
    LanguageError
        Where it is no point, line of two points or convex polygon.
    """
    place = region.geometry.value
    if region.radius:
        return f"Circle({place.x!r},{place.y!r},{region.radius!r})"
    own = ast.Property("geometry")
    known = placed(
        ast.SpatialCondition(ast.SpatialFunction.S_INTERSECTS, own, region.geometry), own
    )
    if known is None:
        raise LanguageError(
            f"OPS4ST has points, circles and convex polygons only; saw {short_repr(place)}; "
            "keep it in CQL2, or in the JSON of the composite"
        )
    points = place.exterior.coords[:-1] if place.geom_type == "Polygon" else place.coords
    return ",".join(f"({float(x)!r},{float(y)!r})" for x, y, *_ in points)


def _predicate(part: Condition) -> str:
    match part:
        case ast.Comparison(op, ast.Property(name), value):
            kind, written = _literals([value], part)
            return f"{kind}:{_name(name)}{op.value}{written[0]}"
        case ast.IsNull(ast.Property(name)):
            return f"STRING:{_name(name)} IS NULL"
        case ast.Not(ast.IsNull(ast.Property(name))):
            return f"STRING:{_name(name)} IS NOT NULL"
        case ast.Not(inner):
            kind, name, rest = _worded(inner, part)
            return f"{kind}:{_name(name)} NOT {rest}"
    kind, name, rest = _worded(part, part)
    return f"{kind}:{_name(name)} {rest}"


def _worded(part: Condition, whole: Condition) -> tuple[str, str, str]:
    """The type, the attribute and the rest of a condition whose operator is a word."""
    match part:
        case ast.Between(ast.Property(name), low, high):
            kind, (first, second) = _literals([low, high], whole)
            return kind, name, f"BETWEEN {first} AND {second}"
        case ast.In(ast.Property(name), items) if items:
            kind, written = _literals(items, whole)
            return kind, name, f"IN ({', '.join(written)})"
        case ast.Like(ast.Property(name), ast.String() as pattern):
            kind, written = _literals([pattern], whole)
            return kind, name, f"LIKE {written[0]}"
    raise _unsayable_condition(whole)


def _literals(values: Iterable[Value], whole: Condition) -> tuple[str, list[str]]:
    """The type of some literals, and each as it is written."""
    kinds, written = set(), []
    for value in values:
        if isinstance(value, ast.Number):
            kinds.add("ARITH")
            written.append(repr(value.value))
        elif isinstance(value, ast.String):
            kinds.add("STRING")
            written.append(_quoted(value.value))
        else:
            raise _unsayable_condition(whole)
    if len(kinds) != 1:
        raise _unsayable_condition(whole)
    return kinds.pop(), written


def _name(name: str) -> str:
    return name if is_name(name) else _quoted(name)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _unsayable_condition(part: Condition) -> LanguageError:
    return LanguageError(
        f"OPS4ST cannot say this condition; saw {short_repr(part)}; it has conjunctions of "
        "predicates on strings and numbers, and of places: keep the expression in CQL2"
    )
