"""An index on disk: a folder with a manifest and a folder for each segment.

- `file_checksums`: Checksums of the files of segments, and when they are compared
- `folder_lock`: Excludes other writers from the folder of an index
- `index_folder`: Saves a matcher's subscriptions to a folder, and opens them
- `known_versions`: `KnownVersions`: which version of an index a matcher holds, by folder
- `manifest`: The manifest of an index: its JSON, encoded and strictly decoded
- `segment_bytes`: A segment as bytes, for pickles
- `segment_files`: Writes and opens segment folders, and marks rows deleted in them
- `verification`: `verify`: compares all files of a saved index with their checksums
"""
