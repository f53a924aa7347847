"""Timings of single operations: each module has `run`, which measures, and `render`."""
