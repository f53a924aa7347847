"""Postings: filters under the words and strings that they need.

- `keyword_postings`: Filters posted under words: laid out from rows, and rows again where
  segments are merged
- `posting_passes`: The passes of building a segment that post filters under what they need
"""
