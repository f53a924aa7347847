"""Data for the console: a live feed of events, and a map of subscriptions.

- `live_feed`: `LiveFeed`: a sample of committed events for browsers
- `map_shapes`: `shapes_of`: the geometries of a subscription, simplified for drawing
- `subscription_map`: `SubscriptionMaps`: the shapes of all subscriptions of a tenant
"""
