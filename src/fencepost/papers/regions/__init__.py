"""Regions in Siena Fast Forwarding: Konstantinidis, Carzaniga and Wolf.

"A Content-Based Publish/Subscribe Matching Algorithm for 2D Spatial Objects", Middleware 2011,
doi:10.1007/978-3-642-25821-3_11. `algorithm1` samples the relation of two polygons (section 3),
`crtree` indexes constraints on regions (4.1), `sff` forwards messages by them (2.2).

`adapter` is what the rest of Fencepost meets: `Matcher(index="cr-tree")` is
`Matcher(index=cr_tree())`, and `cr_tree(density=...)` relates by Algorithm 1.

- `adapter`: The system on regions as the rest of Fencepost meets it: indexes of a `Matcher`,
  Algorithm 1
- `algorithm1`: Algorithm 1: the relation of two simple polygons from samples of their boundaries
- `boundary_samples`: One walk along a boundary: which of *on*, *inside* and *outside* its samples
  are
- `constraint_counting`: Counting satisfied constraints: when a filter has as many as it has
  constraints, it holds
- `constraint_indexes`: Indexes of the distinct constraints on one attribute, for each type of
  value
- `crtree`: The CR-tree: constraints on regions, insertable and removable at any time
- `crtree_packing`: A whole R-tree put together at once, into the nodes that insertion would fill
  one by one
- `crtree_search`: Searching a CR-tree: which constraints a message's region satisfies
- `guttman`: Guttman's R-tree in flat arrays, each node with the number of `disjoint` constraints
  below it
- `sff`: Siena Fast Forwarding: which interfaces, or subscriptions, a message is forwarded to
"""

from fencepost.papers.regions.adapter import cr_tree, relate_by_samples, sff
from fencepost.papers.regions.algorithm1 import relations_sampled

__all__ = ["cr_tree", "relate_by_samples", "relations_sampled", "sff"]
