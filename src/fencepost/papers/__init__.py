"""Published systems, each in a subpackage of its own: as printed, corrected where that is wrong.

Nothing else of Fencepost imports them but the command `warmup`; `engine.index_registry` finds their
indexes by name. A subpackage may import the engine, never another one: what they share is
`table_engine`, by which a `Matcher` uses them and what they find is verified. The modules say where
they differ from their paper, and the tests hold a counterexample to each printed mistake.

- `events/`: Spatial event detection: Hu, Jin, Chen, Zhang and Zhuo, OPS4ST (2011)
- `regions/`: Regions in Siena Fast Forwarding: Konstantinidis, Carzaniga and Wolf
- `spatiotextual/`: Location-aware publish/subscribe: Li, Wang, Wang and Feng
- `table_engine`: Published systems as the index of a `Matcher`: tables of subscriptions that
  follow the shelves
"""
