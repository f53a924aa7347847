"""Events as columns, and the kinds of checks that compare them.

- `check_kinds`: The kinds of checks, one entry each: what a check is in a filter, and what in
  arrays
- `column_registry`: Which columns the subscriptions of a matcher ask for, and where each is kept
- `event_columns`: Events as the columns that checks compare
- `event_items`: The lists of events, and the words of their texts, as items
- `single_event_layout`: One event as the kernels of `one_event` take it, at the least cost
"""
