"""Kinds of subscription that keep state: composites and tracked objects.

- `composite_subscriptions`: `CompositeSubscriptions`: subscriptions that several events match
  together
- `subscription_kind`: `SubscriptionKind` and `StatefulKind`, the interfaces of kinds, and their
  values
- `tracked_subscriptions`: `TrackedSubscriptions`: subscriptions to what moving objects do
"""
