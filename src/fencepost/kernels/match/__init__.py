"""Events against segments of subscriptions.

- `check_evaluation`: The checks of a filter, one by one: what a condition compares of an event,
  in a record
- `check_prefetch`: Asking for the memory that checks will read, before they are evaluated
- `match_scratch`: What a thread reuses from match to match, and how it grows
- `posting_matches`: Posted filters, by words and by strings, for several events in one go: looked
  for, then decided
- `posting_search`: Events' words and places against posted filters, laid out as `posts_arrays`
  says
- `region_points`: Points against regions, many events at a time
- `region_walk`: Which of many regions stand in a wanted relation to an event, without looking at
  most of them
- `result_pairs`: Pairs of events and subscriptions: brought into the order of the events,
  numbered, sorted
- `segment_search`: Events against a segment of subscriptions: candidates from the access paths,
  then their checks
- `signature_keys`: Strings, and the place beside them, as one posting
- `single_event`: One event from its values to what it matches, in one call
- `word_string_keys`: Words together with a string of another column
"""
