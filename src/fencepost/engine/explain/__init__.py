"""Why an event matches a subscription or not.

- `explanation`: Why an event matched a subscription or not, condition by condition, and how one
  is found
- `findings`: What was found where a condition was looked at: by how much it failed, or why it is
  unknown
- `unusable_values`: Why a condition is unknown: attributes that are missing, or of a type that it
  does not take
"""
