"""Why an event matches a subscription or not."""
