"""Explanations: why an event matches a subscription or not, and how events find a subscription.

- `explanation`: `Explanation`: the outcome of every condition; `PlannedFilter`: the access path
- `findings`: `Finding`: by how much a condition failed, or why its outcome is unknown
- `unusable_values`: `UnusableAttribute`: attributes that are missing or have an unsuitable type
"""
