"""The costs of a plan, from its assignment alone: exact fractions, by none of the code that searched for
it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from headrace.errors import InternalError
from headrace.planners.sharing.edges import EdgeCounter, Window
from headrace.planners.sharing.instance import Instance
from headrace.planners.sharing.lower_bound import lower_bounds
from headrace.planners.sharing.operations import final_operations
from headrace.planners.sharing.problem import (
    Assignment,
    FrontPoint,
    NodeReport,
    SharingPlan,
    SharingProblem,
    TreeReport,
    Trees,
)


def quick_costs(instance: Instance, assignment: Assignment) -> tuple[float, float]:
    """(total, largest load) in floats, with the paper's cost."""
    costs = np.zeros(instance.nodes)
    for node, trees in enumerate(assignment):
        for tree in trees:
            members = list(tree)
            row = np.bitwise_or.reduce(instance.rows[np.unique(instance.klass[members])], axis=0)
            rate = float(instance.rates.of(row)[0])
            costs[node] += instance.rate + rate * instance.omega[members].sum()
    return float(costs.sum()), float((costs / instance.capacity).max())


def report(
    problem: SharingProblem,
    optimiser: str,
    assignment: Assignment,
    *,
    seconds: float,
    compiled: float,
    front: tuple[FrontPoint, ...] = (),
    notes: Mapping[str, str] | None = None,
) -> SharingPlan:
    check_assignment(problem, assignment)
    counter = EdgeCounter()
    nodes = tuple(
        _node(problem, capacity, trees, counter)
        for capacity, trees in zip(problem.capacities, assignment, strict=True)
    )
    bounds = lower_bounds(problem)
    costs = [node.cost for node in nodes]
    return SharingPlan(
        optimiser=optimiser,
        cost=problem.cost,
        nodes=nodes,
        assignment=assignment,
        total_cost=sum(costs),
        max_cost=max(costs),
        max_load=max(node.cost / node.capacity for node in nodes),
        unshared_cost=unshared_cost(problem, counter),
        lower_bound=bounds.total,
        lower_bound_max=bounds.max_load,
        seconds=seconds,
        compile_seconds=compiled,
        front=_exact_front([_exact_point(problem, point, counter) for point in front]),
        notes=notes,
    )


def check_assignment(problem: SharingProblem, assignment: Assignment) -> None:
    """Every query in exactly one tree, every node told of. A planner that breaks this is a bug."""
    placed = sorted(query for trees in assignment for tree in trees for query in tree)
    if len(assignment) != problem.nodes or placed != list(range(len(problem.queries))):
        raise InternalError("a sharing plan does not place every query exactly once")
    if any(not tree for trees in assignment for tree in trees):
        raise InternalError("a sharing plan has an empty tree")


def tree_cost(problem: SharingProblem, tree: tuple[int, ...], counter: EdgeCounter) -> float:
    return _tree(problem, tree, counter).cost


def unshared_cost(problem: SharingProblem, counter: EdgeCounter) -> float:
    """Every query a tree of its own. Queries with the same window cost the same: each window is counted
    once."""
    costs: dict[Window, float] = {}
    total = 0.0
    for i, query in enumerate(problem.queries):
        window = (query.range, query.slide)
        if window not in costs:
            costs[window] = tree_cost(problem, (i,), counter)
        total += costs[window]
    return total


def _node(
    problem: SharingProblem,
    capacity: float,
    trees: Trees,
    counter: EdgeCounter,
) -> NodeReport:
    reports = tuple(_tree(problem, tree, counter) for tree in trees)
    return NodeReport(capacity, sum(tree.cost for tree in reports), reports)


def _tree(problem: SharingProblem, tree: tuple[int, ...], counter: EdgeCounter) -> TreeReport:
    queries = [problem.queries[i] for i in tree]
    windows = [(query.range, query.slide) for query in queries]
    rate = counter.rate(set(windows))
    overlap = sum((query.overlap for query in queries), Fraction(0))
    if problem.cost == "true":
        low, high = final_operations(windows, counter=counter)
        operations = float((low + high) / 2)
    else:
        operations = float((rate.low + rate.high) / 2 * overlap)
    return TreeReport(
        queries=tuple(query.id for query in queries),
        edge_rate=rate.high,
        edge_rate_low=rate.low,
        overlap=overlap,
        cost=problem.rate + operations,
    )


def _exact_point(problem: SharingProblem, point: FrontPoint, counter: EdgeCounter) -> FrontPoint:
    nodes = [
        _node(problem, c, trees, counter)
        for c, trees in zip(problem.capacities, point.assignment, strict=True)
    ]
    return FrontPoint(
        sum(n.cost for n in nodes),
        max(n.cost for n in nodes),
        point.assignment,
        max(n.cost / n.capacity for n in nodes),
    )


def _exact_front(points: list[FrontPoint]) -> tuple[FrontPoint, ...]:
    """The points that are still a front after the exact count, the lowest total first."""
    front: list[FrontPoint] = []
    for point in sorted(points, key=lambda p: (p.total_cost, p.max_load)):
        if not front or point.max_load < front[-1].max_load:
            front.append(point)
    return tuple(front)
