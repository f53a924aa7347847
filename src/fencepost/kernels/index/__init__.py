"""Arrays that are searched: R-trees, postings, the memtable."""
