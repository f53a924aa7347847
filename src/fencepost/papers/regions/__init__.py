"""Regions in Siena Fast Forwarding: Konstantinidis, Carzaniga and Wolf.

"A Content-Based Publish/Subscribe Matching Algorithm for 2D Spatial Objects", Middleware 2011,
doi:10.1007/978-3-642-25821-3_11. `algorithm1` samples the relation of two polygons (section 3),
`crtree` indexes constraints on regions (4.1), `sff` forwards messages by them (2.2).
"""
