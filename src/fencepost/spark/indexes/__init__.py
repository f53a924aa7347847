"""Indexes on Spark: built, divided into parts, compacted, opened.

- `build_tasks`: What runs on the workers when an index is built: batches of rows in, batches of
  rows out
- `compaction`: Segments of an index that are rewritten together, so that updates do not leave
  ever more of them
- `file_cache`: Files of a store on the disk of a worker, as many bytes of them as there is room
  for
- `index_build`: Building an index of subscriptions on Spark: validated, divided into parts,
  written by workers
- `index_folders`: Where an index lies: a folder that is mapped in place, or an object store with
  a cache on disk
- `partition_cuts`: Which part each subscription belongs to: where it lies, and the cuts that a
  sample made
- `simplification`: Simplifying subscriptions on Spark, and finding which of one subscriber cover
  others
- `subscription_rows`: Rows of a table of subscriptions to a matcher of them; bad rows get a
  reason
"""
