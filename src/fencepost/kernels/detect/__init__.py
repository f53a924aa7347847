"""Joins of events that composites ask for.

- `join_partners`: An event that arrives, and all that it makes a pair with: one call from its
  corners to rows
- `member_grid`: Live members: what may still be part of a detection, found by pool, place and
  time
"""
