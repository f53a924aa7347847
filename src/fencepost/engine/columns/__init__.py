"""Events as columns, and the kinds of checks that compare them.

- `check_kinds`: The kinds of checks: how each is encoded as a row, decoded and estimated
- `column_registry`: The columns of events that subscriptions compare, and their numbers
- `event_columns`: Encodes a table of events as columns
- `event_items`: Encodes the lists of events, and the words of their texts, as items
- `single_event_layout`: Encodes one event for the kernels of `single_event`
"""
