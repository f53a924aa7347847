"""Matching of events against segments of subscriptions.

- `check_evaluation`: Evaluation of the checks of a filter
- `check_prefetch`: Prefetching of the memory that checks read
- `match_scores`: Scores of the matches of one event
- `match_scratch`: Arrays that a thread reuses from match to match
- `posting_matches`: From hits among keyword postings to matches and candidates
- `posting_search`: Search of keyword postings for a batch of events
- `region_points`: Search of regions for events that are points, in batches
- `region_walk`: Search of regions for one event of any geometry
- `result_pairs`: Ordering and numbering of pairs of an event and a subscription
- `segment_search`: Search of segments: candidates, then their checks; start reading here
- `signature_keys`: Posting words that stand for strings in several columns
- `single_event`: Matching of one event in one call
- `subscription_contents`: Keywords and spatial bounds of subscriptions
- `word_string_keys`: Posting words that stand for a word and a string
"""
