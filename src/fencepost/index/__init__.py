"""Segments: immutable bundles of flat arrays that hold many subscriptions."""
