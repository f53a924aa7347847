"""This checkout beside an earlier revision, by turns: equal answers, and the time each takes."""
