"""The Rt-trees, location-aware publish/subscribe: Li, Wang, Wang and Feng.

"Location-Aware Publish/Subscribe", KDD 2013. A subscription is a token set with a rectangle, a
message is a token set with a point or a rectangle. A message matches a subscription if their
rectangles meet and the message has all tokens of the subscription. `trees.build` builds the Rt-tree
(section 3), the Rt+-tree (4), the Rt++-tree (5) and the baselines of the paper (2.2).
`Matcher(index="rt++")` is `Matcher(index=rt_plus_plus_tree())`.

==============  ==================================================================================
the paper       here
==============  ==================================================================================
s, m            a subscription, by the row that the caller gives it; a message
s.T, s.R        tokens (numbers) and box: x0, y0, x1, y1, closed
b, B            `min_entries` and `max_entries` of a node
n.T, TokenSet   the masks of a node's parent, or the lists of the node (`token_tables`)
H               the number of levels below the root
representative  the first token of a subscription in the order of section 4.2
==============  ==================================================================================

A *place* is the position of a subscription along the Hilbert curve; see `rt_packing`.

- `adapter`: the indexes for `Matcher`
- `mask_search`: kernels that search by masks: Rt-tree, Rt+-tree, spatial-first, IR-tree
- `rt_packing`: the R-tree under all trees, packed along the Hilbert curve
- `static_trees`: immutable trees, one class for each layout
- `token_counting`: kernels that count tokens: Rt++-tree, keyword-first
- `token_order`: the orders of the tokens of a subscription (section 4.2)
- `token_tables`: hash tables of the tokens below the nodes, in flat arrays
- `trees`: an index of several static trees, which accepts changes
"""

from fencepost.papers.spatiotextual.adapter import rt_plus_plus_tree, rt_plus_tree, rt_tree

__all__ = ["rt_plus_plus_tree", "rt_plus_tree", "rt_tree"]
