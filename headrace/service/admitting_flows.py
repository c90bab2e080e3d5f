"""The plan of the admission planner as joins that run and ways that streams take.

A plan says which host runs which operator and which sends which stream to which. What a query needs follows
from the end: its stream at its site was made there, or came from a sender, who made it or got it from
another. Only what some query needs is taken over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.planners.admission.problem import AdmissionProblem, Host, Plan, Stream
from headrace.planners.admission.problem import Operator as Joining
from headrace.planners.placement.problem import PlacementProblem
from headrace.planners.placement.rates import data_rate, wanted
from headrace.service.placing_flows import Edge, Flows, Operator, Route, held_by

_Origin = Joining | Host | None
"""Made by this operator, received from this host, or at home."""


@dataclass(frozen=True, slots=True)
class Admitted:
    flows: Flows
    route: Route


def flows_of_plan(problem: PlacementProblem, asked: AdmissionProblem, plan: Plan) -> Admitted:
    """`asked` has the sites of the placement problem first, and its queries."""
    return _Reading(problem, _origins(asked, plan)).all()


def _origins(asked: AdmissionProblem, plan: Plan) -> dict[tuple[Host, Stream], _Origin]:
    """How every host has each stream, found from the homes on, so that nothing stands behind itself."""
    found: dict[tuple[Host, Stream], _Origin] = {
        (base.host, frozenset({base.id})): None for base in asked.streams.values()
    }
    placements = sorted(plan.placements, key=lambda one: (one[0], sorted(one[1].left), sorted(one[1].right)))
    flows = sorted(plan.flows, key=lambda one: (one[0], one[1], sorted(one[2])))
    before = 0
    while before < len(found):
        before = len(found)
        for host, one in placements:
            if (host, one.left) in found and (host, one.right) in found:
                found.setdefault((host, one.output), one)
        for sender, receiver, stream in flows:
            if (sender, stream) in found:
                found.setdefault((receiver, stream), sender)
    return found


@dataclass(slots=True)
class _Reading:
    problem: PlacementProblem
    origins: Mapping[tuple[Host, Stream], _Origin]
    numbers: dict[tuple[Stream, Host], int] = field(default_factory=dict)
    """Of joins, inputs before their readers."""
    readers: dict[int, set[str]] = field(default_factory=dict)

    def all(self) -> Admitted:
        for query in self.problem.queries:
            self._visit(frozenset(query.streams), query.sink, query.id)
        operators = {number: self._operator(number, *key) for key, number in self.numbers.items()}
        results = {}
        for query in self.problem.queries:
            rate = data_rate(self.problem, wanted(self.problem, query), query.streams)
            results[query.id] = self._edge(frozenset(query.streams), query.sink, rate)
        return Admitted(Flows(operators, results), lambda edge: self._way(edge.streams, edge.target))

    def _way(self, stream: Stream, host: Host) -> tuple[Host, ...]:
        """The hosts that a stream passes, from who makes it."""
        path = [host]
        while isinstance(origin := self.origins[path[-1], stream], int):
            path.append(origin)
        return tuple(reversed(path))

    def _joining(self, stream: Stream, source: Host) -> Joining:
        found = self.origins[source, stream]
        assert isinstance(found, Joining)
        return found

    def _visit(self, stream: Stream, host: Host, query: str) -> None:
        if len(stream) == 1:
            return
        source = self._way(stream, host)[0]
        one = self._joining(stream, source)
        for part in (one.left, one.right):
            self._visit(part, source, query)
        number = self.numbers.setdefault((stream, source), len(self.numbers))
        self.readers.setdefault(number, set()).add(query)

    def _operator(self, number: int, stream: Stream, site: Host) -> Operator:
        queries = [query for query in self.problem.queries if query.id in self.readers[number]]
        holding = held_by(self.problem, queries, stream)
        one = self._joining(stream, site)
        left, right = (
            self._edge(part, site, data_rate(self.problem, holding, part)) for part in (one.left, one.right)
        )
        rate = data_rate(self.problem, holding, stream)
        return Operator(
            number, stream, site, (left, right), tuple(query.id for query in queries), holding, rate
        )

    def _edge(self, stream: Stream, target: Host, rate: float) -> Edge:
        source = self._way(stream, target)[0]
        return Edge(stream, source, target, rate, self.numbers.get((stream, source)))
