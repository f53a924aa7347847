"""`resolve_index`: the indexes of a `Matcher`, by name.

The indexes "auto" and "reference" are defined here. The indexes of published systems are imported
when their name is used; no other module of the engine refers to them. A caller may also give a
`Matcher` an index of its own, as a `MatcherIndex`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Literal, TypeAlias, get_args

from fencepost.engine.executors import Clock, Engine, ReferenceEngine, SegmentEngine
from fencepost.engine.segment_manager import SegmentManager
from fencepost.errors import ModelError
from fencepost.geometry.space import DEFAULT_SPACE, Space, SpaceName, parse_space

EngineFactory: TypeAlias = Callable[[SegmentManager, Clock], Engine]


@dataclass(frozen=True)
class MatcherIndex:
    """An index that a `Matcher` can use: its name, and a factory of its engine.

    Attributes
    ----------
    name : str
        Name that `Matcher.index` returns.
    engine : callable
        Factory of an engine that finds the subscriptions of a segment manager.
    spaces : frozenset of Space
        Coordinate spaces that the index supports.
    """

    name: str
    engine: EngineFactory
    spaces: frozenset[Space] = frozenset({Space.PLANAR})


_BUILT_IN = {
    index.name: index
    for index in (
        MatcherIndex("auto", SegmentEngine, frozenset(Space)),
        MatcherIndex("reference", ReferenceEngine, frozenset(Space)),
    )
}
# By name: the module, and its function that returns a `MatcherIndex`.
_PUBLISHED = {
    "sff": ("fencepost.papers.regions.adapter", "sff"),
    "cr-tree": ("fencepost.papers.regions.adapter", "cr_tree"),
    "rt": ("fencepost.papers.spatiotextual.adapter", "rt_tree"),
    "rt+": ("fencepost.papers.spatiotextual.adapter", "rt_plus_tree"),
    "rt++": ("fencepost.papers.spatiotextual.adapter", "rt_plus_plus_tree"),
    "ops4st": ("fencepost.papers.events.adapter", "ops4st"),
    "ops4st-standard": ("fencepost.papers.events.adapter", "ops4st_standard"),
}
IndexName: TypeAlias = Literal[
    "auto", "reference", "sff", "cr-tree", "rt", "rt+", "rt++", "ops4st", "ops4st-standard"
]
INDEXES: tuple[IndexName, ...] = get_args(IndexName)
assert (*_BUILT_IN, *_PUBLISHED) == INDEXES


def resolve_index(
    index: IndexName | MatcherIndex, space: SpaceName | None
) -> tuple[MatcherIndex, Space]:
    """Return the index with a name, or the given index itself, and the space of a matcher with it.

    If no space is given, it is the default space or, with an index that does not support that one,
    the space that the index does support.

    Raises
    ------
    ModelError
        If no index has the name, or the index does not support the space.
    """
    resolved = index
    if isinstance(index, str) and index in _BUILT_IN:
        resolved = _BUILT_IN[index]
    elif isinstance(index, str) and index in _PUBLISHED:
        module, factory = _PUBLISHED[index]
        resolved = getattr(import_module(module), factory)()
    if not isinstance(resolved, MatcherIndex):
        raise ModelError(f"index must be one of {', '.join(INDEXES)}; saw {index!r:.40}")
    if space is None:
        return resolved, min(resolved.spaces, key=lambda each: each is not DEFAULT_SPACE)
    chosen = parse_space(space)
    if chosen not in resolved.spaces:
        raise ModelError(
            f"index={resolved.name!r} supports the space {' or '.join(sorted(resolved.spaces))}; "
            f"saw the space {chosen.value!r}; leave out the space or the index"
        )
    return resolved, chosen
