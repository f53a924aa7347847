"""What a person at a map wants to see: where subscriptions are, and events as they come."""
