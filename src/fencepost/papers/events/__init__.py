"""OPS4ST, detection of events in space: Hu, Jin, Chen, Zhang and Zhuo (2011).

Journal of Software 22 (Supplement 2), 2011. The package has both versions of their server, their
notation and their safe regions. The two versions share the evaluation of predicates and operators,
so their times differ by the index alone. `Matcher(index="ops4st")` is `Matcher(index=ops4st())`.

==============================  ==================================================================
the paper                       meaning
==============================  ==================================================================
predicate                       a condition on one attribute, such as ``ARITH:age>30``
atomic subscription             a conjunction of predicates
spatial operator                ``@``, ``OVLP``, ``SPL`` or ``DIST``: how an event's location is
                                related to a region
unary location subscription     an operator with a region, in front of an atomic subscription
composite                       an operator with a subscription instead of a region
standard version                evaluates each subscription for each event (section 3.1)
optimised version               searches the multi-level index (section 3.3)
GLR                             greedy largest rectangle: the safe region (section 3.2)
==============================  ==================================================================

- `notation/`: the notation of OPS4ST, read into the tree of CQL2 and written
- `adapter`: both versions as indexes of a `Matcher`
- `glr`: the greedy largest rectangle around a point
- `index_search`: the kernels that search the multi-level index and scan all subscriptions
- `multilevel`: the multi-level index of the optimised version
- `ops4st_arrays`: arrays of subscriptions and events, which both versions use
- `predicate_checks`: the kernels that evaluate predicates and operators
- `standard`: the standard version, which has no index
"""

from fencepost.papers.events.adapter import ops4st, ops4st_standard
from fencepost.papers.events.glr import GreedyRectangles
from fencepost.papers.events.notation.event import parse_ops4st_event
from fencepost.papers.events.notation.subscription import parse_ops4st, render_ops4st

__all__ = [
    "GreedyRectangles",
    "ops4st",
    "ops4st_standard",
    "parse_ops4st",
    "parse_ops4st_event",
    "render_ops4st",
]
