"""The notation of OPS4ST (Hu, Jin, Chen, Zhang, Zhuo 2011), read into the tree of CQL2 and back.

    subscription := operator subscription | ( predicate ; predicate ; ... ) | ( subscription )
    operator     := @(R)    | OVLP(R) | SPL(R [; d]) | DIST(R ; < ; l)
                  | IN(sub) | OVLP(sub) | SPL(sub ; d) | DIST(sub ; < ; l)
    R            := (x,y) , (x,y) , ... | Circle(x,y,r)
    predicate    := STRING:name = "text" | ARITH:name < 5 | ...

With regions only, it is a condition on one event, and becomes the tree that CQL2 would give. With
subscriptions in operators it relates several events: a `Composed`, out of which `subscription`
makes a `Composite`. `docs/ops4st.md` has the meaning of the operators.

- `event`: Events in the notation: ``ARITH:id=7,STRING:type="TAXI",time,x,y``
- `location_conditions`: Where an event has to be, as conditions of CQL2 on its geometry; and such
  conditions again
- `notation_lexer`: Texts in the notation into tokens
- `notation_reader`: Subscriptions in the notation into trees
- `subscription`: Subscriptions of OPS4ST, as expressions or composites, and back into the
  notation
"""
