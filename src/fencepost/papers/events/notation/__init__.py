"""The notation of OPS4ST (Hu, Jin, Chen, Zhang, Zhuo 2011), read into the tree of CQL2 and written.

    subscription := operator subscription | ( predicate ; predicate ; ... ) | ( subscription )
    operator     := @(R)    | OVLP(R) | SPL(R [; d]) | DIST(R ; < ; l)
                  | IN(sub) | OVLP(sub) | SPL(sub ; d) | DIST(sub ; < ; l)
    R            := (x,y) , (x,y) , ... | Circle(x,y,r)
    predicate    := STRING:name = "text" | ARITH:name < 5 | ...

A subscription whose operators have regions only is a condition on one event, and becomes a tree of
CQL2. An operator that has a subscription relates two events: the reader returns a `Composed`, and
`subscription` turns it into a `Composite`. `docs/ops4st.md` has the meaning of the operators.

- `event`: `parse_ops4st_event`, which reads events: ``ARITH:id=7,STRING:type="TAXI",time,x,y``
- `location_conditions`: operators with regions as conditions of CQL2, and the reverse
- `notation_lexer`: the tokens of a text
- `notation_reader`: the reader of subscriptions
- `subscription`: `parse_ops4st` and `render_ops4st`, which read and write subscriptions
"""
