"""`fencepost serve`: subscriptions over the network, events in, messages out."""
