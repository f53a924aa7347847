"""The indexes of a `Matcher` by name, and what makes an engine of one.

The two of our own are here. Published systems are found by where they lie, and imported when one is
asked for by name: nothing of `match` knows them otherwise, and anybody's index can be given to a
`Matcher` as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TypeAlias

from fencepost.engine.executors import Clock, Engine, ReferenceEngine, SegmentEngine
from fencepost.engine.segment_manager import SegmentManager
from fencepost.errors import ModelError
from fencepost.geometry.space import Space

EngineFactory: TypeAlias = Callable[[SegmentManager, Clock], Engine]


@dataclass(frozen=True)
class MatcherIndex:
    """How the subscriptions of a `Matcher` are found: what to give to it as its `index`.

    Attributes
    ----------
    name : str
        What `Matcher.index` says.
    engine : callable
        Makes an engine that knows what is on some shelves, and follows them.
    spaces : frozenset of Space
        Those for which it can be used.
    """

    name: str
    engine: EngineFactory
    spaces: frozenset[Space] = frozenset({Space.PLANAR})


_OWN = {
    own.name: own
    for own in (
        MatcherIndex("auto", SegmentEngine, frozenset(Space)),
        MatcherIndex("reference", ReferenceEngine, frozenset(Space)),
    )
}
# By name, the module and the function in it that makes a `MatcherIndex`.
_PUBLISHED = {
    "sff": ("fencepost.papers.regions.adapter", "sff"),
    "cr-tree": ("fencepost.papers.regions.adapter", "cr_tree"),
    "rt": ("fencepost.papers.spatiotextual.adapter", "rt_tree"),
    "rt+": ("fencepost.papers.spatiotextual.adapter", "rt_plus_tree"),
    "rt++": ("fencepost.papers.spatiotextual.adapter", "rt_plus_plus_tree"),
    "ops4st": ("fencepost.papers.events.adapter", "ops4st"),
    "ops4st-standard": ("fencepost.papers.events.adapter", "ops4st_standard"),
}
INDEXES = (*_OWN, *_PUBLISHED)


def resolve_index(index: str | MatcherIndex, space: Space) -> MatcherIndex:
    """The index of a name, or itself, for a space.

    Raises
    ------
    ModelError
        Where there is none of that name, or it is not for the space.
    """
    found = index
    if isinstance(index, str) and index in _OWN:
        found = _OWN[index]
    elif isinstance(index, str) and index in _PUBLISHED:
        module, name = _PUBLISHED[index]
        found = getattr(import_module(module), name)()
    if not isinstance(found, MatcherIndex):
        raise ModelError(f"index must be one of {', '.join(INDEXES)}; saw {index!r:.40}")
    if space not in found.spaces:
        raise ModelError(
            f"index={found.name!r} is for the space {' or '.join(sorted(found.spaces))}, and the "
            f"space is {space.value!r}; leave the index out"
        )
    return found
