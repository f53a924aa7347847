"""An index on disk: its manifest, its segment files, the folder that holds both.

- `index_folder`: A matcher's subscriptions in a folder: one folder a segment, a manifest that
  names them
- `manifest`: The manifest of an index: what its JSON says, decoded strictly
- `segment_files`: Segments in folders, one each: written, opened, and rows deleted by who has not
  opened them
"""
