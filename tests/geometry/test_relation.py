"""Relations as strings."""

from __future__ import annotations

import json

import pytest

import fencepost as fp


@pytest.mark.parametrize("relation", fp.Relation)
def test_a_relation_equals_its_name(relation: fp.Relation) -> None:
    name = relation.name.lower().replace("_", "-")
    assert relation == name == str(relation) == f"{relation}"
    assert fp.Relation(name) is relation is fp.Relation.from_code(relation.code)
    assert json.dumps([relation]) == json.dumps([name])
    assert name in {relation}
