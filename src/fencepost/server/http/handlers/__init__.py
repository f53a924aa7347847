"""Handlers of the HTTP operations, one module for each resource.

- `admin`: keys, dead letters, statistics, and metrics for Prometheus
- `console_data`: data for the console: the caller, the map, and matches
- `endpoints`: endpoints of subscribers, and retries of dead letters
- `events`: publishing events, and reading the log
- `preview`: trying an expression, and explaining why an event matches
- `subscribers`: subscribers, their messages, and acknowledgements
- `subscription_requests`: creating, replacing, removing and listing subscriptions
"""
