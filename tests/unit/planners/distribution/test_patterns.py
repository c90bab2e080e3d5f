"""Round robin and grouping, against tables worked by hand; every operator once, whatever the plan."""

from __future__ import annotations

from random import Random

import pytest

from headrace.errors import UserError
from headrace.planners.distribution.patterns import grouping, round_robin
from headrace.planners.distribution.plans import SHAPES, paper_plan
from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream
from headrace.planners.distribution.usage import misplaced, usage
from tests.unit.planners.distribution.drawn import drawn


def plan(count: int, **alive: bool) -> Problem:
    """   top
          /  \\
        j1    j2
        /\\    /\\
       a  b  c  d"""
    sites = tuple(Site(f"m{i}", alive=alive.get(f"m{i}", True)) for i in range(count))
    operators = (
        *(Operator(name, ("s",)) for name in "ab"),
        Operator("j1", ("a", "b")),
        *(Operator(name, ("s",)) for name in "cd"),
        Operator("j2", ("c", "d")),
        Operator("top", ("j1", "j2")),
    )
    return Problem(sites, operators, (Query("q", ("top",)),), (Stream("s", 1.0),))


def groups(table: dict[str, str]) -> list[set[str]]:
    return [{name for name, at in table.items() if at == site} for site in dict.fromkeys(table.values())]


def test_round_robin_takes_turns() -> None:
    assert groups(round_robin(plan(3))) == [{"a", "c", "top"}, {"b", "d"}, {"j1", "j2"}]


def test_a_site_that_does_not_answer_gets_nothing() -> None:
    assert set(round_robin(plan(3, m1=False)).values()) == {"m0", "m2"}
    assert set(grouping(plan(3, m1=False)).values()) == {"m0", "m2"}
    for pattern in (round_robin, grouping):
        with pytest.raises(UserError, match="no site answers"):
            pattern(plan(2, m0=False, m1=False))


def test_grouping_by_hand() -> None:
    """Room for 4: from a up to j1, whose other input b fits; up to top. Then from c up to j2, and d."""
    assert groups(grouping(plan(2))) == [{"a", "j1", "b", "top"}, {"c", "j2", "d"}]
    # Room for 3, 2, 2: top does not fit with the first; c and j2 fill the second.
    assert groups(grouping(plan(3))) == [{"a", "j1", "b"}, {"c", "j2"}, {"d", "top"}]


def test_how_the_two_readings_of_grouping_divide() -> None:
    """5 operators on 4 machines: the text divides evenly, the listing fills two by two."""
    chain = tuple(Operator(f"o{i}", (f"o{i - 1}" if i else "s",)) for i in range(5))
    problem = Problem(tuple(Site(f"m{i}") for i in range(4)), chain, (), (Stream("s", 1.0),))
    assert [len(one) for one in groups(grouping(problem))] == [2, 1, 1, 1]
    assert [len(one) for one in groups(grouping(problem, by_listing=True))] == [2, 2, 1]


def test_everything_gets_a_site_once() -> None:
    for seed in range(60):
        rng = Random(seed)
        problem = drawn(rng, rng.randint(1, 12), rng.randint(1, 5))
        for table in (round_robin(problem), grouping(problem), grouping(problem, by_listing=True)):
            assert not list(misplaced(problem, table))
        counts = [len(one) for one in groups(grouping(problem))]
        assert max(counts) - min(counts) <= 1 and counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("operators", SHAPES)
@pytest.mark.parametrize("sites", [2, 3, 4, 5])
def test_grouping_needs_fewer_connections_than_round_robin(operators: int, sites: int) -> None:
    for seed in range(5):
        problem = paper_plan(operators, sites, Random(seed))
        grouped = usage(problem, grouping(problem)).connections.total
        in_turn = usage(problem, round_robin(problem)).connections.total
        # Five operators on five machines are alone however they are dealt out.
        assert grouped < in_turn or operators == sites
