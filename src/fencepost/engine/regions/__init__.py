"""Regions of filters, as an index that a kernel walks.

- `region_index`: Regions laid out for the walk: small ones in trees, large ones in lists with
  rasters
"""
