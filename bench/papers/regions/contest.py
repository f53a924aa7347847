"""All methods on one workload, built once to be timed and checked with several messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from bench.papers.regions import checking, faithful, ours
from bench.papers.regions.peers import PEERS, Peer
from bench.papers.regions.predicates import Predicates
from bench.papers.regions.workloads import Workload
from bench.timing import Timing
from fencepost.filters.checks import Filter
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.testing import Geometries

Ways = dict[str, Callable[[], object]]
Match = Callable[[Any], NDArray[Any]]
EXACT_TREE = "CR-tree, exact"
SHAPELY = tuple(peer.name for peer in PEERS)


@dataclass(frozen=True, slots=True)
class Check:
    """The number of wrong ids by method, and the numbers of messages and of correct ids."""

    wrong: dict[str, int]
    messages: int
    ids: int


class ConstraintContest:
    """All methods on predicates of one constraint.

    density : the density of Algorithm 1.
    trees : the names of `faithful.TREES` that take part.
    """

    def __init__(self, workload: Workload, density: float, trees: Iterable[str]) -> None:
        self.workload = workload
        self.regions = Shapes.read_all(workload.regions)
        self._density = density
        self.ours = ours.of_workload(workload)
        self.peers = [peer(workload) for peer in PEERS]
        self.trees = {
            name: faithful.Constraints(workload, self.regions, density, **faithful.TREES[name])
            for name in trees
        }

    def ways(self, messages: Geometries) -> Ways:
        """Return the calls to time; each matches all messages."""
        table = ours.table_of(messages)
        blocks = [self.ours.encode_events(message) for message in messages]
        message_shapes = [Shapes.read_one(message) for message in messages]
        ways: Ways = {
            ours.KERNEL: _over(self.ours.match_block, blocks),
            ours.WITH_LAYOUT: _over(self.ours.match, messages),
            ours.BATCH: lambda: self.ours.match_batch(table),
        }
        for peer in self.peers:
            ways[peer.name] = _over(peer.match, messages)
        for name, tree in self.trees.items():
            ways[name] = _over(tree.match, message_shapes)
        return ways

    def check(self, messages: Geometries) -> Check:
        """Compare the answers of all methods with the exact relation of each pair."""
        expected = checking.expected(self.workload, self.regions, messages)
        message_shapes = [Shapes.read_one(message) for message in messages]
        exact = faithful.Constraints(self.workload, self.regions, None)
        batch = self.ours.rows_of_batch(ours.table_of(messages))
        wrong = {
            ours.WITH_LAYOUT: checking.differences(self.ours.match, messages, expected),
            ours.BATCH: checking.differences(lambda rows: rows, batch, expected),
            EXACT_TREE: checking.differences(exact.match, message_shapes, expected),
        }
        for peer in self.peers:
            wrong[peer.name] = checking.differences(peer.match, messages, expected)
        for name, tree in self.trees.items():
            wrong[name] = checking.differences(tree.match, message_shapes, expected)
        return Check(wrong, len(messages), sum(map(len, expected)))


class PredicateContest:
    """All methods on predicates whose filters have two constraints.

    simplified : the predicates' filters after simplification.
    """

    def __init__(
        self,
        predicates: Predicates,
        simplified: list[list[Filter]],
        density: float,
    ) -> None:
        self.predicates = predicates
        plain = predicates.filters()
        self.tables = {
            "Algorithm 1, SFF": faithful.Table(plain, density),
            "Algorithm 1, SFF, simplified": faithful.Table(simplified, density),
        }
        self.exact = {
            "SFF, exact": faithful.Table(plain, None),
            "SFF, exact, simplified": faithful.Table(simplified, None),
        }
        self.ours = {
            "Fencepost": ours.of_filters(plain),
            "Fencepost, simplified": ours.of_filters(simplified),
        }
        self._peers: dict[str, Match] = {}
        for make in PEERS:
            self._peers[make.name] = _of_predicates(make(predicates.workload), predicates)

    def ways(self, messages: Geometries) -> Ways:
        """Return the calls to time; each matches all messages."""
        events = [faithful.read_message(message) for message in messages]
        ways: Ways = {}
        for name, engine in self.ours.items():
            blocks = [engine.encode_events(message) for message in messages]
            ways[name] = _over(engine.match_block, blocks)
        for name, peer in self._peers.items():
            ways[name] = _over(peer, messages)
        for name, table in self.tables.items():
            ways[name] = _over(table.match, events)
        return ways

    def check(self, messages: Geometries) -> Check:
        """Compare the answers of all methods with the exact relation of each pair."""
        workload = self.predicates.workload
        regions = Shapes.read_all(workload.regions)
        constraints = checking.expected(workload, regions, messages)
        expected = [self.predicates.holding(rows) for rows in constraints]
        events = [faithful.read_message(message) for message in messages]
        wrong = {
            name: checking.differences(engine.match, messages, expected)
            for name, engine in self.ours.items()
        }
        for name, peer in self._peers.items():
            wrong[name] = checking.differences(peer, messages, expected)
        for name, table in {**self.exact, **self.tables}.items():
            wrong[name] = checking.differences(table.match, events, expected)
        return Check(wrong, len(messages), sum(map(len, expected)))


def _of_predicates(peer: Peer, predicates: Predicates) -> Match:
    return lambda message: predicates.holding(peer.match(message))


def _over(match: Match, messages: Iterable[Any]) -> Callable[[], object]:
    listed = list(messages)
    return lambda: [match(message) for message in listed]


def best_shapely(timings: dict[str, Timing]) -> float:
    """Return the time of the faster method with Shapely, in milliseconds."""
    return min(timings[name].min_ms for name in SHAPELY)
