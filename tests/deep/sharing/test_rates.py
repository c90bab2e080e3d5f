"""Edge rates in floats, by table and by set, against exact fractions and a bit set."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from headrace.planners.sharing.brute_force import bitset_edge_rate, composite_slide
from headrace.planners.sharing.edges import EdgeCounter
from headrace.planners.sharing.instance import edges_of, instance_of
from headrace.planners.sharing.problem import SharingProblem, WindowQuery
from headrace.planners.sharing.rates import Rates, Rows, rates_of

Window = tuple[int, int]
EXACT = 1e-12
POOLS = (
    tuple(range(1, 26)),
    tuple(range(1, 51)),
    (2, 4, 8, 16, 32),
    (12, 18, 24, 30, 36, 60),
    (7, 11, 13, 49),
)


def distinct(rng: random.Random, pool: Sequence[int], *, closing: bool) -> list[Window]:
    """Windows with different edges, one a class."""
    made = {}
    for _ in range(rng.randint(1, 14)):
        slide = rng.choice(pool)
        window = (rng.randint(1, 4 * slide) if closing else slide, slide)
        made[slide, window[0] % slide] = window
    return list(made.values())


def methods(windows: Sequence[Window]) -> list[Rates]:
    """Both ways of reading, where the table is allowed one."""
    classes = [edges_of(s, r % s) for r, s in windows]
    return [rates_of(classes), rates_of(classes, most_cells=0)]


def subsets(rng: random.Random, count: int) -> list[list[int]]:
    return [sorted(rng.sample(range(count), rng.randint(1, count))) for _ in range(4)] + [list(range(count))]


def union(rates: Rates, chosen: Sequence[int]) -> Rows:
    row: Rows = np.bitwise_or.reduce(rates.rows[list(chosen)], axis=0)
    return row


@pytest.mark.parametrize("closing", [False, True])
@pytest.mark.parametrize("pool", POOLS, ids=str)
def test_both_methods_give_the_exact_rate(pool: tuple[int, ...], closing: bool) -> None:
    rng = random.Random(str(pool))
    for _ in range(8):
        windows = distinct(rng, pool, closing=closing)
        counter = EdgeCounter()
        for chosen in subsets(rng, len(windows)):
            exact = counter.rate([windows[i] for i in chosen])
            assert exact.exact
            for rates in methods(windows):
                assert rates.of(union(rates, chosen))[0] == pytest.approx(float(exact.low), abs=EXACT)


def test_small_sets_equal_the_bit_set() -> None:
    """The other oracle, so that a mistake shared by edges.py and rates.py would show."""
    rng = random.Random(8)
    for _ in range(60):
        windows = distinct(rng, range(1, 13), closing=True)
        assert composite_slide(windows) <= 27_720
        for rates in methods(windows):
            found = rates.of(union(rates, range(len(windows))))[0]
            assert found == pytest.approx(float(bitset_edge_rate(windows)), abs=EXACT)


def test_slides_into_the_thousands() -> None:
    """Too many for a table: the set method alone, in trees of the size that searches make."""
    rng = random.Random(2)
    windows = [(rng.randint(1, 4 * s), s) for s in rng.sample(range(100, 5000), 120)]
    rates = rates_of([edges_of(s, r % s) for r, s in windows])
    assert not rates.tabled
    counter = EdgeCounter()
    for _ in range(40):
        chosen = rng.sample(range(120), rng.randint(1, 12))
        exact = counter.rate([windows[i] for i in chosen])
        assert exact.exact
        assert rates.of(union(rates, chosen))[0] == pytest.approx(float(exact.low), abs=EXACT)


@pytest.mark.parametrize("pool", [POOLS[1], (720, 1080, 1800, 2520, 1001, 77)], ids=["table", "large"])
def test_one_class_more(pool: tuple[int, ...]) -> None:
    rng = random.Random(6)
    windows = distinct(rng, pool, closing=True)
    for rates in methods(windows):
        rows = np.array([union(rates, chosen) for chosen in subsets(rng, len(windows))])
        for row in rates.rows:
            assert rates.with_class(rows, row) == pytest.approx(rates.of(rows | row), abs=0)
            assert (rates.with_class(rows, row) >= rates.of(rows) - EXACT).all(), "more edges, a higher rate"


def test_equal_edges_weave_for_nothing() -> None:
    """A range of half a slide more than a multiple has the edges of half the slide."""
    windows = [(6, 4), (2, 2), (10, 4)]
    for rates in methods(windows):
        assert rates.of(union(rates, [0, 1, 2]))[0] == rates.of(rates.rows[1:2])[0] == 0.5


def test_classes_of_an_instance() -> None:
    queries = [(6, 3), (9, 3), (7, 3), (8, 5), (3, 3), (13, 5)]
    problem = SharingProblem(
        2.0, (1.0,), tuple(WindowQuery(f"q{i}", r, s) for i, (r, s) in enumerate(queries))
    )
    made = instance_of(problem)
    assert made.klass.tolist() == [0, 0, 1, 2, 0, 2]
    assert made.members() == [[0, 1, 4], [2], [3, 5]]
    assert made.single == pytest.approx([float(Fraction(1, 3)), float(Fraction(2, 3)), 0.4])
    alone = [2 + q.overlap * len({0, q.offset}) / q.slide for q in problem.queries]
    assert made.own_costs() == pytest.approx([float(cost) for cost in alone])
