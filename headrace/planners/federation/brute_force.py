"""All 2^n splits of a plan, each with costs counted from the problem alone: the oracle of phase two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from headrace.planners.federation.compare import rank
from headrace.planners.federation.phase_two import allowed_engines
from headrace.planners.federation.problem import Options, Plan, Split
from headrace.planners.federation.recount import Recount
from headrace.planners.federation.sizes import sizes_of


def every_split(plan: Plan, options: Options) -> Iterator[Split]:
    recount = Recount(plan, sizes_of(plan))
    allowed = [allowed_engines(operator.engine, options.engine) for operator in plan.operators]
    for engines in product(*allowed):
        yield recount.split(engines)


def best_split(plan: Plan, options: Options) -> Split:
    return min(
        every_split(plan, options), key=lambda one: rank(one.bottleneck, one.utilisation, options.limit)
    )
