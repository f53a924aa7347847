"""The experiments of Li, Wang, Wang and Feng on spatio-textual subscriptions, and three of our own.

`run` names them; `figures/` holds one module each. `token_sets`, `places` and `workloads` make the
input; `faithful` (the paper's trees and baselines), `rarest` (a compiled list that one would write
by hand) and `ours` match it; `measuring` times them and compares their answers with one another and
with `brute_force`; `latency` measures what the machine's memory allows; `claims` says which of the
paper's orders came out; `published` holds the paper's numbers.
"""
