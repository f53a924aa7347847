"""Composites and tracked objects on DataFrames."""
