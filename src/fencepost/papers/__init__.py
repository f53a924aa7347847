"""Three published systems, built as their papers describe them and corrected where these are wrong.

Each system has a subpackage. A `Matcher` can use each of them as its index, to compare with.

Outside this package only the command `warmup` imports them; `engine.index_registry` finds their
indexes by name. A subpackage may import the engine, but never another subpackage; all three share
`table_engine`. Each module says where it differs from its paper, and the tests hold a
counterexample to each mistake in print.

- `events/`: OPS4ST, detection of events in space: Hu, Jin, Chen, Zhang and Zhuo (2011)
- `regions/`: Siena Fast Forwarding with regions: Konstantinidis, Carzaniga and Wolf (2011)
- `spatiotextual/`: location-aware publish/subscribe: Li, Wang, Wang and Feng (2013)
- `table_engine`: the engine by which a `Matcher` uses a published system
"""
