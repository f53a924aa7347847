"""Safe regions: where an object's events match nothing, so that it need not send them.

- `client_rule`: The client's rule: whether an event must be sent
- `free_space`: A window round an object, less what it must keep out of: how regions are found by
  default
- `issued_regions`: Which regions are out there, so that they can be withdrawn: by object, and by
  where they are
- `match_zones`: What a filter wants of an object that moves: where it would match, and what else
  it must be
- `nearby_filters`: Which filters concern an object near a place: an index of where they can match
- `safe_regions`: `SafeRegions`: where the objects of a matcher's events need not send them
- `subscription_places`: Where many subscriptions can match, by what a matcher's view says that
  they require: none is made an object of
- `zones`: Zones: where a point makes a spatial condition true, from outside and from within
"""
