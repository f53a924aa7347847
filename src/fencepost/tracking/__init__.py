"""Moving things: who enters, leaves, crosses or stays where, and who is near whom.

- `fence_visits`: In which fences an object is, and what becomes of that with each position
- `fences`: Which fences a position is in, and which ones a way passes through
- `notification`: `Notification`: what is told of a moving thing, and in which order
- `checkpoint_json`: What a tracker knows of an object, as JSON
- `point_conditions`: What a condition on a point asks of the way to it, and of its surroundings
- `position_batches`: Many positions at once: which of them change something
- `reorder_buffer`: Positions in the order of their times, though they arrive in another
- `positions`: Positions of moving objects, read from events and from rows of tables
- `roaming`: `Roaming`: which moving things come near each other, and part again
- `tracker`: `Tracker`: positions of moving objects in, what they do to fences out
"""
