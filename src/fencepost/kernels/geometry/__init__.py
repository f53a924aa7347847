"""Exact relations and distances of shapes in the plane."""
