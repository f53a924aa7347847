"""Compares this checkout with an earlier revision, by turns: results and times."""
