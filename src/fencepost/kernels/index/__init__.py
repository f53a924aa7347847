"""Arrays that are searched: R-trees, postings, the memtable.

- `check_boxes`: Where an event must be for a check about its geometry to be true: the bounding
  boxes of checks
- `memtable_arrays`: Adding subscriptions to a segment that has room behind what is there
- `posting_arrays`: Filters posted under one of the words they need: lists of boxes, in arrays
- `posting_layout`: Laying out posted filters: which word each stands under, in which order, in
  which blocks
- `rtree`: Packed Hilbert R-trees over boxes, many trees in one set of arrays
"""
