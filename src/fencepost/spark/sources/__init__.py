"""Streams of events into Spark."""
