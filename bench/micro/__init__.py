"""Timings of single operations, each module with `run` (measure) and `render` (show)."""
