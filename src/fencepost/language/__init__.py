"""Expressions: CQL2 text or JSON in, one tree out, and back to text or JSON."""
