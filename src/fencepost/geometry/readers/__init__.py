"""Readers of geometries: each form of input into the same flat arrays."""
