"""Safe regions: regions in which a moving object's events match nothing, so it need not send them.

- `client_rule`: The rule of the client: an object sends an event only if it may match a
  subscription
- `free_space`: `SquareWindows`: makes a safe region of a window around an object, minus holes
- `issued_regions`: `IssuedRegions`: the safe regions that objects hold, by object and by place
- `match_zones`: `MatchZones`: where a filter can match a moving object, as outer and inner bounds,
  and which attributes it needs
- `nearby_filters`: `NearbyFilters`: finds the filters that can match an object in a window
- `safe_regions`: `SafeRegions`: makes, answers and withdraws the regions of a matcher's objects
- `subscription_places`: Where many subscriptions can match, read from a matcher's segments
- `zones`: `Zone`: a set of points in which a spatial condition holds, bounded from outside and from
  inside
"""
