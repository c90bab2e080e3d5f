"""The closure of time bounds, against all paths tried one by one."""

from __future__ import annotations

from itertools import pairwise, permutations

from hypothesis import given
from hypothesis import strategies as st

from headrace.plan.bounds import Bounds, TimeBound, close, join_bounds, rename

NAMES = ("a", "b", "c", "d")
PAIRS = [(x, y) for x in NAMES for y in NAMES if x != y]
bounds_without_contradiction = st.dictionaries(st.sampled_from(PAIRS), st.integers(0, 30), max_size=12)


def shortest(bounds: Bounds, start: str, end: str) -> int | None:
    """The least sum over every path without a loop."""
    between = [n for n in NAMES if n not in (start, end)]
    sums = []
    for count in range(len(between) + 1):
        for middle in permutations(between, count):
            path = (start, *middle, end)
            edges = list(pairwise(path))
            if all(edge in bounds for edge in edges):
                sums.append(sum(bounds[edge] for edge in edges))
    return min(sums) if sums else None


@given(bounds_without_contradiction)
def test_close_is_all_shortest_paths(bounds: dict[tuple[str, str], int]) -> None:
    closed = close(bounds)
    for pair in PAIRS:
        assert closed.get(pair) == shortest(bounds, *pair)
    assert set(closed) <= set(PAIRS)


@given(bounds_without_contradiction)
def test_close_is_idempotent_and_leaves_its_input_alone(bounds: dict[tuple[str, str], int]) -> None:
    before = dict(bounds)
    closed = close(bounds)
    assert close(closed) == closed
    assert bounds == before


@given(bounds_without_contradiction, st.lists(st.integers(0, 40), min_size=4, max_size=4))
def test_what_keeps_the_bounds_keeps_their_closure(
    bounds: dict[tuple[str, str], int], times: list[int]
) -> None:
    at = dict(zip(NAMES, times, strict=True))
    if all(at[later] - at[earlier] <= most for (earlier, later), most in bounds.items()):
        assert all(at[later] - at[earlier] <= most for (earlier, later), most in close(bounds).items())


def test_a_negative_bound_says_that_one_time_is_earlier() -> None:
    # b is at least 2 before a, c at most 5 after b: so c is at most 3 after a.
    assert close({("a", "b"): -2, ("b", "c"): 5})["a", "c"] == 3


def test_join_keeps_the_tighter_of_two_bounds() -> None:
    own = (TimeBound("a", "b", 7), TimeBound("a", "b", 9), TimeBound("b", "a", 4))
    assert join_bounds({("a", "b"): 8}, {("c", "d"): 1}, own) == {("a", "b"): 7, ("b", "a"): 4, ("c", "d"): 1}
    assert join_bounds({("a", "b"): 3}, {}, own)["a", "b"] == 3


def test_rename_forgets_bounds_of_dropped_columns() -> None:
    assert rename({("a", "b"): 1, ("b", "c"): 2}, {"a": "x", "b": "y"}) == {("x", "y"): 1}


def test_a_bound_as_text() -> None:
    assert str(TimeBound("a", "b", 1_500_000)) == "b - a <= 1500ms"
