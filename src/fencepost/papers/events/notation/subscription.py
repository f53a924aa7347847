"""`parse_ops4st` and `render_ops4st`, which read and write subscriptions in the notation."""

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
from fencepost.papers.events.notation.location_conditions import to_operator
from fencepost.papers.events.notation.notation_reader import (
    Composed,
    Node,
    Settings,
    read_subscription,
)

_ARGUMENT, _SUBJECT = "a", "b"  # names of members: in an operator's brackets, and behind it


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
    """Read a subscription: as an expression if it is about one event, else as a composite.

    Parameters
    ----------
    text : str
        In the notation of OPS4ST; ``docs/ops4st.md`` has its grammar and meaning.
    id, within_s, subscriber
        Parameters of the composite, see `Composite`. The notation has no time window, so a
        composite needs `within_s`. Without an `id`, the text is the id. The ids of nested
        composites begin with this id, and nested composites have the same window.
    same_place_m : float, optional
        The distance of ``SPL`` if the text has none and the region is not a circle.
    tolerance : float
        The tolerance of ``DIST(R;=;l)`` if the text has none.
    geometry : str
        The attribute that holds the location of an event.
    values : mapping of str to number or str, optional
        The values of names that the text has instead of numbers or strings:
        ``{"x": 3, "y": 4}``.

    Returns
    -------
    Condition or Composite
        A condition is a tree of CQL2, which `Matcher.subscribe` accepts. In a composite, the
        subscription in an operator's brackets is the member "a", the subscription behind the
        operator is the member "b".

    Raises
    ------
    LanguageError
        If the text cannot be read; the error shows the position.
    ModelError
        If a composite has no window.

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
    same_place = None if same_place_m is None else _length("same_place_m", same_place_m)
    settings = Settings(geometry, same_place, _length("tolerance", tolerance), values or {})
    node = read_subscription(text, settings)
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
    where = [MemberCondition(node.operator, _SUBJECT, right)]
    return Composite(id, members, where, within_s, subscriber)


def _member(node: Node, id: str, within_s: float | None) -> Member:
    return _composite(node, id, within_s) if isinstance(node, Composed) else node


def render_ops4st(subscription: Condition | Composite, *, geometry: str = "geometry") -> str:
    """Write an expression or a composite in the notation of OPS4ST.

    The operators of an expression come before its predicates. The names of a composite's members
    and its window are lost.

    Raises
    ------
    LanguageError
        If the notation cannot express it: an expression that is not a conjunction of operators and
        predicates; a composite with more than two members, with no or several conditions, or with
        a nested composite that has another window.
    """
    if not isinstance(subscription, Composite):
        return render_condition(subscription, geometry)
    if len(subscription.where) != 1:
        raise _unsayable(subscription, "one condition")
    [condition] = subscription.where
    left, right = condition.left, condition.right
    if not isinstance(left, str) or {*condition.names} != {*subscription.members}:
        raise _unsayable(subscription, "one or two members")
    nested = [member for member in subscription.members.values() if isinstance(member, Composite)]
    if any(member.within_s != subscription.within_s for member in nested):
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
    """Write a condition on one event: its operators with regions, then its predicates in brackets.

    Raises
    ------
    LanguageError
        If the notation cannot express it.
    """
    parts = condition.parts if isinstance(condition, ast.And) else (condition,)
    operators: list[str] = []
    predicates: list[str] = []
    for part in parts:
        operator_and_region = to_operator(part, ast.Property(geometry))
        if operator_and_region is not None:
            operator, region = operator_and_region
            operators.append(render_operator(operator, render_region(region), of_region=True))
        elif part != ast.Boolean(True):
            predicates.append(_predicate(part))
    return "".join(operators) + "(" + ";".join(predicates) + ")"


def render_operator(operator: Predicate, argument: str, of_region: bool) -> str:
    """Write an operator.

    argument : the text of the region or the subscription in its brackets.
    """
    match operator.operator:
        case Operator.IN:
            return f"@({argument})" if of_region else f"IN({argument})"
        case Operator.OVLP:
            return f"OVLP({argument})"
        case Operator.SPL:
            return f"SPL({argument};{operator.distance!r})"
    assert operator.compare is not None
    tolerance = f";{operator.tolerance!r}" if operator.compare is ast.ComparisonOp.EQ else ""
    return f"DIST({argument};{operator.compare.value};{operator.distance!r}{tolerance})"


def render_region(region: Region) -> str:
    """Write a region: points, or a circle.

    Raises
    ------
    LanguageError
        If it is not a point, a line of two points or a convex polygon.
    """
    geometry = region.geometry.value
    if region.radius:
        return f"Circle({geometry.x!r},{geometry.y!r},{region.radius!r})"
    location = ast.Property("geometry")
    operator_and_region = to_operator(
        ast.SpatialCondition(ast.SpatialFunction.S_INTERSECTS, location, region.geometry), location
    )
    if operator_and_region is None:
        raise LanguageError(
            f"OPS4ST has points, circles and convex polygons only; saw {short_repr(geometry)}; "
            "keep it in CQL2, or in the JSON of the composite"
        )
    points = geometry.exterior.coords[:-1] if geometry.geom_type == "Polygon" else geometry.coords
    return ",".join(f"({float(x)!r},{float(y)!r})" for x, y, *_ in points)


def _predicate(part: Condition) -> str:
    match part:
        case ast.Comparison(op, ast.Property(name), value):
            kind, literals = _literals([value], part)
            return f"{kind}:{_name(name)}{op.value}{literals[0]}"
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
    """Return the type, the attribute and the rest of a condition with BETWEEN, IN or LIKE."""
    match part:
        case ast.Between(ast.Property(name), low, high):
            kind, (first, second) = _literals([low, high], whole)
            return kind, name, f"BETWEEN {first} AND {second}"
        case ast.In(ast.Property(name), items) if items:
            kind, literals = _literals(items, whole)
            return kind, name, f"IN ({', '.join(literals)})"
        case ast.Like(ast.Property(name), ast.String() as pattern):
            kind, literals = _literals([pattern], whole)
            return kind, name, f"LIKE {literals[0]}"
    raise _unsayable_condition(whole)


def _literals(values: Iterable[Value], whole: Condition) -> tuple[str, list[str]]:
    """Return the common type of literals, and the text of each."""
    kinds, literals = set(), []
    for value in values:
        if isinstance(value, ast.Number):
            kinds.add("ARITH")
            literals.append(repr(value.value))
        elif isinstance(value, ast.String):
            kinds.add("STRING")
            literals.append(_quoted(value.value))
        else:
            raise _unsayable_condition(whole)
    if len(kinds) != 1:
        raise _unsayable_condition(whole)
    return kinds.pop(), literals


def _name(name: str) -> str:
    return name if is_name(name) else _quoted(name)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _unsayable_condition(part: Condition) -> LanguageError:
    return LanguageError(
        f"OPS4ST cannot say this condition; saw {short_repr(part)}; it has conjunctions of "
        "predicates on strings and numbers, and of places: keep the expression in CQL2"
    )
