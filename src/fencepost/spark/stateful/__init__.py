"""Composites and tracked objects on DataFrames, with state in Spark's state store.

- `detection_frames`: `detect`, which finds composites
- `tracking_frames`: `track`, which reports when moving objects enter, leave and dwell
"""
