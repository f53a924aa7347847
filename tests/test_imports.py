"""Tests import public names only, so that the code behind them can change without its tests.

A file in `tests/` may import from Fencepost

- `fencepost` itself: its names, its packages, and the modules in `OPEN`;
- the names in `__all__` of a package's `__init__`, and the names of modules that are listed there;
- the module that it tests: `tests/<package>/test_<name>.py` tests the module `<package>/<name>.py`,
  and the modules that `ABOUT` names for it.

Names that begin with an underscore are private to their module, as imports and as attributes.
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

# By test file: its subject, and the modules that implement it.
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
    "geometry/test_crs.py": (
        "coordinates before they are laid out",
        {"geometry.readers.any_format"},
    ),
    "formats/test_read_events.py": (
        "lines that are cut where a block ends",
        {"formats.line_batches"},
    ),
    "engine/test_matcher_collections.py": ("decompiled collections", {"engine.decompiler"}),
    "kernels/geometry/test_mixed_shapes.py": (
        "functions of the OGC for collections",
        {"filters.spatial_relations"},
    ),
    "engine/test_signature_postings.py": (
        "the limit of signatures",
        {"engine.postings.posting_passes"},
    ),
    "engine/test_event_sampler.py": (
        "single events as they were written for matching",
        {"engine.columns.single_event_layout"},
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
    "engine/test_match_subscribers.py": ("names of rows", {"engine.segment"}),
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
        "filters loaded one by one",
        {"saferegion.safe_regions"},
    ),
    "saferegion/test_zones.py": (
        "the bounds of zones and match zones",
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
            "spark.indexes.subscription_reader",
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

# Private names that tests still use, by file. Remove entries where you can; add none.
DEBTS: dict[str, set[str]] = {
    "kernels/runtime/test_numba_internals.py": {"_engine"},  # Numba's own
    "engine/test_ranking.py": {"_engine", "_scorer"},
    "saferegion/test_nearby_filters.py": {"_nearby", "_zones_cache"},
    "spark/sources/test_spool.py": {"_spool_files"},
}

# Public attributes that begin with an underscore: of named tuples, and of `os`.
PUBLIC = {"_asdict", "_exit", "_fields", "_make", "_replace"}


@cache
def offered(package: str) -> frozenset[str]:
    """Return the names in `__all__` of a package's `__init__`."""
    source = SOURCES.joinpath(*package.split("."), "__init__.py")
    for node in ast.parse(source.read_text(encoding="utf-8")).body if source.exists() else []:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def is_module(name: str) -> bool:
    path = SOURCES.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def imports(tree: ast.AST) -> Iterator[tuple[int, str, str | None]]:
    """Yield each import from Fencepost: the line, the module, and the name if there is one."""
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
    parent, _, last = module.rpartition(".")
    if name in offered(module) or last in offered(parent) or module.partition(".")[0] in OPEN:
        return True
    return not module or (name is None and (SOURCES / module.replace(".", "/")).is_dir())


def modules_under_test(path: Path) -> set[str]:
    """Return the modules that a test file may import in full."""
    place = path.relative_to(TESTS)
    mirrored = ".".join(place.with_name(path.stem.removeprefix("test_")).parts)
    return {mirrored} | (ABOUT[str(place)][1] if str(place) in ABOUT else set())


def private_names(tree: ast.AST) -> dict[str, int]:
    """Return the private names of other modules that a test uses, with a line of each."""
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    of_self = {node.attr for node in attributes if _is_of_self(node)}
    private = {name: line for line, _, name in imports(tree) if name and name.startswith("_")}
    for node in attributes:
        name = node.attr
        is_private = name.startswith("_") and not name.startswith("__")
        if is_private and not _is_of_self(node) and name not in PUBLIC | of_self:
            private[name] = node.lineno
    return private


def _is_of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


def place_of(path: Path) -> str:
    return str(path.relative_to(TESTS))


@pytest.mark.parametrize("path", FILES, ids=place_of)
def test_only_public_names_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    place, allowed = place_of(path), modules_under_test(path)
    wrong = [
        f"line {line}: fencepost.{module}" + (f", {name}" if name else "")
        for line, module, name in imports(tree)
        if not is_public(module, name) and module not in allowed
    ]
    assert not wrong, (
        f"tests/{place} imports names that are not public: {wrong}. Test through the names that "
        "the package offers in its __init__; if other code needs the name as well, offer it there; "
        "if the file tests that very module, name the module in ABOUT of tests/test_imports.py."
    )
    private = private_names(tree)
    known = DEBTS.get(place, set())
    new = [f"line {line}: {name}" for name, line in private.items() if name not in known]
    assert not new, (
        f"tests/{place} uses private names: {new}. Test the effect on public names; if a test must "
        "bring about a rare state, add a function for it to `fencepost.testing`; if the name has a "
        "meaning of its own, make it public."
    )
    unused = known - private.keys()
    assert not unused, f"remove from DEBTS of tests/test_imports.py: {place}, {unused}"
    used = {module for _, module, _ in imports(tree)}
    unused = ABOUT[place][1] - used if place in ABOUT else set()
    assert not unused, f"remove from ABOUT of tests/test_imports.py: {place}, {unused}"


def test_listed_files_exist() -> None:
    missing = {place for place in ABOUT.keys() | DEBTS.keys() if not (TESTS / place).exists()}
    assert not missing, f"remove from ABOUT and DEBTS: {missing}"
