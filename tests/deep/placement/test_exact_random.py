"""The exact planner on 1,000 random problems, each with up to four queries one after another, against brute
force; and on larger networks of every kind against a programme that prunes nothing."""

from __future__ import annotations

import pytest

from headrace.planners.placement import exact as module
from tests.unit.planners.placement.exact_cases import KINDS, check, large_problem, small_problem
from tests.unit.planners.placement.exact_oracle import plain


@pytest.mark.parametrize("part", range(4))
def test_1000_problems(part: int) -> None:
    done = [check(small_problem(seed)) for seed in range(1000 + 250 * part, 1250 + 250 * part)]
    assert sum(good for good, _ in done) > 400


def test_small_problems_with_a_first_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "HUBS", 2)
    for seed in range(2000, 2250):
        check(small_problem(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_larger_networks(kind: str) -> None:
    for seed in range(10, 13):
        for forbidden in (0.0, 0.2):
            check(large_problem(seed, kind, forbidden=forbidden), plain)
