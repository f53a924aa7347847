"""Indexes on Spark.

- `build_tasks`: the tasks that workers run to build an index
- `compaction`: merges segments of an index, so that updates do not leave more and more of them
- `file_cache`: an LRU cache, on a worker's disk, of files from an object store
- `index_build`: `build_index`, which validates subscriptions, partitions them and writes segments
- `index_folders`: the folder of an index, local or in an object store
- `partition_cuts`: assigns subscriptions to parts, by where they lie
- `simplification`: `simplify`, which simplifies subscriptions and finds which one covers another
- `subscription_reader`: reads rows of a subscription table into a matcher
"""
