"""Subscriptions that remember: composites and tracked objects."""
