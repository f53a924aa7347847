"""Moving things: who enters, leaves, crosses or stays where, and who is near whom."""
