"""What our planner expects of queries to come, and what that does to its plans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headrace.planners.admission.ours import Ours
from headrace.planners.admission.ours_prices import Outlook, Tuning
from headrace.planners.admission.problem import Options, Query
from headrace.planners.admission.state import State
from headrace.planners.admission.workload import Setup, paper_problem

SETUP = Setup(hosts=4, streams=12, queries=1, bandwidth=50.0)


@pytest.mark.parametrize("popular", [("s3", "s7"), ("s3", "s9"), ("s7", "s9")])
def test_of_equal_plans_the_one_that_others_can_use(popular: tuple[str, str]) -> None:
    """Ten queries hold one of two streams; a join of three then begins with these two."""
    problem = paper_problem(2, SETUP)
    planner = Ours(problem, Options(), lambda: 0.0)
    others = [name for name in problem.streams if name not in ("s3", "s7", "s9")]
    for i in range(10):
        planner.submit(Query(f"before{i}", frozenset({popular[i % 2], others[i // 2]})))
    planner.submit(Query("three", frozenset({"s3", "s7", "s9"})))
    assert frozenset(popular) in {one.output for _, one in planner.plan.placements}


def test_worth_and_copies_by_how_often_a_stream_was_seen() -> None:
    """Twelve streams, each taken as seen once before, two of them in two queries: 3 of 16, and 1 of 16."""
    problem = paper_problem(2, SETUP)
    outlook = Outlook(State(problem), Tuning(before=1.0, ahead=8.0, shared=8.0))
    for _ in range(2):
        outlook.see(frozenset({"s0", "s1"}))
    prices, blind = outlook.prices(ahead=True), outlook.prices(ahead=False)
    assert prices.worth(frozenset({"s0", "s1"})) == pytest.approx(8.0 * (3 / 16) ** 2 * 20.0)
    assert prices.worth(frozenset({"s0", "s2"})) == pytest.approx(8.0 * 3 / 16 / 16 * 20.0)
    assert blind.worth(frozenset({"s0", "s1"})) == 0.0
    assert prices.carry(frozenset({"s0"})) == pytest.approx(1.0 / (1.0 + 8.0 * 3 / 16))
    assert prices.carry(frozenset({"s0", "s1"})) == 1.0


def test_bandwidth_is_dearer_the_less_there_is() -> None:
    problem = paper_problem(2, SETUP)
    wide = replace(problem.hosts[1], outgoing=500.0)
    state = State(replace(problem, hosts=(problem.hosts[0], wide, *problem.hosts[2:])))
    outlook = Outlook(state, Tuning(bandwidth=1.0, steepness=1.0))
    idle = outlook.prices(ahead=False)
    assert idle.out.tolist() == pytest.approx([6.0, 0.6, 6.0, 6.0])
    base = frozenset({next(n for n, b in problem.streams.items() if b.host == 2)})
    state.send(2, 3, base)
    used = outlook.prices(ahead=False)
    assert used.out[2] / idle.out[2] == used.into[3] / idle.into[3] == pytest.approx(2.718281828 ** (10 / 50))
    assert used.out[3] == idle.out[3]
    assert outlook.unit == 10.0


def test_operators_that_need_next_to_nothing_leave_nothing_unused() -> None:
    """Room over the least need has no end in numbers: no rest of it is charged, and nothing is warned of."""
    room, cpu = np.array([300.0, np.inf]), np.array([1e-320, 2e-320])
    prices = replace(
        Outlook(State(paper_problem(2, SETUP)), Tuning()).prices(ahead=False), cpu=np.ones(2), unit=1e-320
    )
    with np.errstate(all="raise", under="ignore"):
        assert prices.cpu_price(cpu, room).tolist() == cpu.tolist()
