"""Events against segments of subscriptions."""
