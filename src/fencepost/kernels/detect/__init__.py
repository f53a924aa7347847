"""Detection of composite events: live members, and the join that completes pairs.

- `join_partners`: The partners of a new event in composites of two members, in one call
- `member_grid`: Live members of composite events, in hash grids by pool, place and time
"""
