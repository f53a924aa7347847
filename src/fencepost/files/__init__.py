"""Events, subscriptions and matches in files: what the command line reads and writes."""
