"""Siena Fast Forwarding with regions: Konstantinidis, Carzaniga and Wolf.

"A Content-Based Publish/Subscribe Matching Algorithm for 2D Spatial Objects", Middleware 2011,
doi:10.1007/978-3-642-25821-3_11. `Matcher(index="cr-tree")` is `Matcher(index=cr_tree())`;
`cr_tree(density=...)` uses Algorithm 1. `sff`, `crtree` and `algorithm1` have glossaries of the
paper's terms.

- `adapter`: the indexes for `Matcher`, and Algorithm 1 for two polygons
- `algorithm1`: Algorithm 1, the relation of two simple polygons from samples (section 3)
- `boundary_samples`: the kernel that walks along a boundary and classifies its samples
- `constraint_counting`: counts of satisfied constraints, and the filters that are complete
- `constraint_indexes`: indexes of the distinct constraints on one attribute, one for each type
- `crtree`: the CR-tree, an index of constraints on regions (section 4.1)
- `crtree_packing`: bulk loading of a CR-tree
- `crtree_search`: the search of a CR-tree, and the corrected Table 2
- `guttman`: Guttman's R-tree in flat arrays: insertion, deletion, splits
- `sff`: Siena Fast Forwarding: predicates, their constraints, and matching (section 2.2)
"""

from fencepost.papers.regions.adapter import cr_tree, relate_by_samples, sff
from fencepost.papers.regions.algorithm1 import relations_sampled

__all__ = ["cr_tree", "relate_by_samples", "relations_sampled", "sff"]
