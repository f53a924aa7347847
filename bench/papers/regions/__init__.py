"""The experiments of Konstantinidis, Carzaniga and Wolf on regions, and three of our own.

`run` lists the figures; `figures/` has one module for each. `shapes` and `workloads` make the
input. `peers` (Shapely), `faithful` (the paper's method) and `ours` match it. `checking` compares
the answers with the exact relation of each pair. `published` has the paper's numbers.
"""
