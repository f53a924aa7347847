"""Matching places: the relations between their geometries."""
