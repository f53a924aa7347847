"""Events of DataFrames matched against an index.

- `match_frames`: Events of a DataFrame against an index, in `mapInArrow`
- `observed_metrics`: What a stream tells of its micro-batches: aggregates of rows that pass
  points of the plan
- `open_indexes`: The indexes that a Spark worker process has mapped: opened once, kept while they
  are of use
- `part_routing`: Which parts of an index an event may find anything in
- `stream_progress`: The figures of each micro-batch of a stream that matches, through a listener
  of Spark
"""
