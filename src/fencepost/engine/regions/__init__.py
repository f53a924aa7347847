"""The region index: regions that filters relate events to, laid out for a walk by a kernel.

- `region_index`: Builds the index: small regions in trees, large ones in lists with rasters
"""
