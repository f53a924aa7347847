"""From the tree of an expression to filters: which checks of which columns must hold."""
