"""Readers of geometries: each form of input into the same flat arrays.

- `any_form`: Geometry in any accepted form into flat arrays: the front door of the readers
- `arrow_columns`: Arrow columns into flat arrays: WKB, WKT, and GeoArrow's native encodings
- `geoarrow_columns`: Geometry columns of tables that name themselves
- `geojson`: GeoJSON mappings and objects with `__geo_interface__` into flat arrays, one row at a
  time
- `raw_shapes`: Geometries as they were read: flat ragged arrays, nothing closed, turned or judged
  yet
- `shapely_objects`: Shapely geometries and WKT into flat arrays, with Shapely's vectorised
  functions
- `single_geometry`: The coordinates of one geometry, or of a few, at the least cost
- `wkb`: Well-known binary into flat arrays: WKB, ISO WKB and EWKB in either byte order
"""
