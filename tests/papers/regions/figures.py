"""The worked example of the paper on regions: the message of Fig. 1, the table of Fig. 3."""

from __future__ import annotations

LEAK = "POLYGON ((23.1 10.9, 30.3 27, 48 19, 40 5, 23.1 10.9))"
CLOUD = "POLYGON ((10 5, 7 12, 30 20, 10 5))"
AREA = "POLYGON ((3 2, 15 40, 0 40, 3 2))"
FIGURE_1 = {"warning": "hazardous leak", "area": LEAK, "concentration": 172, "hazard": 4}
FIGURE_3 = {
    11: ("I1", "stock = 'MTK' AND price < 100"),
    12: ("I1", "stock = 'DYS' AND price > 200 AND bubble = TRUE"),
    21: ("I2", f"EH_OVERLAP(cloud, {CLOUD}) AND pressure < 1000"),
    22: (
        "I2",
        f"warning = 'hazardous leak' AND EH_DISJOINT(area, {AREA}) AND concentration > 100"
        " AND hazard > 3",
    ),
}
