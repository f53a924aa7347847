"""An index on disk: its manifest, its segment files, the folder that holds both."""
