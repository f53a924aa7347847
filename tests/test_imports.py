"""Tests import public names, so that what is behind them can change without its tests.

A file in `tests/` may import from Fencepost

- `fencepost` itself: its names, its packages, and the modules in `OPEN`;
- what a package's `__init__` offers in `__all__`, and what modules that are offered there have;
- the algorithm that it is about: `tests/<package>/test_<name>.py` is about the module
  `<package>/<name>.py`, and about the modules that `ABOUT` names for it.

Names that begin with an underscore are for their own module only, by import or by attribute.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import fencepost

TESTS = Path(__file__).resolve().parent
SOURCES = Path(fencepost.__file__).resolve().parent
FILES = sorted(TESTS.rglob("*.py"))

OPEN = {"cli", "errors", "testing"}

# By test file: what it is about, and the modules whose algorithm that is.
ABOUT: dict[str, tuple[str, set[str]]] = {
    "client/test_following.py": ("messages as they come", {"client.client_operations"}),
    "composite/test_partners.py": (
        "pairs beside joins",
        {"composite.pair_join_plan", "composite.joiner"},
    ),
    "composite/test_live_members.py": (
        "which members are found, in a hash grid",
        {"kernels.detect.member_grid"},
    ),
    "delivery/test_webhook_poster.py": ("when to try again", {"delivery.retry_schedule"}),
    "demo/test_map.py": ("the city on the map", {"demo.city"}),
    "formats/test_read_events.py": (
        "lines that are cut where a block ends",
        {"formats.line_batches"},
    ),
    "engine/test_signature_postings.py": (
        "the limit of signatures",
        {"engine.postings.posting_passes"},
    ),
    "engine/test_bounding_boxes.py": ("boxes of checks", {"engine.bounding_boxes"}),
    "engine/columns/test_event_columns.py": (
        "exact numbers of any type",
        {"engine.columns.event_columns"},
    ),
    "engine/columns/test_single_event_layout.py": (
        "one event as kernels write it, against tables",
        {"kernels.geometry.shape_layout", "kernels.match.single_event"},
    ),
    "engine/postings/test_keyword_postings.py": (
        "postings, from their layout to what is found in them",
        {
            "kernels.match.check_evaluation",
            "kernels.geometry.box_contact",
            "kernels.match.posting_matches",
            "kernels.match.posting_search",
            "kernels.index.posting_arrays",
            "kernels.match.match_scratch",
        },
    ),
    "kernels/geodesic/test_geodesics.py": (
        "distances on the ellipsoid, of points, edges and shapes",
        {"kernels.geodesic.edge_distance", "kernels.geodesic.shape_distance"},
    ),
    "kernels/test_geodesic_box.py": ("boxes within reach", {"kernels.geodesic.geodesics"}),
    "kernels/geometry/test_convex_hulls.py": (
        "hulls, and two of them",
        {"kernels.geometry.hull_distance"},
    ),
    "kernels/runtime/test_numba_internals.py": (
        "kernels of all sorts",
        {"kernels.runtime.compilation"},
    ),
    "kernels/match/test_region_points.py": ("blocks of boxes", {"kernels.runtime.simd"}),
    "kernels/match/test_region_walk.py": (
        "the walk, and what it walks",
        {"engine.regions.region_index"},
    ),
    "kernels/text/test_utf8_tokenizer.py": ("words to numbers", {"kernels.text.vocabulary"}),
    "cql2/test_parser.py": (
        "every limit and every name is documented",
        {"cql2.expression_limits", "cql2.keywords"},
    ),
    "engine/test_index_format.py": (
        "files on disk, by the words of their specification",
        {
            "kernels.match.check_evaluation",
            "kernels.match.segment_search",
            "kernels.geometry.shape_arrays",
            "engine.storage.manifest",
        },
    ),
    "engine/test_matcher_threads.py": (
        "changes at every step of reading and merging",
        {
            "engine.columns.event_columns",
            "engine.segment_builder",
            "engine.columns.single_event_layout",
            "engine.segment_manager",
            "engine.segment",
            "geometry.readers.single_geometry",
        },
    ),
    "engine/test_memtable.py": ("an addition that fails", {"engine.memtable"}),
    "engine/test_simplify_many.py": (
        "many beside one by one",
        {"engine.simplify", "filters.covering.predicate_covering", "filters.simplifier"},
    ),
    "engine/test_segment_manager.py": (
        "filters that become postings",
        {"engine.postings.keyword_postings"},
    ),
    "engine/test_keyword_filters.py": (
        "filters that become postings",
        {"kernels.index.posting_arrays"},
    ),
    "geometry/test_plain_points.py": (
        "points beside Shapely",
        {"geometry.readers.single_geometry"},
    ),
    "geometry/test_wkb.py": (
        "WKB beside Shapely",
        {
            "geometry.readers.arrow_columns",
            "geometry.readers.any_format",
            "geometry.readers.shapely_objects",
            "geometry.readers.raw_shapes",
        },
    ),
    "geometry/test_shapes.py": ("the layout of geometries", {"kernels.geometry.shape_arrays"}),
    "papers/events/test_ops4st.py": (
        "the notation, read and written",
        {"papers.events.notation.notation_reader", "papers.events.notation.subscription"},
    ),
    "papers/regions/test_crtree.py": (
        "the nodes of the tree, and relations of boxes",
        {"papers.regions.algorithm1", "papers.regions.guttman", "papers.regions.crtree_search"},
    ),
    "papers/regions/test_relate_by_samples.py": ("sampling", {"papers.regions.adapter"}),
    "papers/regions/test_sff.py": (
        "constraints and their indexes",
        {
            "papers.regions.constraint_indexes",
            "papers.table_engine",
            "filters.checks",
            "filters.normal_form",
        },
    ),
    "papers/spatiotextual/plainly.py": ("what is found", {"papers.spatiotextual.static_trees"}),
    "papers/spatiotextual/test_rt_errata.py": ("the trees", {"papers.spatiotextual.trees"}),
    "papers/spatiotextual/test_rt_ordering.py": (
        "which token comes first",
        {"papers.spatiotextual.token_order"},
    ),
    "papers/spatiotextual/test_rt_trees.py": (
        "the trees",
        {
            "papers.spatiotextual.token_order",
            "papers.spatiotextual.static_trees",
            "papers.spatiotextual.trees",
        },
    ),
    "papers/test_matcher_papers.py": (
        "which indexes there are",
        {"engine.executors", "engine.index_registry"},
    ),
    "filters/test_composition.py": (
        "what follows from two relations",
        {"filters.spatial_relations"},
    ),
    "filters/test_query_templates.py": ("the checks of a form", {"engine.filter_table"}),
    "filters/test_normal_form.py": ("terms as conditions", {"filters.filter_conditions"}),
    "filters/test_near_wgs84.py": ("what kernels leave open", {"kernels.geodesic.shape_distance"}),
    "filters/test_simplifier.py": (
        "which filters cover which",
        {"filters.covering.covering_index", "filters.covering.filter_rows"},
    ),
    "saferegion/test_safe_regions.py": (
        "zones about places",
        {"saferegion.free_space", "saferegion.zones"},
    ),
    "saferegion/test_nearby_filters.py": (
        "what is asked for again",
        {"saferegion.safe_regions"},
    ),
    "saferegion/test_zones.py": (
        "the bounds of zones and of wants",
        {"saferegion.client_rule", "saferegion.match_zones"},
    ),
    "server/http/test_asyncapi.py": ("what operations hold", {"server.http.operations"}),
    "server/stateful/test_composite_subscriptions.py": (
        "events that are forgotten",
        {"server.service"},
    ),
    "server/test_mqtt.py": ("payloads to events", {"server.broker.mqtt_events"}),
    "server/test_openapi.py": ("descriptions of operations", {"server.http.operations"}),
    "server/test_parsed_once.py": (
        "how often GeoJSON is read",
        {"geometry.readers.geojson"},
    ),
    "server/http/test_publish_socket.py": ("one who publishes", {"server.service"}),
    "server/test_security.py": ("headers that do not come", {"server.server_process"}),
    "server/test_server_commands.py": ("how messages are shown", {"cli.client_commands"}),
    "server/test_watching.py": (
        "shapes on a map, and events as they come",
        {
            "server.http.schemas",
            "server.console.live_feed",
            "server.console.map_shapes",
            "server.broker.transaction",
        },
    ),
    "spark/test_build_index.py": ("where subscriptions lie", {"spark.indexes.partition_cuts"}),
    "spark/test_collector.py": ("options of the JVM", {"spark.spark_session"}),
    "spark/indexes/test_compaction.py": (
        "which segments are written again, and what is in them",
        {
            "engine.storage.manifest",
            "engine.matcher",
            "engine.merge_policy",
            "engine.storage.segment_files",
            "spark.indexes.partition_cuts",
            "spark.indexes.subscription_rows",
            "spark.indexes.build_tasks",
        },
    ),
    "spark/sources/test_mqtt_source.py": (
        "the source, part by part",
        {
            "spark.sources.mqtt_receiver",
            "spark.sources.json_payloads",
            "spark.sources.spool",
            "spark.sources.spool_files",
        },
    ),
    "spark/matches/test_part_routing.py": (
        "which parts an event needs",
        {
            "engine.segment_builder",
            "engine.subscriptions",
            "engine.requirements",
            "spark.indexes.partition_cuts",
        },
    ),
    "spark/test_sinks.py": (
        "the sinks without Spark",
        {"spark.sinks.mqtt_sink", "spark.sinks.sink_messages", "spark.sinks.webhook_sink"},
    ),
    "spark/test_spark_match.py": ("what a task is sent", {"spark.matches.match_frames"}),
    "spark/sources/test_spool.py": ("files of the spool", {"spark.sources.spool_files"}),
    "spark/test_stores.py": (
        "folders and stores",
        {"spark.indexes.index_folders", "spark.matches.part_routing", "spark.matches.open_indexes"},
    ),
    "spark/test_versions.py": ("what a worker keeps", {"spark.matches.open_indexes"}),
    "tracking/test_checkpoint_json.py": (
        "what is kept of an object",
        {
            "events.event_attributes",
            "tracking.positions",
            "tracking.fence_visits",
            "tracking.tracker",
        },
    ),
    "tracking/test_tracker.py": ("what is kept of an object", {"tracking.checkpoint_json"}),
}

# Private names that tests still touch, by file. A debt: remove what you pay, add nothing.
DEBTS: dict[str, set[str]] = {
    "kernels/runtime/test_numba_internals.py": {"_cache", "_engine", "_impl"},  # Numba's own
    "engine/test_ranking.py": {"_engine", "_scores"},
    "saferegion/test_nearby_filters.py": {"_known", "_nearby"},
    "spark/sources/test_spool.py": {"_segments"},
}

# Attributes that begin with an underscore, and are public: of named tuples, and of `os`.
PUBLIC = {"_asdict", "_exit", "_fields", "_make", "_replace"}


@cache
def offered(package: str) -> frozenset[str]:
    """What the `__init__` of a package has in `__all__`."""
    source = SOURCES.joinpath(*package.split("."), "__init__.py")
    for node in ast.parse(source.read_text(encoding="utf-8")).body if source.exists() else []:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def is_module(name: str) -> bool:
    path = SOURCES.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def imports(tree: ast.AST) -> Iterator[tuple[int, str, str | None]]:
    """Each import from Fencepost: its line, the module, and the name if there is one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("fencepost."):
                    yield node.lineno, alias.name.removeprefix("fencepost."), None
        elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("fencepost."):
            module = (node.module or "").removeprefix("fencepost").removeprefix(".")
            for alias in node.names:
                whole = f"{module}.{alias.name}".removeprefix(".")
                if alias.name not in offered(module) and is_module(whole):
                    yield node.lineno, whole, None
                else:
                    yield node.lineno, module, alias.name


