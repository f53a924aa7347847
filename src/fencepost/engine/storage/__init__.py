"""An index on disk: a folder with a manifest and a folder for each segment.

- `folder_lock`: Excludes other writers from the folder of an index
- `index_folder`: Saves a matcher's subscriptions to a folder, and opens them
- `manifest`: The manifest of an index: its JSON, encoded and strictly decoded
- `segment_files`: Writes and opens segment folders, and marks rows deleted in them
"""
