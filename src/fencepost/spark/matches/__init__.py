"""Events of DataFrames matched against an index."""
