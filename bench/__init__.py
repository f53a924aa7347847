"""Benchmarks; they come with a source checkout and are not installed."""
