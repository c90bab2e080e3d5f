"""Both phases: the logical plan of a query, an engine for each operator, what it costs, and why others
lost."""

from __future__ import annotations

from collections.abc import Callable

from headrace.errors import InternalError, UserError
from headrace.planners.federation.cost import bottleneck, operator_costs
from headrace.planners.federation.decompose import piece_roots
from headrace.planners.federation.fronts import Done
from headrace.planners.federation.losers import losers
from headrace.planners.federation.phase_one import best_logical_plan
from headrace.planners.federation.phase_two import engines_of, search
from headrace.planners.federation.problem import Federated, Options, Plan, Query, Split
from headrace.planners.federation.recount import Recount
from headrace.planners.federation.sizes import sizes_of

Clock = Callable[[], float]

SAME = 1e-9
"""By how much, relatively, the search's costs may differ from the recounted ones."""
LARGEST = 1e100
"""Of what an operator costs and gives: sums of such numbers are still numbers."""
MOST_COMPLETE = 500_000
"""Complete plans that a search without our pruning may have to hold."""


def solve(problem: Plan | Query, options: Options, clock: Clock) -> Federated:
    """Raises UserError where the pruning that was asked for leaves too many plans, and InternalError where
    the search is wrong about the cost of its plan."""
    started = clock()
    plan, joins_examined = _ordered(problem, options)
    between = clock()
    _check_finite(plan)
    cuts = frozenset[int]() if options.decompose is None else piece_roots(plan, options.decompose)
    _check_count(plan, options, cuts)
    found = search(plan, options, cuts)
    ended = clock()
    sizes = sizes_of(plan)
    recount = Recount(plan, sizes)
    split = recount.split(engines_of(found.best[2], len(plan.operators)))
    _check(plan, found.best, split)
    return Federated(
        plan,
        sizes,
        split,
        losers(plan, options, recount, split, found.complete),
        found.examined,
        found.again,
        found.kept,
        joins_examined,
        between - started,
        ended - between,
    )


def _ordered(problem: Plan | Query, options: Options) -> tuple[Plan, int]:
    if isinstance(problem, Plan):
        return problem, 0
    ordered = best_logical_plan(problem, feasibility=options.feasibility)
    return ordered.plan, ordered.examined


def complete_plans(plan: Plan, options: Options, cuts: frozenset[int] = frozenset()) -> int:
    """How many are compared at the root without pruning, or with the paper's: each way to have the inputs
    of the root on either engine, and with pruning one way that is rooted on Spark."""
    ways: dict[str, int] = {}
    for i, operator in enumerate(plan.operators):
        below = 1
        for name in operator.inputs:
            below *= ways.get(name, 1)
        ways[operator.name] = 2 * below if options.pruning == "none" else 1 + below
        if i in cuts:
            ways[operator.name] = 1
    return ways[plan.operators[-1].name]


def _check_count(plan: Plan, options: Options, cuts: frozenset[int]) -> None:
    if options.pruning == "pareto" or options.engine != "both":
        return
    count = complete_plans(plan, options, cuts)
    if count > MOST_COMPLETE:
        way = "exhaustive" if options.pruning == "none" else options.pruning
        hint = "Leave out --with (pareto does), or --decompose into pieces of at most 15 operators."
        raise UserError(f"{way} has {count:,} plans of this query to look at", hint=hint)


def _check_finite(plan: Plan) -> None:
    """Joins of large windows multiply."""
    for operator, cost, gives in zip(plan.operators, operator_costs(plan), sizes_of(plan), strict=True):
        enter = (one for _, one in cost.inputs)
        in_duckdb = (cost.arriving, cost.slides * (cost.held + cost.statement), cost.out)
        every = (cost.spark, *in_duckdb, *enter, gives.rate, gives.rows)
        if not all(value < LARGEST for value in every):
            hint = "Look at the rates, ranges and selectivities of what it reads."
            raise UserError(f"operator {operator.name} has more rows than can be counted", hint=hint)


def _check(plan: Plan, believed: Done, split: Split) -> None:
    """Written so that NaN fails."""
    c_b = bottleneck(believed[0], believed[1], plan.cores)
    for said, is_ in ((c_b, split.bottleneck), (believed[1], split.utilisation)):
        if not abs(said - is_) <= SAME * max(abs(said), abs(is_)):
            raise InternalError(f"federation: the search says {said!r}, but the plan costs {is_!r}")
