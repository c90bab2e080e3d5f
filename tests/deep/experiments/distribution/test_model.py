"""Patterns and policies by the model."""

from __future__ import annotations

from random import Random

import pytest

from headrace.experiments.distribution.cases import OFF, ROUND_ROBIN, STREAM_RATE, Setting, plan_named
from headrace.experiments.distribution.model import Task, rebalanced, run_task, share, starting, tasks
from headrace.experiments.distribution.prices import priced
from headrace.experiments.distribution.results import Placed, Rebalanced
from headrace.planners.distribution.usage import usage
from tests.unit.experiments.distribution.made_up import PRICES

TASK = Task("20", 3, 0, PRICES, False)


def test_the_paper_s_plans_are_all_there() -> None:
    found = tasks(Setting(seeds=3), PRICES)
    assert {(one.plan, one.sites) for one in found if one.seed == 0} == {
        (plan, sites) for plan in ("5", "20", "40", "80", "5 joins") for sites in range(1, 6)
    }
    assert sum(one.plan == "40" for one in found) == 15
    assert all(one.policies == (one.plan in ("20", "40", "80") and one.sites in (2, 3, 5)) for one in found)


def test_ours_has_no_more_connections_and_no_more_load_than_grouping() -> None:
    found = {row.pattern: row for row in run_task(TASK, lambda: 0.0) if isinstance(row, Placed)}
    turns, grouped, ours = (found[name] for name in ("round-robin", "grouping", "balanced"))
    assert ours.connections <= grouped.connections < turns.connections
    assert ours.max_load < grouped.max_load
    assert ours.capacity > grouped.capacity


def test_a_single_site_has_all_of_it() -> None:
    found = run_task(Task("20", 1, 0, PRICES, False), lambda: 0.0)
    assert len({(row.connections, row.max_load) for row in found if isinstance(row, Placed)}) == 1
    assert all(row.joins == 5 and row.max_load == row.total for row in found if isinstance(row, Placed))


def test_without_a_policy_what_is_too_much_stays_so() -> None:
    problem = priced(plan_named("20", 3, 0), PRICES, 20 * STREAM_RATE)
    table = starting(problem, "one site")
    found = rebalanced(TASK, problem, "one site", OFF, table, 0.75)
    load = usage(problem, table).max_load
    assert load > 1
    assert found.before == found.after == pytest.approx(1 / load, rel=1e-3)
    assert found.done[-1] == pytest.approx(30 / load, rel=1e-3)
    assert found.moves == 0


def test_a_policy_catches_up_and_pays_for_the_pause() -> None:
    plan = plan_named("20", 3, 0)
    problem = priced(plan, PRICES, 9 * STREAM_RATE)
    good = min(
        usage(problem, {n: Random(k).choice(problem.sites).id for n in problem.operator}).max_load
        for k in range(40)
    )
    found: Rebalanced = rebalanced(TASK, problem, ROUND_ROBIN, "pays", starting(problem, ROUND_ROBIN), 0.75)
    assert found.after >= min(1.0, 1 / good) - 0.05
    assert found.moves >= found.rounds
    before = [later - earlier for earlier, later in zip((0.0, *found.done), found.done, strict=False)]
    assert all(step >= 0 for step in before)
    assert found.done[-1] <= 30


def test_a_placement_that_keeps_up_does_all_of_it() -> None:
    problem = priced(plan_named("20", 3, 0), PRICES, STREAM_RATE)
    table = starting(problem, ROUND_ROBIN)
    assert share(problem, table) == 1.0
    assert rebalanced(TASK, problem, ROUND_ROBIN, OFF, table, 0.75).done[-1] == 30, "no more than comes in"
