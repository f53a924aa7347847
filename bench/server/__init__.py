"""A server under load: events a second, and how long from publishing to delivery."""
