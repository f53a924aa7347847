"""`subscribe_fences`: a subscription for each feature of a file, by a relation to its geometry.

`FenceOptions` says how a feature becomes a subscription.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from fencepost.engine.fence_subscriptions import RelationName, make_fence
from fencepost.engine.matcher import DeadLetters, Matcher
from fencepost.formats.dead_letters import DeadLetter, DeadLetterHandler, shorten
from fencepost.formats.event_files import EventFile
from fencepost.formats.feature_writer import features, json_text
from fencepost.formats.file_formats import name_advice
from fencepost.formats.file_matching import Progress, repeated_id_message
from fencepost.formats.json_elements import InvalidRowError
from fencepost.geometry.crs import Transformation
from fencepost.geometry.space import Space


@dataclass(frozen=True, slots=True)
class FenceOptions:
    """How features become subscriptions; see `Matcher.subscribe_frame`.

    Attributes
    ----------
    relation : str
    distance : float or None
    attribute : str
    where : str or None
    id : str or None
        The property of features that is the id of the subscription. By default, the id of the
        feature, or else its number in the file, from 0.
    """

    relation: RelationName
    distance: float | None = None
    attribute: str = "geometry"
    where: str | None = None
    id: str | None = None

    def check(self, space: Space) -> None:
        """Raise ModelError if the options do not fit together."""
        make_fence(
            self.relation,
            space=space,
            distance=self.distance,
            attribute=self.attribute,
            where=self.where,
        )


def subscribe_fences(
    matcher: Matcher,
    file: EventFile,
    options: FenceOptions,
    on_dead_letter: DeadLetterHandler,
    progress: Progress,
    transformation: Transformation | None = None,
) -> int:
    """Add the features of a file as subscriptions, each of which is a fence. Return their number.

    Features that cannot be fences become dead letters.
    """
    added = 0
    for batch in file:
        values = features(batch, np.arange(len(batch)), file.geometry)
        if transformation is not None:
            values = _transformed(values, transformation)
        rows: list[dict[str, object]] = []
        numbers: list[int] = []  # of each of `rows` in the batch
        bad: DeadLetters = []
        for number, feature in enumerate(values):
            try:
                id = _id(feature, options.id, int(batch.rows[number]))
                if isinstance(id, str | int) and id in matcher:
                    raise InvalidRowError(repeated_id_message(id))
                rows.append({"id": id, "geometry": _geometry(feature)})
            except InvalidRowError as error:
                bad.append((number, str(error)))
            else:
                numbers.append(number)
        bad_rows: DeadLetters = []
        added += matcher.subscribe_frame(
            rows,
            id="id",
            relation=options.relation,
            distance=options.distance,
            attribute=options.attribute,
            where=options.where,
            dead_letters=bad_rows,
        )
        bad += [(numbers[row], reason) for row, reason in bad_rows]
        for number, reason in sorted(bad):
            line = None if batch.lines is None else int(batch.lines[number])
            raw = shorten(json_text(values[number]))
            row = int(batch.rows[number])
            on_dead_letter(DeadLetter(file.name, row, reason, raw, line))
        progress(batch.done)
    return added


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
