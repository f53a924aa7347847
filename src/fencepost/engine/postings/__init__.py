"""Postings: filters under the words and strings that they need."""
