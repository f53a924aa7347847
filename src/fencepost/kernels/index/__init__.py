"""The arrays that are searched: R-trees, postings, the memtable.

- `check_boxes`: Bounding boxes of checks
- `memtable_arrays`: Appending subscriptions to a memtable
- `posting_arrays`: The layout of keyword postings
- `posting_layout`: Building keyword postings
- `rtree`: Packed Hilbert R-trees
"""
