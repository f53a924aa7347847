"""Exact relations and distances of shapes in the plane.

- `area_edges`: An area's edges in arrays for fast side tests
- `area_rasters`: Rasters of areas: grid cells that an area touches, fills or reaches into
- `area_relations`: The exact relation of two areas
- `boundary_contacts`: Where a direction leads from a point of an area's boundary
- `box_contact`: Exact tests of a geometry against a box
- `convex_hulls`: Convex hulls, location of points in hulls, centroids
- `crossing_order`: The order in which two edges cross a third one, exact for finite doubles
- `de9im`: DE-9IM matrices as integers, and the eight relations that they stand for
- `edge_trees`: Traversal of the box trees over the edges of shapes
- `hull_distance`: Relations and distances of two convex hulls
- `hypotenuse`: The length of a vector, rounded once
- `mixed_matrix`: The exact DE-9IM of two shapes of which at least one is mixed
- `mixed_parts`: The points, lines and areas of a mixed shape as shapes of one kind
- `orientation`: On which side of a line a point lies, exact for finite doubles
- `planar_distance`: Distances of shapes in the plane, with error bounds
- `point_location`: Location of a point in a shape: interior, boundary or exterior
- `relation_matrix`: The exact DE-9IM of two shapes that are not both areas
- `shape_arrays`: `ShapeArrays`, the memory layout of geometries
- `shape_layout`: From ragged coordinates to checked `ShapeArrays`; copies of shapes
- `spatial_functions`: The spatial functions of the OGC, decided from a DE-9IM matrix
- `validity`: Validity of areas by the OGC's rules; contacts of shapes with themselves
- `wkb_decoder`: Columns of well-known binary as coordinates
"""
