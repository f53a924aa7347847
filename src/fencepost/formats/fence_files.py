"""`read_fences`: a subscription for each feature of a file, `RELATION(geometry, the feature's)`.

`Fence` says how a feature becomes a subscription.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import shapely

from fencepost.cql2 import parse, render_json
from fencepost.cql2.keywords import NEAR_FUNCTIONS, SPATIAL_FUNCTIONS, suggest_function
from fencepost.errors import FencepostError, LanguageError
from fencepost.formats.dead_letters import DeadLetter, DeadLetterHandler, shorten
from fencepost.formats.event_files import Batch, EventFile
from fencepost.formats.feature_writer import features, json_text
from fencepost.formats.file_formats import name_advice
from fencepost.formats.json_elements import InvalidRowError
from fencepost.formats.subscription_files import SubscriptionFile, SubscriptionRow, subscription_row
from fencepost.geometry.crs import Transformation
from fencepost.geometry.space import DEFAULT_SPACE, Space

_RELATIONS = (*SPATIAL_FUNCTIONS, *NEAR_FUNCTIONS)


@dataclass(frozen=True, slots=True)
class Fence:
    """How features become subscriptions; `make_fence` checks the parts.

    Attributes
    ----------
    relation : str
        A spatial relation or a bound on a distance, in lower case.
    distance : float or None
        The bound.
    attribute : str
        The attribute of events that holds their geometry.
    id : str or None
        The property of features that is the id of the subscription. By default, the id of the
        feature, or else its number in the file, from 0.
    condition : CQL2 JSON or None
        A further condition on events.
    """

    relation: str
    distance: float | None
    attribute: str
    id: str | None
    condition: dict[str, Any] | bool | None

    def expression(self, geometry: object) -> dict[str, Any]:
        """Return the expression of a fence, in CQL2 JSON."""
        args: list[Any] = [{"property": self.attribute}, geometry]
        if self.distance is not None:
            args.append(self.distance)
        relation = {"op": self.relation, "args": args}
        if self.condition is None:
            return relation
        return {"op": "and", "args": [relation, self.condition]}


def make_fence(
    relation: str,
    *,
    distance: float | None = None,
    attribute: str | None = None,
    id: str | None = None,
    where: str | None = None,
    space: Space = DEFAULT_SPACE,
) -> Fence:
    """Return how features become subscriptions.

    Raises
    ------
    FencepostError
        If there is no such relation, if a distance is missing, superfluous or negative, or if
        `where` is no expression.
    """
    name = relation.lower()
    if name not in _RELATIONS:
        advice = suggest_function(relation, _RELATIONS)
        raise FencepostError(f"there is no relation {relation!r:.60} of geometries; {advice}")
    if name in NEAR_FUNCTIONS:
        if distance is None:
            raise FencepostError(
                f"{name.upper()} compares a distance; give one with --distance, in metres or, "
                "with --space planar, in the unit of the coordinates"
            )
        if not (isfinite(distance) and distance >= 0):
            raise FencepostError(f"--distance is {distance}; give a number of 0 or more")
    elif distance is not None:
        raise FencepostError(
            f"{name.upper()} compares no distance; leave out --distance, or give the relation "
            "S_DWITHIN"
        )
    condition = None
    if where is not None:
        try:
            condition = render_json(parse(where, space))
        except LanguageError as error:
            raise FencepostError(f"--where cannot be read: {error}") from None
    return Fence(name, distance, "geometry" if attribute is None else attribute, id, condition)


def read_fences(
    file: EventFile,
    fence: Fence,
    on_dead_letter: DeadLetterHandler,
    transformation: Transformation | None = None,
) -> SubscriptionFile:
    """Return the features of a file as subscriptions, each of which is a fence.

    Features without a geometry, and those without the property that is the id, become dead letters.
    Geometries are validated later, and ids compared, when the subscriptions are compiled.
    """
    batches = (
        (_fences(file, batch, fence, on_dead_letter, transformation), batch.done)
        for batch in file
        if len(batch)
    )
    return SubscriptionFile(file.name, file.total, batches)


def _fences(
    file: EventFile,
    batch: Batch,
    fence: Fence,
    on_dead_letter: DeadLetterHandler,
    transformation: Transformation | None,
) -> list[SubscriptionRow]:
    rows = []
    all_features = features(batch, np.arange(len(batch)), file.geometry)
    if transformation is not None:
        all_features = _transformed(all_features, transformation)
    for number, feature in enumerate(all_features):
        row = int(batch.rows[number])
        line = None if batch.lines is None else int(batch.lines[number])
        raw = shorten(json_text(feature))
        try:
            values = {
                "id": _id(feature, fence.id, row),
                "expression": fence.expression(_geometry(feature)),
            }
        except InvalidRowError as error:
            on_dead_letter(DeadLetter(file.name, row, str(error), raw, line))
        else:
            rows.append(subscription_row(values, row, line, raw))
    return rows


def _id(feature: dict[str, Any], name: str | None, row: int) -> object:
    properties = feature["properties"]
    if name is None:
        ids = (feature.get("id"), properties.get("id"))
        return next((id for id in ids if id is not None), str(row))
    if name not in properties:
        if name == "id" and "id" in feature:
            return feature["id"]
        raise InvalidRowError(
            f"it has no property {name}, which --id names; {name_advice(name, [*properties])}"
        )
    if properties[name] is None:
        raise InvalidRowError(f"its {name}, which --id names, is null; give it a value")
    return properties[name]


def _transformed(
    all_features: list[dict[str, Any]], transformation: Transformation
) -> list[dict[str, Any]]:
    """Return features with transformed geometries."""
    found = [feature["geometry"] for feature in all_features if feature.get("geometry")]
    shapes = np.array([shapely.geometry.shape(geometry) for geometry in found], object)
    moved = iter(shapely.transform(shapes, transformation.points, interleaved=False).tolist())
    return [
        {**feature, "geometry": shapely.geometry.mapping(next(moved))}
        if feature.get("geometry")
        else feature
        for feature in all_features
    ]


def _geometry(feature: dict[str, Any]) -> object:
    geometry = feature.get("geometry")
    if geometry is None and isinstance(feature["properties"].get("geometry"), str):
        return _from_wkt(feature["properties"]["geometry"])
    if geometry is None:
        raise InvalidRowError("it has no geometry, so it is no fence; give it one")
    return geometry


def _from_wkt(text: str) -> object:
    try:
        return shapely.geometry.mapping(shapely.from_wkt(text))
    except shapely.GEOSException:
        raise InvalidRowError(
            f"its geometry is {text!r:.60}, which is no well-known text; write it as in "
            "POINT (8.5 47.4)"
        ) from None
