"""Distances on the WGS84 ellipsoid.

- `edge_distance`: How far apart two edges are on the WGS84 ellipsoid, where edges are straight in
  lon/lat
- `farthest_distance`: How far apart two shapes are at most on the WGS84 ellipsoid: metres,
  coordinates lon/lat
- `geodesics`: Geodesics between two points of the WGS84 ellipsoid: how long, and in which
  directions
- `shape_distance`: Whether two shapes are near each other on the WGS84 ellipsoid: metres,
  coordinates lon/lat
"""
