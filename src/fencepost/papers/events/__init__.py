"""Spatial event detection: Hu, Jin, Chen, Zhang and Zhuo, OPS4ST (2011).

A unary location subscription is a spatial operator with a region in front of an atomic
subscription, which is a conjunction of predicates. `standard` tries every one on every event, as
their standard version does; `multilevel` is the index of their optimised one (section 3.3). The
kernels of both are in `searching`, and decide predicates and operators by `deciding`, on what
`layout` lays out: so their times differ by the index alone.

`notation` is that of OPS4ST, and `glr` their safe region on the client. `adapter` makes both
versions the index of a `Matcher`: `Matcher(index="ops4st")` is `Matcher(index=ops4st())`.

- `notation/`: The notation of OPS4ST (Hu, Jin, Chen, Zhang, Zhuo 2011), read into the tree of
  CQL2 and back
- `adapter`: The two versions of OPS4ST as the table of a `Matcher`: each filter is an entry
- `glr`: The greedy largest rectangle round a point that meets none of some boxes
- `index_search`: Events in the multi-level index (see `multilevel`), and every subscription tried
  on each
- `multilevel`: The multi-level index of the optimised version: operator, atomic subscription,
  R-tree (3.3)
- `ops4st_arrays`: How subscriptions and events lie in memory for both versions
- `predicate_checks`: Whether predicates and operators hold for an event: the same for both
  versions
- `standard`: The standard version: no index
"""

from fencepost.papers.events.adapter import ops4st, ops4st_standard
from fencepost.papers.events.glr import GreedyRectangles
from fencepost.papers.events.notation.event import parse_ops4st_event
from fencepost.papers.events.notation.subscription import parse_ops4st, render_ops4st

__all__ = [
    "GreedyRectangles",
    "ops4st",
    "ops4st_standard",
    "parse_ops4st",
    "parse_ops4st_event",
    "render_ops4st",
]
