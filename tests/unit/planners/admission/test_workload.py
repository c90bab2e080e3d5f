"""The paper's simulation: sizes, Zipf's law, and rates that are drawn when they are asked for."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from headrace.planners.admission.problem import MOST_STREAMS
from headrace.planners.admission.workload import LARGE, PAPER, Setup, asked_rates, paper_problem


def test_the_paper_s_sizes() -> None:
    problem = paper_problem(0)
    assert (len(problem.hosts), len(problem.streams), len(problem.queries)) == (50, 500, 1000)
    assert {base.rate for base in problem.streams.values()} == {10.0}
    assert set(Counter(base.host for base in problem.streams.values()).values()) == {10}
    ways = Counter(len(query.streams) for query in problem.queries)
    assert max(ways.values()) - min(ways.values()) <= 1
    assert ways.keys() == {2, 3, 4}
    assert {(h.cpu, h.incoming, h.outgoing) for h in problem.hosts} == {(300.0, 1000.0, 1000.0)}
    assert problem.links_never_bind


def test_popularity_follows_zipf() -> None:
    """A query of two streams holds the r-th with a chance that is known in closed form."""
    setup = Setup(streams=20, queries=8_000, ways=(2,))
    seen = Counter(name for query in paper_problem(1, setup).queries for name in query.streams)
    chance = 1.0 / np.arange(1, 21)
    chance /= chance.sum()
    second = (chance / (1 - chance)).sum() - chance / (1 - chance)
    expected = 8_000 * chance * (1 + second)
    got = np.array([seen[f"s{rank}"] for rank in range(20)])
    assert np.all(np.abs(got - expected) < 5 * np.sqrt(expected))


def test_a_seed_gives_one_problem() -> None:
    first, second, other = paper_problem(3), paper_problem(3), paper_problem(4)
    assert first.queries == second.queries
    assert first.streams == second.streams
    assert first.queries != other.queries
    sets = [query.streams for query in first.queries]
    backwards = {stream: second.rates[stream] for stream in reversed(sets)}
    assert all(first.rates[stream] == backwards[stream] for stream in sets)


def test_rates_are_a_selectivity_of_the_sum() -> None:
    problem = paper_problem(0)
    shares = [problem.rate(q.streams) / (10.0 * len(q.streams)) for q in problem.queries]
    assert min(shares) >= 0.001
    assert max(shares) <= 0.005
    assert np.mean(shares) == pytest.approx(0.003, rel=0.05)


def test_rates_are_a_mapping_of_all_sets() -> None:
    problem = paper_problem(0, Setup(hosts=2, streams=5, queries=3))
    every = [frozenset(c) for size in range(2, 6) for c in combinations(problem.streams, size)]
    assert set(problem.rates) == set(every)
    assert len(problem.rates) == len(every)
    assert problem.rates.get(frozenset({"s0", "nothing"})) is None
    assert frozenset({"s0"}) not in problem.rates
    with pytest.raises(KeyError):
        problem.rates[frozenset({"s0", "nothing"})]
    wide = paper_problem(0).rates
    assert frozenset(f"s{i}" for i in range(MOST_STREAMS + 1)) not in wide


def test_the_rates_that_queries_can_ask_for() -> None:
    problem = paper_problem(0, Setup(queries=30))
    asked = asked_rates(problem)
    assert {query.streams for query in problem.queries} <= asked.keys()
    parts = {frozenset(p) for q in problem.queries for n in (2, 3, 4) for p in combinations(q.streams, n)}
    assert asked.keys() == parts
    assert all(problem.rates[stream] == rate for stream, rate in asked.items())


def test_the_large_one_is_the_paper_s_times_twenty() -> None:
    assert (LARGE.hosts, LARGE.queries, LARGE.bandwidth) == (1000, 20_000, 100.0)
    assert LARGE.streams / LARGE.hosts == PAPER.streams / PAPER.hosts
