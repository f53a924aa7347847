"""Durable state of a server: subscriptions, events, messages, cursors and keys, in SQLite."""
