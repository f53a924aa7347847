"""Composites and tracked objects on DataFrames.

- `detection_frames`: Composite detection on DataFrames, in two stages
- `tracking_frames`: Moving things on DataFrames: a `Tracker` for each object, its state in
  Spark's state store
"""
