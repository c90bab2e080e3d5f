"""What the conditions of one key leave, against every order of joins there is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import prod
from random import Random

import pytest

from headrace.planners.federation.join_graph import JoinGraph, halves
from headrace.planners.federation.keys import KeyFactor
from headrace.planners.federation.phase_one import best_logical_plan
from headrace.planners.federation.problem import JoinEdge, Kind, Operator, Query, Relation, Stream, Window
from headrace.planners.federation.sizes import sizes_of


def keyed(rng: Random, count: int) -> Query:
    names = [f"r{i}" for i in range(count)]
    pairs = list(combinations(names, 2))
    joins = tuple(
        JoinEdge(a, b, rng.choice((0.0, 0.01, 0.1, 0.3, 1.0)), rng.choice(("k", "k", "h", None)))
        for a, b in rng.sample(pairs, rng.randint(1, len(pairs)))
    )
    return query(names, joins)


def query(names: list[str], joins: tuple[JoinEdge, ...]) -> Query:
    windows = tuple(Window(f"w{name}", "s", 10, 1) for name in names)
    relations = tuple(Relation(name, f"w{name}") for name in names)
    return Query((Stream("s", 10),), windows, relations, joins, (Operator("show", Kind.PROJECT),))


def shares(graph: JoinGraph, whole: int) -> Iterator[float]:
    """What is left of all combinations of rows, once for every order of joins."""
    if whole.bit_count() == 1:
        yield 1.0
    for left, right in halves(whole) if whole.bit_count() > 1 else ():
        join = graph.between(left, right) or graph.cross
        for a in shares(graph, left):
            for b in shares(graph, right):
                yield a * b * join.left


def test_a_set_of_joins_gives_the_same_in_any_order() -> None:
    rng = Random(5)
    for _ in range(60):
        graph = JoinGraph(keyed(rng, rng.randint(2, 4)))
        for whole in range(1, graph.all + 1):
            found = list(shares(graph, whole))
            assert found == pytest.approx([found[0]] * len(found), rel=1e-9, abs=0)


def test_columns_drawn_from_so_many_values_meet_as_often_as_they_do() -> None:
    """Each evenly from 0 .. n - 1: a value in the smallest range is all the others' 1 / n."""
    rng = Random(6)
    for _ in range(50):
        values = [rng.choice((2, 5, 10, 100)) for _ in range(rng.randint(2, 6))]
        every = [
            (1 << a, 1 << b, 1 / max(values[a], values[b])) for a, b in combinations(range(len(values)), 2)
        ]
        factor = KeyFactor(every)
        for whole in range(1, 1 << len(values)):
            own = sorted(n for i, n in enumerate(values) if whole >> i & 1)
            assert factor.of(whole) == pytest.approx(prod(1 / n for n in own[1:]))


def test_a_pair_that_follows_is_as_selective_as_the_strictest_on_its_way() -> None:
    """Two ways from 1 to 4: the looser one counts; 16 and 32 are on no way to the others."""
    factor = KeyFactor([(1, 2, 0.1), (2, 4, 0.01), (1, 8, 0.2), (8, 4, 0.05), (16, 32, 0.5)])
    assert factor.of(0b101) == 0.05
    assert factor.of(0b1010) == 0.1
    assert factor.of(0b010001) == 0.01
    assert factor.of(0b111) == pytest.approx(0.1 * 0.05)
    assert KeyFactor([(1, 2, 0.1), (2, 4, 0.01)]).of(0b101) == 0.01


def test_of_two_conditions_on_one_pair_the_stricter_counts() -> None:
    assert KeyFactor([(1, 2, 0.1), (2, 1, 0.01)]).of(0b11) == 0.01


def test_no_order_wins_by_a_size_that_is_too_small() -> None:
    """a and b of 10 values, c of 100: 100^3 combinations leave a thousandth, whichever comes first."""
    joins = (JoinEdge("a", "b", 0.1, "k"), JoinEdge("b", "c", 0.01, "k"))
    plan = best_logical_plan(query(["a", "b", "c"], joins)).plan
    assert sizes_of(plan)[-1].rows == pytest.approx(100**3 * 0.1 * 0.01)
