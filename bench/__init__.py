"""Benchmarks, which are part of a source checkout and are not installed."""
