"""Indexes on Spark: built, divided into parts, compacted, opened."""
