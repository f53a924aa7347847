"""Location-aware publish/subscribe: Li, Wang, Wang and Feng.

"Location-Aware Publish/Subscribe", KDD 2013, doi:10.1145/2487575.2487617. Subscriptions are token
sets with rectangles, messages are token sets with a point or a rectangle; `trees.build` makes the
Rt-tree (section 3), the Rt+-tree (4), the Rt++-tree (5), and what they are compared with (2.2).

`packing` puts the nodes together, `ordering` chooses which token of a subscription comes first
(4.2), `token_tables` lays out what the nodes keep of them, `search` and `counting` filter messages.
"""
