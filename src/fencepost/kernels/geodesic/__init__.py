"""Distances on the WGS84 ellipsoid.

- `edge_distance`: The least distance of two edges that are straight in lon/lat
- `farthest_distance`: The greatest distance of two shapes
- `geodesics`: Geodesics between two points, and boxes around a distance
- `shape_distance`: The distance of two shapes, and whether it is within a bound
"""
