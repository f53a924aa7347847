"""Exact relations and distances of shapes in the plane.

- `area_edges`: An area's edges, ready for many side tests: of boxes, of points, of other areas'
  vertices
- `area_rasters`: Areas as bits on a grid: which cells an area touches, fills, or certainly
  reaches into
- `area_relations`: What the boundaries of two areas do to each other
- `boundary_contacts`: What two boundaries do at a place where they touch, exactly and without
  constructing a point
- `box_contact`: Whether a geometry has a point in common with a box
- `convex_hulls`: Convex hulls of sets of points, where a point lies to one, and their centroids
- `de9im`: DE-9IM matrices as integers, and the eight relations they mean
- `edge_trees`: Walking the trees of boxes over shapes' edges, and the plain comparisons used on
  the way
- `hull_distance`: Two convex hulls: whether they meet, whether one is in the other, how far they
  are apart
- `orientation`: On which side of a line a point lies, exactly, for every finite double
- `planar_distance`: How far apart two shapes are in the plane: in doubles, with error bounds that
  always hold
- `point_location`: Where a point lies in a shape: 1 in its interior, 0 on its boundary, -1
  outside
- `relation_matrix`: The DE-9IM of two shapes that are not both areas, exactly, from their points
  alone
- `shape_arrays`: How geometries lie in memory, and the kernels that lay them out
- `shape_layout`: From ragged coordinates to checked `ShapeArrays`, and from one set of arrays to
  another
- `spatial_functions`: Whether the OGC's spatial functions hold, given a DE-9IM matrix
- `validity`: Whether areas obey the OGC's rules, exactly, and where a shape touches itself
- `wkb_decoder`: Columns of well-known binary as coordinates, with a reason for each row that
  cannot be used
"""
