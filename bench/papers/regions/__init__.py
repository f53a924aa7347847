"""The experiments of Konstantinidis, Carzaniga and Wolf on regions, and three of our own.

`run` names them; `figures/` holds one module each. `shapes` and `workloads` make the input,
`peers` (Shapely), `faithful` (the paper's method) and `ours` match it, `checking` compares the
answers with the exact relation, one by one, and `published` holds the paper's numbers.
"""
