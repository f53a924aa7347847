"""Regions in Siena Fast Forwarding: Konstantinidis, Carzaniga and Wolf.

"A Content-Based Publish/Subscribe Matching Algorithm for 2D Spatial Objects", Middleware 2011,
doi:10.1007/978-3-642-25821-3_11. `algorithm1` samples the relation of two polygons (section 3),
`crtree` indexes constraints on regions (4.1), `sff` forwards messages by them (2.2).

`adapter` is what the rest of Fencepost meets: `Matcher(index="cr-tree")` is
`Matcher(index=cr_tree())`, and `cr_tree(density=...)` relates by Algorithm 1.
"""

from fencepost.papers.regions.adapter import cr_tree, relate_by_samples, sff
from fencepost.papers.regions.algorithm1 import relations_sampled

__all__ = ["cr_tree", "relate_by_samples", "relations_sampled", "sff"]
