"""Moving objects: which enter, leave, cross or stay in fences, and which come near each other.

- `fence_visits`: `ObjectState`: which fences an object is in, and the notifications of a change
- `fences`: `Fences`: which fences a position is in; `PathMatcher`: which a path passes through
- `notification`: `Notification`: what is reported of a moving object; kinds and order
- `checkpoint_json`: Checkpoints of tracked objects, and positions, as JSON and back
- `point_conditions`: Conditions on paths and on near points, derived from conditions on points
- `position_batches`: `PositionBatch`: which positions of a batch can change the state of an object
- `positions`: `Position`, `Positions`: read from events and from tables
- `reorder_buffer`: `ReorderBuffer`: positions in the order of their times
- `roaming`: `Roaming`: which moving objects come near each other, and part again
- `tracker`: `Tracker`: reads positions, and reports what the objects do to fences
"""
