"""What a person at a map wants to see: where subscriptions are, and events as they come.

- `live_feed`: Events as they are committed, for whoever watches: a sample where there are too
  many
- `map_shapes`: The places that a subscription names, as simple shapes to be drawn
- `subscription_map`: Where the subscriptions of a tenant are, made when a map first asks, and
  kept up to date
"""
