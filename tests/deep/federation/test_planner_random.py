"""Phase two against all 2^n splits of 2,000 random plans of up to 10 operators, phase one against all
orders."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from headrace.planners.federation.brute_force import every_split
from headrace.planners.federation.compare import rank
from headrace.planners.federation.cost import bottleneck
from headrace.planners.federation.phase_two import search
from headrace.planners.federation.problem import Kind, Options, Plan, Split, Unit
from tests.unit.planners.federation.plans import random_plan, random_query
from tests.unit.planners.federation.test_phase_one import check_best, has_operators

SAME = 1e-9
PLANS = 2000


def optimal(plan: Plan, options: Options, want: Split) -> bool:
    """By Definition 1: C_u where the best is feasible, else C_b."""
    best = search(plan, options).best
    if not options.feasibility or want.feasible:
        return best[1] == pytest.approx(want.utilisation, rel=SAME)
    return bottleneck(best[0], best[1], plan.cores) == pytest.approx(want.bottleneck, rel=SAME)


def both_costs(plan: Plan, want: Split) -> bool:
    best = search(plan, Options()).best
    costs = bottleneck(best[0], best[1], plan.cores), best[1]
    return costs == pytest.approx((want.bottleneck, want.utilisation), rel=SAME)


def test_phase_two_equals_exhaustive_search() -> None:
    rng, seen = Random(2026), Counter[str]()
    for _ in range(PLANS):
        plan = random_plan(rng, 10)
        splits = list(every_split(plan, Options()))
        want = min(splits, key=lambda one: rank(one.bottleneck, one.utilisation))
        assert both_costs(plan, want)
        assert optimal(plan, Options(pruning="paper"), want)
        unchecked = min(splits, key=lambda one: one.utilisation)
        assert optimal(plan, Options(feasibility=False), unchecked)
        assert optimal(plan, Options(feasibility=False, pruning="paper"), unchecked)
        seen.update(_kinds(plan, want, unchecked))
    # The plans must be of every kind, or equality would say little.
    least = {"feasible": 500, "infeasible": 300, "cores": 400, "joins": 800, "rows": 300, "mixed": 800}
    least |= {"slides": 300, "fixed": 500, "large": 300, "check matters": 100}
    assert {name: seen[name] for name in least if seen[name] < least[name]} == {}


def _kinds(plan: Plan, want: Split, unchecked: Split) -> list[str]:
    kinds = {
        "feasible": want.feasible,
        "infeasible": not want.feasible,
        "cores": plan.cores is not None,
        "joins": any(operator.kind is Kind.JOIN for operator in plan.operators),
        "rows": any(window.unit is Unit.ROWS for window in plan.windows),
        "slides": len({window.slide for window in plan.windows}) > 1,
        "fixed": any(operator.engine for operator in plan.operators),
        "mixed": len(set(want.engines)) > 1,
        "large": len(plan.operators) >= 9,
        "check matters": want.engines != unchecked.engines,
    }
    return [name for name, holds in kinds.items() if holds]


def test_phase_one_equals_every_order() -> None:
    rng = Random(2027)
    for _ in range(250):
        query = random_query(rng, 5)
        if has_operators(query):
            check_best(query, feasibility=True)
            check_best(query, feasibility=False)
