"""Limits that are kept up to date tell what is worked out of the whole table."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.limits import Limits, first_passed_further, share
from headrace.planners.distribution.problem import Problem
from headrace.planners.distribution.rules import History, Rules
from headrace.planners.distribution.running import Running
from headrace.planners.distribution.usage import passed, usage
from tests.unit.planners.distribution.drawn import drawn


def lossy(rng: Random) -> Problem:
    """With limits, and sometimes without one of its sites."""
    problem = drawn(rng, rng.randint(2, 14), rng.randint(2, 5), limits=True)
    gone = rng.choice([None, *(site.id for site in problem.sites)])
    sites = tuple(replace(site, alive=site.id != gone) for site in problem.sites)
    return replace(problem, sites=sites, table={o.id: rng.choice(sites).id for o in problem.operators})


def told(limits: Limits) -> dict[str, float]:
    return {limit.text(value): share(limit, value) for limit, value in sorted(limits.passed().items())}


def worked_out(problem: Problem, table: dict[str, str], lost: frozenset[str]) -> dict[str, float]:
    return {text: by for by, text in passed(problem, usage(problem, table, lost)).values()}


@pytest.mark.parametrize("seed", range(60))
def test_after_every_move_the_same_limits_are_passed_by_as_much(seed: int) -> None:
    rng = Random(seed)
    problem = lossy(rng)
    gone = frozenset(site.id for site in problem.sites if not site.alive)
    for lost in {frozenset[str](), gone}:
        table = dict(problem.table)
        limits = Limits(problem, table, lost)
        for _ in range(20):
            names = rng.sample(sorted(table), rng.randint(1, min(3, len(table))))
            limits.take(names)
            table.update({name: rng.choice(problem.sites).id for name in names})
            limits.put(names)
            wanted, found = worked_out(problem, table, lost), told(limits)
            assert list(found) == list(wanted)
            assert found == pytest.approx(wanted, rel=1e-6, abs=1e-9)


def test_operators_that_come_back_have_changed_nothing() -> None:
    rng = Random(5)
    problem = lossy(rng)
    table = dict(problem.table)
    limits = Limits(problem, table)
    before = dict(limits.passed())
    names = list(table)
    for site in problem.sites:
        limits.take(names)
        table.update(dict.fromkeys(names, site.id))
        limits.put(names)
        limits.passed()
    limits.take(names)
    table.update(problem.table)
    limits.put(names)
    assert limits.passed() == before


@pytest.mark.parametrize("without_lost", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_a_change_that_is_thought_of_breaks_what_it_would_break(seed: int, without_lost: bool) -> None:
    rng = Random(seed)
    problem = lossy(rng)
    lost = frozenset(site.id for site in problem.sites if not site.alive) if without_lost else frozenset()
    running = Running(problem, MODELS["cpu"], Rules(), History(), 0.0)
    for _ in range(15):
        names = rng.sample(sorted(running.table), rng.randint(1, min(3, len(running.table))))
        target = rng.choice(problem.alive).id
        now = worked_out(problem, running.table, lost)
        then = passed(problem, usage(problem, {**running.table, **dict.fromkeys(names, target)}, lost))
        before = passed(problem, usage(problem, running.table, lost))
        wrong = [
            text
            for key, (by, text) in then.items()
            if by > before.get(key, (0.0, ""))[0] * (1 + 1e-9) + 1e-12
        ]
        running.tried([(names, target)])
        assert running.breaks([(names, target)], without_lost=without_lost) == (wrong[0] if wrong else "")
        assert worked_out(problem, running.table, lost) == now
        if without_lost:
            assert running.beyond([(names, target)]) == pytest.approx(sum(by for by, _ in then.values()))
        if rng.random() < 0.5:
            running.put([(names, target)])


def test_the_first_limit_is_told_as_sites_and_links_are_listed() -> None:
    problem = drawn(Random(3), operators=8, sites=3, limits=True)
    tight = tuple(replace(site, memory=1.0, connections=0) for site in problem.sites)
    problem = replace(problem, sites=tight)
    table = {o.id: site.id for o, site in zip(problem.operators, 3 * tight, strict=False)}
    over = dict(Limits(problem, table).passed())
    wanted = list(worked_out(problem, table, frozenset()))
    assert len(wanted) > 2
    assert first_passed_further({}, over) == wanted[0]
    assert first_passed_further(over, over) == ""
