"""The generator does what section 7.1 says."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from headrace.experiments.weaving.workload import (
    EXPERIMENT_2,
    NAMES,
    TABLE_2,
    Parameters,
    grid,
    parameters_of,
    quick_grid,
    workload,
)


def test_there_are_256_different_experiments() -> None:
    assert len(set(grid())) == len(grid()) == 256
    assert EXPERIMENT_2 in grid()


def test_the_quick_ones_show_every_value() -> None:
    chosen = quick_grid()
    assert len(set(chosen)) == 16
    assert EXPERIMENT_2 in chosen
    for name, values in zip(NAMES, TABLE_2, strict=True):
        assert {p.to_dict()[name] for p in chosen} == set(values)


@pytest.mark.parametrize("parameters", grid()[::37])
def test_a_workload_is_what_its_parameters_say(parameters: Parameters) -> None:
    problem = workload(parameters, 1)
    assert len(problem.queries) == parameters.qnum == len({q.id for q in problem.queries})
    assert (problem.nodes, problem.rate, problem.cost) == (parameters.nnum, parameters.rate, "paper")
    assert problem.uniform
    for query in problem.queries:
        assert 1 <= query.slide <= parameters.smax
        assert query.offset == 0
        assert 1 <= query.overlap <= parameters.omega


def test_diverse_slides_are_the_primes() -> None:
    primes = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47}
    seen = {q.slide for p in grid() if p.gen == "Div" for q in workload(p, 0).queries}
    assert seen == primes


def test_the_seed_is_the_parameters_and_the_repeat() -> None:
    assert workload(EXPERIMENT_2, 0) == workload(EXPERIMENT_2, 0)
    problems = {workload(p, r).queries for p in quick_grid() for r in range(3)}
    assert len(problems) == 48


def test_the_first_queries_never_change() -> None:
    """Published figures hang on these; numpy promises stable streams of its bit generators."""
    queries = [(q.range, q.slide) for q in workload(EXPERIMENT_2, 0).queries[:4]]
    assert queries == [(624, 24), (1748, 23), (464, 8), (1248, 24)]


def test_skew_one_favours_large_slides_by_one_over_rank() -> None:
    skewed = [p for p in grid() if p.zskew == 1 and p.smax == 25 and p.gen == "Nrm"]
    slides = Counter(q.slide for p in skewed for r in range(3) for q in workload(p, r).queries)
    count = slides.total()
    harmonic = sum(Fraction(1, k) for k in range(1, 26))
    for slide in range(1, 26):
        share = float(1 / harmonic / (26 - slide))
        assert slides[slide] / count == pytest.approx(share, abs=4 * (share / count) ** 0.5)


def test_skew_zero_is_uniform() -> None:
    even = [p for p in grid() if p.zskew == 0 and p.smax == 50 and p.gen == "Nrm"]
    slides = Counter(q.slide for p in even for r in range(3) for q in workload(p, r).queries)
    assert len(slides) == 50
    for number in slides.values():
        assert number / slides.total() == pytest.approx(0.02, abs=4 * (0.02 / slides.total()) ** 0.5)


@pytest.mark.parametrize("omega", [10, 100])
def test_whole_overlaps_are_uniform_from_one_to_the_maximum(omega: int) -> None:
    chosen = [p for p in grid() if p.omega == omega]
    overlaps = np.array([float(q.overlap) for p in chosen for q in workload(p, 0).queries])
    assert (overlaps.min(), overlaps.max()) == (1, omega)
    assert overlaps.mean() == pytest.approx((1 + omega) / 2, rel=0.01)
    assert overlaps.var() == pytest.approx((omega**2 - 1) / 12, rel=0.02)


def test_real_overlaps_differ_in_nothing_but_the_ranges() -> None:
    parameters = grid()[-1]
    whole, real = workload(parameters, 0), workload(parameters, 0, "real")
    assert [q.slide for q in whole.queries] == [q.slide for q in real.queries]
    assert any(q.offset for q in real.queries)
    for one, other in zip(whole.queries, real.queries, strict=True):
        assert abs(one.range - other.range) <= one.slide + 1
        assert other.range >= 1


def test_parameters_come_back_from_their_names() -> None:
    for parameters in grid():
        assert parameters_of(parameters.to_dict()) == parameters
    with pytest.raises(ValueError, match="none of the paper's"):
        parameters_of({**EXPERIMENT_2.to_dict(), "Qnum": 251})
