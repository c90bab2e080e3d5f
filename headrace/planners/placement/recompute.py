"""What a sequence of deployments costs, worked out from its trees alone.

Shares no code with the planners or with the table of advertisements, so that a wrong cost of theirs shows. It
also refuses a deployment that is not one: a stream twice or missing, a reused stream that nobody had made
before, a join at a forbidden site.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum

from headrace.planners.placement.problem import Leaf, PlacementProblem, Query, Reused, Site, Tree

Distance = Callable[[Site, Site], float]


class WrongDeployment(ValueError):
    """The trees are no deployment of the queries."""


@dataclass(slots=True)
class _Operator:
    streams: tuple[str, ...]
    site: Site
    inputs: list[_Operator | Leaf]
    readers: list[Query]
    made_by: str
    at_sink: bool = False
    cost: float = 0.0
    """Of the edges into it; 0 until it runs."""


def recompute(
    problem: PlacementProblem, trees: Sequence[tuple[str, Tree]], distance: Distance
) -> tuple[float, list[float]]:
    """The total, and what each query added to it, for trees in the order they were deployed. Raises
    WrongDeployment."""
    queries = {query.id: query for query in problem.queries}
    running: list[_Operator] = []
    added: list[float] = []
    for name, tree in trees:
        query = queries[name]
        if tuple(sorted(_names(tree))) != tuple(sorted(query.streams)):
            raise WrongDeployment(f"{name} does not join exactly its streams")
        top, made = _build(problem, query, tree, running)
        # Only what the query reads can have changed.
        more = [_flow(problem, [query], query.streams) * distance(tree.site, query.sink)]
        for one in _below(top):
            before = one.cost
            one.readers += [] if query in one.readers else [query]
            one.cost = _inflow(problem, one, distance)
            more.append(one.cost - before)
        # Not a difference of sums: what is added may be tiny beside what it is added to.
        added.append(fsum(more))
        if problem.sinks:
            made.append(_Operator(tuple(query.streams), query.sink, [top], [query], name, at_sink=True))
        running += made
    return sum(added), added


def _names(tree: Tree) -> list[str]:
    if isinstance(tree, Leaf):
        return [tree.stream]
    if isinstance(tree, Reused):
        return list(tree.streams)
    return _names(tree.left) + _names(tree.right)


def _build(
    problem: PlacementProblem, query: Query, tree: Tree, running: list[_Operator]
) -> tuple[_Operator | Leaf, list[_Operator]]:
    if isinstance(tree, Leaf):
        if problem.streams[tree.stream].site != tree.site:
            raise WrongDeployment(f"{tree.stream} is not at site {tree.site}")
        return tree, []
    if isinstance(tree, Reused):
        return _find(problem, tree, running), []
    if tree.site in problem.forbidden:
        raise WrongDeployment(f"{query.id} joins at site {tree.site}, where it must not")
    left, below_left = _build(problem, query, tree.left, running)
    right, below_right = _build(problem, query, tree.right, running)
    made = _Operator(tuple(sorted(_names(tree))), tree.site, [left, right], [query], query.id)
    return made, [*below_left, *below_right, made]


def _find(problem: PlacementProblem, tree: Reused, running: list[_Operator]) -> _Operator:
    if not problem.reuse:
        raise WrongDeployment("reuse is off")
    streams = tuple(sorted(tree.streams))
    for one in running:
        if tuple(sorted(one.streams)) == streams and one.site == tree.site and one.made_by == tree.query:
            return one
    raise WrongDeployment(f"nobody made {', '.join(streams)} at site {tree.site} before")


def _below(one: _Operator | Leaf) -> list[_Operator]:
    """The operator and all it is made from, each once."""
    if isinstance(one, Leaf):
        return []
    found = [one]
    for source in one.inputs:
        found += [other for other in _below(source) if all(other is not known for known in found)]
    return found


def _inflow(problem: PlacementProblem, one: _Operator, distance: Distance) -> float:
    if one.at_sink:
        return 0.0
    total = 0.0
    for below in one.inputs:
        streams = (below.stream,) if isinstance(below, Leaf) else below.streams
        total += _flow(problem, one.readers, streams) * distance(below.site, one.site)
    return total


def _flow(problem: PlacementProblem, readers: Sequence[Query], streams: Sequence[str]) -> float:
    """Data on an edge that serves these queries."""
    rows, width, whole = 1.0, 0.0, 0.0
    for name in streams:
        stream = problem.streams[name]
        rows *= stream.rate * _passing(problem, [reader.filters for reader in readers], name)
        width += max(reader.widths.get(name, stream.width) for reader in readers)
        whole += stream.width
    for a, b in combinations(streams, 2):
        rows *= problem.selectivities.get(frozenset({a, b}), 1.0)
    return rows * width / whole


def _passing(problem: PlacementProblem, filters: Sequence[Mapping[str, str]], stream: str) -> float:
    names = {one.get(stream) for one in filters}
    if None in names:
        return 1.0
    weakest = [n for n in names if n is not None and not (problem.filters[n].within & names)]
    return min(1.0, sum(problem.filters[name].selectivity for name in weakest))
