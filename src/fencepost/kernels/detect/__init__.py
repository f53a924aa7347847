"""Joins of events that composites ask for."""
