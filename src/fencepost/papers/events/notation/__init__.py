"""The notation of OPS4ST (Hu, Jin, Chen, Zhang, Zhuo 2011), read into the tree of CQL2 and back.

    subscription := operator subscription | ( predicate ; predicate ; ... ) | ( subscription )
    operator     := @(R)    | OVLP(R) | SPL(R [; d]) | DIST(R ; < ; l)
                  | IN(sub) | OVLP(sub) | SPL(sub ; d) | DIST(sub ; < ; l)
    R            := (x,y) , (x,y) , ... | Circle(x,y,r)
    predicate    := STRING:name = "text" | ARITH:name < 5 | ...

With regions only, it is a condition on one event, and becomes the tree that CQL2 would give. With
subscriptions in operators it relates several events: a `Composed`, out of which `subscription`
makes a `Composite`. `docs/ops4st.md` has the meaning of the operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.language.ops4st.read import Settings, read_subscription
    from fencepost.language.ops4st.render import render_condition
    from fencepost.language.ops4st.tree import Asked, Composed, Place, Region

__all__ = [
    "Asked",
    "Composed",
    "Place",
    "Region",
    "Settings",
    "read_subscription",
    "render_condition",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "read": ["Settings", "read_subscription"],
            "render": ["render_condition"],
            "tree": ["Asked", "Composed", "Place", "Region"],
        },
    )
