"""Postings: filters stored under the words and strings that they need.

- `keyword_postings`: Lays out postings from rows, and returns the rows for a merge
- `posting_passes`: Chooses the filters of a new segment to post, and their words and strings
"""
