"""Subscriptions that remember: composites and tracked objects.

- `composite_subscriptions`: Composites: several events that answer a subscription together
- `subscription_kind`: What kinds of subscription have in common, and what they find
- `tracked_subscriptions`: Tracked subscriptions: what moving objects do to them
"""
