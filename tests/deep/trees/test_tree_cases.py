"""A few of the random trees that `python -m tests.trees_check` plays by the thousand."""

from __future__ import annotations

from tests.property.tree_cases import engine_case
from tests.property.tree_judge import Outcome


def check(outcomes: list[Outcome], rows: int, late: int) -> None:
    problems = [problem for outcome in outcomes for problem in outcome.problems]
    assert not problems, "\n".join(problems)
    assert sum(o.rows for o in outcomes) > rows and sum(o.late for o in outcomes) > late


def test_whole_trees_give_what_the_reference_gives() -> None:
    check([engine_case(seed) for seed in range(2_000_000, 2_000_024)], 5_000, 50)


def test_members_may_come_and_go() -> None:
    check([engine_case(seed, changes=True) for seed in range(3_000_000, 3_000_016)], 2_000, 20)
