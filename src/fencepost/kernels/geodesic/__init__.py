"""Distances on the WGS84 ellipsoid."""
