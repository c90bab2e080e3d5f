"""The paper's plans have the paper's figures."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from headrace.planners.distribution.plans import SHAPES, Unit, joins_in_a_row, paper_plan
from headrace.planners.distribution.problem import Problem


def depth(problem: Problem) -> int:
    found: dict[str, int] = {}
    for name in problem.order:
        found[name] = 1 + max((found.get(below, 0) for below in problem.operator[name].inputs), default=0)
    return max(found.values())


@pytest.mark.parametrize(
    ("operators", "deep", "streams", "joins", "results"),
    [(5, 5, 1, 0, 1), (20, 9, 6, 5, 1), (40, 14, 8, 7, 1), (80, 14, 16, 14, 2)],
)
def test_shapes(operators: int, deep: int, streams: int, joins: int, results: int) -> None:
    for seed in range(10):
        problem = paper_plan(operators, 3, Random(seed))
        kinds = Counter(one.kind for one in problem.operators)
        assert len(problem.operators) == operators
        assert depth(problem) == deep
        assert len(problem.streams) == streams
        assert kinds["join"] == joins
        assert len(problem.queries) == results
        assert all(len(readers) <= 1 for readers in problem.readers.values())
        leaves = [one for one in problem.operators if any(name in problem.stream for name in one.inputs)]
        assert len(leaves) == streams


def test_costs_follow_the_equations() -> None:
    unit = Unit(omega=2.0, rho=3.0, psi=5.0, pair=7.0, window=10.0)
    problem = joins_in_a_row(2, 1, unit)
    first, second = problem.operators
    assert first.rate == 160.0 and second.rate == 400.0
    # Equation 3: n omega + psi * sum of states + rho (n1 s2 + n2 s1) + sigma(n) omega
    assert first.cpu == pytest.approx(80 * 2 + 5 * 800 + 7 * (40 * 400 + 40 * 400) + 160 * 2)
    assert second.cpu == pytest.approx(200 * 2 + 5 * 2000 + 7 * (160 * 400 + 40 * 1600) + 400 * 2)
    single = paper_plan(5, 1, Random(0), unit).operators[0]
    assert single.cpu == pytest.approx(40 * (2 + 3) + 40 * 2)  # Equation 2
    assert single.rate == 40.0


def test_the_same_seed_gives_the_same_plan() -> None:
    assert paper_plan(20, 2, Random(7)) == paper_plan(20, 2, Random(7))
    assert set(SHAPES) == {5, 20, 40, 80}
