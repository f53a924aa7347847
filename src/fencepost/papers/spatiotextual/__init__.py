"""Location-aware publish/subscribe: Li, Wang, Wang and Feng.

"Location-Aware Publish/Subscribe", KDD 2013. Subscriptions are token sets with rectangles, messages
are token sets with a point or a rectangle; `trees.build` makes the Rt-tree (section 3), the
Rt+-tree (4), the Rt++-tree (5), and what they are compared with (2.2).

`trees` take changes one by one and are made of `parts`, which stay as they are. `packing` puts the
nodes together, `ordering` chooses which token of a subscription comes first (4.2), `token_tables`
lays out what the nodes keep of them, `search` and `counting` filter messages.

`adapter` makes them the index of a `Matcher`: `Matcher(index="rt++")` is
`Matcher(index=rt_plus_plus_tree())`.

- `adapter`: The Rt-trees as the table of a `Matcher`: each filter is an entry of a tree
- `mask_search`: Filtering messages by tables of masks: the Rt-tree, the Rt+-tree, spatial-first,
  the IR-tree
- `rt_packing`: The R-tree under all of the room's trees, packed along the Hilbert curve
- `static_trees`: Trees that stay as they are, one class for each way to lay them out: what
  `trees` is made of
- `token_counting`: Filtering messages by counting: the Rt++-tree, and the keyword-first method
- `token_order`: In which order the tokens of a subscription are used: section 4.2
- `token_tables`: What the nodes keep of the tokens below them: hash tables in flat arrays
- `trees`: The room's trees as one object: built at once, changed one subscription at a time
"""

from fencepost.papers.spatiotextual.adapter import rt_plus_plus_tree, rt_plus_tree, rt_tree

__all__ = ["rt_plus_plus_tree", "rt_plus_tree", "rt_tree"]
