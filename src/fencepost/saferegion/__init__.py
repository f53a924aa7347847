"""Safe regions: where an object's events match nothing, so that it need not send them."""
