"""Scores of the matches of one event: its words, and its nearness to regions.

`docs/ranking.md` defines both. Sums of weights are exact before they are rounded once, so they do
not depend on the order of words. Each weight is the sum of two parts, a multiple of `COARSE_UNIT`
and the rest, such that doubles hold the sums of either part exactly.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.geodesic.geodesics import geodesic
from fencepost.kernels.geometry.hypotenuse import hypotenuse
from fencepost.kernels.runtime.compilation import inlined, kernel

# A weight is 0, or from ln 1.5 to ln 2**46. So it is a multiple of 2**-54 below 2**5, and doubles
# hold the sums of 2**21 weights' parts.
COARSE_UNIT = 2.0**-22


@kernel
def score_words(position, key, stride, event_keys, weights, totals, scores):
    """Write to `scores` which part of the event's words each subscription names, by weight.

    The whole is all words of the event in the fields in which the subscription names a word.
    Subscriptions without keywords keep their score.

    Parameters
    ----------
    position, key, stride
        Keywords of subscriptions; see `write_keywords`.
    event_keys : int64
        The keys of the event's words, ascending.
    weights : (words, 2) float64
        The parts of the weight of each word.
    totals : (fields, 2) float64
        The parts of the weight of all words of the event in each field.
    scores : float64
    """
    word_seen_by = np.full(event_keys.shape[0], -1, np.int64)
    field_seen_by = np.full(totals.shape[0], -1, np.int64)
    k = 0
    while k < position.shape[0]:
        p = position[k]
        named_coarse = named_fine = total_coarse = total_fine = 0.0
        while k < position.shape[0] and position[k] == p:
            field = key[k] // stride
            if field_seen_by[field] != p:
                field_seen_by[field] = p
                total_coarse += totals[field, 0]
                total_fine += totals[field, 1]
            word = np.searchsorted(event_keys, key[k])
            if (
                word < event_keys.shape[0]
                and event_keys[word] == key[k]
                and word_seen_by[word] != p
            ):
                word_seen_by[word] = p
                named_coarse += weights[word, 0]
                named_fine += weights[word, 1]
            k += 1
        total = total_coarse + total_fine
        if total > 0.0:  # 0 if all subscriptions were deleted after they matched
            scores[p] = (named_coarse + named_fine) / total


@kernel
def score_places(position, column, boxes, reach, event_boxes, scores):
    """Raise scores to the nearness of the event in the plane.

    All lengths are divided by 8, so that no sum of coordinates overflows.

    Parameters
    ----------
    position, column, boxes, reach
        Spatial bounds of subscriptions; see `write_bounds`.
    event_boxes : (columns, 4) float64
        The bounding box of the event in each geometry column; NaN without a geometry.
    scores : float64
    """
    for k in range(position.shape[0]):
        event_box = event_boxes[column[k]]
        if np.isnan(event_box[0]):
            continue
        x0, y0, x1, y1 = boxes[k, 0], boxes[k, 1], boxes[k, 2], boxes[k, 3]
        distance = hypotenuse(
            x0 / 16 + x1 / 16 - (event_box[0] / 16 + event_box[2] / 16),
            y0 / 16 + y1 / 16 - (event_box[1] / 16 + event_box[3] / 16),
        )
        radius = hypotenuse(x1 / 8 - x0 / 8, y1 / 8 - y0 / 8) / 2 + reach[k] / 8
        scores[position[k]] = max(scores[position[k]], _nearness(radius, distance))


@kernel
def score_places_m(number, position, column, boxes, reach, radii_m, event_boxes, scores):
    """Raise scores to the nearness of the event, with coordinates in degrees and reach in metres.

    Parameters
    ----------
    number, position, column, boxes, reach, event_boxes, scores
        As in `score_places`; also the number of each bound.
    radii_m : float64
        The distance from the centre of each bound's box to its farthest corner, by the bound's
        number. Where it is 0, it is computed and written.
    """
    for k in range(position.shape[0]):
        event_box = event_boxes[column[k]]
        if np.isnan(event_box[0]):
            continue
        x, y = (event_box[0] + event_box[2]) / 2, (event_box[1] + event_box[3]) / 2
        west, south, east, north = boxes[k, 0], boxes[k, 1], boxes[k, 2], boxes[k, 3]
        u, v = (west + east) / 2, (south + north) / 2
        distance = geodesic(x, y, u, v)[0]
        if radii_m[number[k]] == 0.0 and (west < east or south < north):
            radii_m[number[k]] = max(geodesic(u, v, west, south)[0], geodesic(u, v, west, north)[0])
        radius = radii_m[number[k]] + reach[k]
        scores[position[k]] = max(scores[position[k]], _nearness(radius, distance))


@inlined
def _nearness(radius, distance):
    """Return 1 at the middle of a box, even if its radius is 0."""
    return radius / (radius + distance) if distance > 0.0 else 1.0
