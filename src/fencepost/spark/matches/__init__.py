"""Matching the events of DataFrames against an index.

- `match_frames`: `match`, and `plan`, which says how it would match
- `observed_metrics`: names and aggregates of the metrics that Spark observes in a stream
- `open_indexes`: the indexes that a worker process keeps open
- `part_routing`: routes events to the parts of an index that they may match
- `stream_progress`: the figures of each micro-batch, reported by a listener
"""
