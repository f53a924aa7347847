"""Location-aware publish/subscribe: Li, Wang, Wang and Feng.

"Location-Aware Publish/Subscribe", KDD 2013. Subscriptions are token sets with rectangles, messages
are token sets with a point or a rectangle; `trees.build` makes the Rt-tree (section 3), the
Rt+-tree (4), the Rt++-tree (5), and what they are compared with (2.2).

`trees` take changes one by one and are made of `parts`, which stay as they are. `packing` puts the
nodes together, `ordering` chooses which token of a subscription comes first (4.2), `token_tables`
lays out what the nodes keep of them, `search` and `counting` filter messages.

`adapter` makes them the index of a `Matcher`: `Matcher(index="rt++")` is
`Matcher(index=rt_plus_plus_tree())`.
"""

from fencepost.papers.spatiotextual.adapter import rt_plus_plus_tree, rt_plus_tree, rt_tree

__all__ = ["rt_plus_plus_tree", "rt_plus_tree", "rt_tree"]