def is_public(module: str, name: str | None) -> bool:
    if name and name.startswith("_"):
        return False
    parent, _, own = module.rpartition(".")
    if name in offered(module) or own in offered(parent) or module.partition(".")[0] in OPEN:
        return True
    return not module or (name is None and (SOURCES / module.replace(".", "/")).is_dir())


def about(path: Path) -> set[str]:
    place = path.relative_to(TESTS)
    mirrored = ".".join(place.with_name(path.stem.removeprefix("test_")).parts)
    return {mirrored} | (ABOUT[str(place)][1] if str(place) in ABOUT else set())


def private_names(tree: ast.AST) -> dict[str, int]:
    """The names of others that are private, and a line of each."""
    own = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) if _is_own(node)}
    found = {name: line for line, _, name in imports(tree) if name and name.startswith("_")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not _is_own(node):
            name = node.attr
            if name.startswith("_") and not name.startswith("__") and name not in PUBLIC | own:
                found[name] = node.lineno
    return found


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


def place_of(path: Path) -> str:
    return str(path.relative_to(TESTS))


@pytest.mark.parametrize("path", FILES, ids=place_of)
def test_only_public_names_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    place, allowed = place_of(path), about(path)
    wrong = [
        f"line {line}: fencepost.{module}" + (f", {name}" if name else "")
        for line, module, name in imports(tree)
        if not is_public(module, name) and module not in allowed
    ]
    assert not wrong, (
        f"tests/{place} imports what is not public: {wrong}. Test through what the __init__ of the "
        "package offers; where other code needs the name as well, offer it there; where the file "
        "tests that very algorithm, name the module in ABOUT of tests/test_imports.py."
    )
    touched = private_names(tree)
    known = DEBTS.get(place, set())
    new = [f"line {line}: {name}" for name, line in touched.items() if name not in known]
    assert not new, (
        f"tests/{place} touches what is private: {new}. Test what it does for a user of public "
        "names; where a test must bring about a state that is rare, give `fencepost.testing` a "
        "function for it; where it is a part with a meaning of its own, make its name public."
    )
    paid = known - touched.keys()
    assert not paid, f"remove from DEBTS of tests/test_imports.py: {place}, {paid}"
    used = {module for _, module, _ in imports(tree)}
    idle = ABOUT[place][1] - used if place in ABOUT else set()
    assert not idle, f"remove from ABOUT of tests/test_imports.py: {place}, {idle}"


def test_what_is_listed_exists() -> None:
    gone = {place for place in ABOUT.keys() | DEBTS.keys() if not (TESTS / place).exists()}
    assert not gone, f"remove from ABOUT and DEBTS: {gone}"
