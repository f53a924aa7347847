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
