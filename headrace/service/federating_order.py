"""The order of a query's joins of windows, by phase one of the federation planner.

The joins are taken apart (federating_joins.py) and given to the planner as relations and conditions: phase
one compares orders by what they cost on Spark, the engine that every operator can run on, and phase two finds
engines for the best of them. Whether that is taken is decided by what both orders cost with the engines that
phase two found for each: a tie leaves a query as it is written.

An input is a relation with what it costs whatever the order is, operator by operator; so are the operators
above the joins. What a join gives is its results, once a slide, which is the same in every order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from headrace.catalog.model import Project
from headrace.cost.federation import FederationCosts
from headrace.plan.expr import Expr
from headrace.plan.federated import operators
from headrace.plan.logical import LogicalPlan
from headrace.planners.federation.compare import rank
from headrace.planners.federation.cost import OperatorCost, operator_costs
from headrace.planners.federation.phase_one import best_logical_plan
from headrace.planners.federation.problem import (
    JoinEdge,
    Kind,
    Operator,
    Plan,
    Query,
    Relation,
    Sizes,
    Split,
    Stream,
    Window,
)
from headrace.planners.federation.sizes import sizes_of
from headrace.rewrite.driver import rewrite
from headrace.service.estimates import GUESS, batches_per_second, share, values
from headrace.service.federating_joins import Joins, Order, in_order, input_plan, numbers_in
from headrace.service.federating_problem import Rates, problem_and_values, problem_of
from headrace.service.placing_part import as_pair, leaves_of, name_of

MARGIN = 0.01
"""An order must be cheaper by this share than the one that is written: estimates are no better than that."""
Distinct = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Ordering:
    """What phase one says of a query's joins."""

    order: Order
    plan: LogicalPlan
    """The query in that order; as it is written where that is the best."""
    examined: int
    """Partial orders that were compared."""
    utilisation: float
    """C_u, all of it on Spark."""


def best_order(
    project: Project, site: str, joins: Joins, costs: FederationCosts, rates: Rates | None
) -> Ordering:
    distinct = distinct_of_inputs(project, joins, costs, site, rates)
    query = _query(project, site, joins, costs, rates, distinct)
    found = best_logical_plan(query)
    order = _order(found.plan)
    plan = joins.plan if same_order(order, joins.written) else ordered(project, joins, order, distinct)
    return Ordering(order, plan, found.examined, found.utilisation)


def ordered(project: Project, joins: Joins, order: Order, distinct: Distinct) -> LogicalPlan:
    plan = in_order(joins, order, lambda expr: _values(expr, distinct))
    return rewrite(plan) if project.planner.rewrite else plan


def same_order(one: Order, other: Order) -> bool:
    """Whether the same is joined with the same: sides may be the other way round."""
    if isinstance(one, int) or isinstance(other, int):
        return one == other
    mine, theirs = (sorted(pair, key=lambda side: min(numbers_in(side))) for pair in (one, other))
    return all(map(same_order, mine, theirs))


def is_cheaper(one: Split, other: Split) -> bool:
    """By Definition 1, and clearly."""
    mine, theirs = (rank(split.bottleneck, split.utilisation) for split in (one, other))
    return mine[0] < theirs[0] or (mine[0] == theirs[0] and mine[1] < theirs[1] * (1 - MARGIN))


# -- the problem ------------------------------------------------------------------------------------


def distinct_of_inputs(
    project: Project,
    joins: Joins,
    costs: FederationCosts,
    site: str = "local",
    rates: Rates | None = None,
) -> Distinct:
    """Different values of the columns of all inputs, by their long names."""
    found: dict[str, float] = {}
    for number in range(len(joins.inputs)):
        _, known = problem_and_values(project, site, input_plan(joins, number), costs, rates)
        found |= {_long(number, name): count for name, count in known.items()}
    return found


def _query(
    project: Project,
    site: str,
    joins: Joins,
    costs: FederationCosts,
    rates: Rates | None,
    distinct: Distinct,
) -> Query:
    relations, windows, streams = [], [], []
    for number in range(len(joins.inputs)):
        below = problem_of(project, site, input_plan(joins, number), costs, rates)
        sizes = sizes_of(below)
        chain = tuple(_chain(f"{number}.", operator_costs(below), sizes, 1.0))
        # Its first operator costs what it costs for one row a second: what really comes is in that already.
        streams.append(Stream(f"s{number}", 1.0))
        windows.append(Window(f"w{number}", f"s{number}", 1.0, 1 / sizes[-1].slides))
        relations.append(Relation(str(number), f"w{number}", chain))
    return Query(
        tuple(streams),
        tuple(windows),
        tuple(relations),
        tuple(_edges(joins, distinct, costs)),
        tuple(_above(problem_of(project, site, joins.plan, costs, rates), len(operators(joins.node)))),
        cores=project.sites[site].cpu,
        together=True,
        each_join=batches_per_second(project) * costs.spark_batch,
    )


def _long(number: int, name: str) -> str:
    """A column of an input: inputs whose names clash have long names already."""
    return name if name.startswith(f"{number}/") else name_of(number, name)


def _above(plan: Plan, below: int) -> Iterator[Operator]:
    """The operators above the joins, which come last."""
    sizes = sizes_of(plan)
    return _chain("top", operator_costs(plan)[below:], sizes[below:], sizes[below - 1].rate)


def _chain(
    prefix: str, costs: Sequence[OperatorCost], sizes: Sequence[Sizes], rate: float
) -> Iterator[Operator]:
    """Operators that cost and give this, one on the other, whatever they really are."""
    for number, (cost, gives) in enumerate(zip(costs, sizes, strict=True)):
        unit = cost.spark / rate if rate else 0.0
        yield Operator(f"{prefix}{number}", Kind.SELECT, spark=(unit,), rate=gives.rate, size=gives.rows)
        rate = gives.rate


def _edges(joins: Joins, distinct: Distinct, costs: FederationCosts) -> Iterator[JoinEdge]:
    for key, group in enumerate(joins.same):
        for one, other in combinations(group, 2):
            (a,), (b,) = leaves_of(one), leaves_of(other)
            if a != b:
                passed = 1 / max(_values(one, distinct), _values(other, distinct), 1.0)
                yield JoinEdge(a, b, passed, key=str(key), spark=costs.spark_join)
    for part in joins.conditions:
        if len(leaves_of(part)) > 1:
            a, b = sorted(leaves_of(part))
            pair = as_pair(part, frozenset({a}))
            passed = share([part], lambda name: distinct.get(name, GUESS))
            if pair is not None:
                passed = 1 / max(*(_values(expr, distinct) for expr in pair), 1.0)
            yield JoinEdge(a, b, passed, spark=costs.spark_join)


def _values(expr: Expr, distinct: Distinct) -> float:
    return values(expr, lambda name: distinct.get(name, GUESS))


def _order(plan: Plan) -> Order:
    """What the planner joins with what."""
    found: dict[str, Order] = {window.name: int(window.name[1:]) for window in plan.windows}
    for operator in plan.operators:
        below = [found[name] for name in operator.inputs]
        found[operator.name] = (below[0], below[1]) if operator.kind is Kind.JOIN else below[0]
    return found[plan.operators[-1].name]
