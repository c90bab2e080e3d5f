"""How many joins and filters run when all queries are deployed (Figure 14).

A join that several queries read runs once. A filter runs on every edge on which rows are dropped: from a base
stream to the operator that reads it, and from a join to a reader that wants fewer rows than the join keeps
for all its readers together (the paper's telescoped filters).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.problem import Join, PlacementProblem, Reused, Tree, streams_of
from headrace.planners.placement.rates import Rows, together, wanted

Kept = Mapping[str, Rows]
"""Stream -> the rows of it that are kept."""


def count_operators(problem: PlacementProblem, trees: Iterable[tuple[str, Tree]]) -> tuple[int, int]:
    """(joins, filters), of all queries in the order they were deployed."""
    queries = {query.id: query for query in problem.queries}
    deployed = Deployed(problem, lambda a, b: 0.0)
    for name, tree in trees:
        deployed.add(queries[name], tree)
    wants = {name: wanted(problem, query) for name, query in queries.items()}
    kept: dict[int, Kept] = {
        number: {s: together(problem, [wants[reader][s] for reader in one.readers]).rows for s in one.streams}
        for number, one in deployed.derived.items()
    }
    edges = [
        (source, streams, kept[number])
        for number, one in deployed.derived.items()
        if not one.at_sink  # the query's own edge leads there
        for streams, _, source in one.inputs
    ]
    for name, tree in deployed.trees.items():
        rows = {stream: held.rows for stream, held in wants[name].items()}
        edges.append((_top(deployed, name, tree), streams_of(tree), rows))
    nothing_cut = dict.fromkeys(problem.streams)
    joins = sum(not one.at_sink for one in deployed.derived.values())
    return joins, sum(
        _cuts(nothing_cut if source is None else kept[source], after, streams)
        for source, streams, after in edges
    )


def _cuts(before: Kept, after: Kept, streams: Iterable[str]) -> int:
    return sum(before[name] != after[name] for name in streams)


def _top(deployed: Deployed, query: str, tree: Tree) -> int | None:
    """The number of what a tree ends in; None: a base stream."""
    if isinstance(tree, Join):
        own = (n for n, one in deployed.derived.items() if one.query == query and one.streams == tree.streams)
        return next(own)
    return tree.derived if isinstance(tree, Reused) else None
