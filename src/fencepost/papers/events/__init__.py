"""Spatial event detection: Hu, Jin, Chen, Zhang and Zhuo, OPS4ST (2011).

A unary location subscription is a spatial operator with a region in front of an atomic
subscription, which is a conjunction of predicates. `standard` tries every one on every event, as
their standard version does (its kernel is in `trying`); `multilevel` is the index of their
optimised one (section 3.3; `searching`). Both decide predicates and operators by `deciding`, on
what `layout` lays out: so their times differ by the index alone.
"""
