"""Readers of geometries: each input format into the same flat arrays.

- `any_format`: reads geometries of any accepted format; the entry point of the readers
- `arrow_columns`: reads Arrow columns of WKB, WKT, GeoArrow's native encodings and GeoJSON
- `collections`: makes rows of the members of geometry collections, and the reverse
- `geoarrow_columns`: gives native GeoArrow columns of tables a type that names the encoding
- `geojson`: reads GeoJSON mappings and objects with `__geo_interface__`
- `geojson_columns`: GeoJSON geometries in Arrow columns, also as Spark infers their types
- `raw_shapes`: `RawShapes`, ragged arrays of geometries before validation, and reasons of bad rows
- `shapely_objects`: reads Shapely geometries and WKT with Shapely's vectorised functions
- `single_geometry`: reads one geometry, or a few, faster than the readers of columns
- `wkb`: reads WKB, ISO WKB and EWKB in either byte order
"""
