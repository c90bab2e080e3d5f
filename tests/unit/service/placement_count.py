"""What a deployment costs, counted from the problem and the answer as JSON alone: networkx for the paths, and
each stream an edge of its own with the queries that need it. Shares nothing with the planners."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import networkx as nx

Json = Any


def paths(problem: Json) -> dict[Any, dict[Any, float]]:
    """What a unit of data pays from each site to each that it can reach."""
    graph: nx.MultiDiGraph = nx.MultiDiGraph()
    graph.add_nodes_from(problem["sites"])
    for a, b, cost in problem.get("links", ()):
        graph.add_edge(a, b, weight=cost)
        graph.add_edge(b, a, weight=cost)
    for a, row in zip(problem["sites"], problem.get("costs", ()), strict=False):
        for b, cost in zip(problem["sites"], row, strict=True):
            if cost is not None and a != b:
                graph.add_edge(a, b, weight=cost)
    return {a: dict(found) for a, found in nx.all_pairs_dijkstra_path_length(graph)}


class Count:
    def __init__(self, problem: Json, answer: Json) -> None:
        self.problem, self.answer = problem, answer
        self.far = paths(problem)
        given = enumerate(problem["queries"])
        self.queries = {query.get("id", f"q{i + 1}"): query for i, query in given}
        self.joins: list[Json] = []
        """Those that run, each with its maker, its inputs and its readers."""

    def added(self) -> list[float]:
        """What each query added, in the order of the answer: the total with it less the total before."""
        totals = [0.0]
        for told in self.answer["queries"]:
            self._deploy(told)
            totals.append(self._total())
        return [after - before for before, after in pairwise(totals)]

    def _deploy(self, told: Json) -> None:
        query = self.queries[told["id"]]
        assert told["sink"] == query["sink"]
        made: list[Json] = []
        top = self._build(told["tree"], told["id"], made)
        assert sorted(top["streams"]) == sorted(query["streams"])
        assert len(made) == told["joins"]
        self.joins += made
        self.joins.append({"streams": top["streams"], "site": query["sink"], "inputs": [top], "sink": True})
        self.joins[-1] |= {"maker": told["id"], "readers": set()}
        for one in _below(self.joins[-1]):
            one["readers"].add(told["id"])

    def _build(self, tree: Json, maker: Any, made: list[Json]) -> Json:
        if "stream" in tree:
            assert self.problem["streams"][tree["stream"]]["site"] == tree["site"]
            return {"streams": [tree["stream"]], "site": tree["site"], "inputs": [], "readers": set()}
        if "reused" in tree:
            return self._find(tree)
        assert tree["site"] not in self.problem.get("forbidden", [])
        inputs = [self._build(part, maker, made) for part in tree["join"]]
        streams = [name for part in inputs for name in part["streams"]]
        assert sorted(streams) == sorted(tree["streams"])
        assert len(streams) == len(set(streams))
        assert math.isclose(tree["rate"], self._rate(streams, {maker}), rel_tol=1e-9)
        one = {"streams": streams, "site": tree["site"], "inputs": inputs, "maker": maker, "readers": set()}
        made.append(one)
        return one

    def _find(self, tree: Json) -> Json:
        assert self.problem.get("reuse", True)
        for one in self.joins:
            place = (sorted(one["streams"]), one["site"], one["maker"])
            if place == (sorted(tree["reused"]), tree["site"], tree["query"]):
                if one.get("sink") and not self.problem.get("sinks"):
                    continue
                return one
        raise AssertionError(f"nobody made {tree}")

    def loads(self) -> dict[Any, float]:
        """What the joins of each site read together."""
        found: dict[Any, float] = {}
        for one in self.joins:
            if not one.get("sink"):
                read = sum(self._rate(part["streams"], one["readers"]) for part in one["inputs"])
                found[one["site"]] = found.get(one["site"], 0.0) + read
        return found

    def _total(self) -> float:
        return math.fsum(
            self._rate(part["streams"], one["readers"]) * self.far[part["site"]][one["site"]]
            for one in self.joins
            for part in one["inputs"]
        )

    def _rate(self, streams: list[str], readers: set[Any]) -> float:
        rate, kept, whole = 1.0, 0.0, 0.0
        for name in streams:
            stream = self.problem["streams"][name]
            rate *= stream["rate"] * self._share(name, readers)
            width = stream.get("width", 1)
            kept += max(self.queries[r].get("widths", {}).get(name, width) for r in readers)
            whole += width
        for a, b, share in self.problem.get("selectivities", ()):
            if a in streams and b in streams:
                rate *= share
        return rate * kept / whole

    def _share(self, stream: str, readers: set[Any]) -> float:
        wanted = {self.queries[reader].get("filters", {}).get(stream) for reader in readers}
        if None in wanted:
            return 1.0
        widest = [name for name in wanted if not wanted & set(self._above(name))]
        return min(1.0, sum(float(self.problem["filters"][name]["selectivity"]) for name in widest))

    def _above(self, name: Any) -> Iterator[str]:
        for other in self.problem["filters"][name].get("within", ()):
            yield other
            yield from self._above(other)


def _below(one: Json) -> list[Json]:
    found = [one]
    for part in one["inputs"]:
        found += [other for other in _below(part) if all(other is not known for known in found)]
    return found
