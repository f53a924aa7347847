"""Events as columns, and the kinds of checks that compare them."""
