"""Joins and filters that run, counted by hand."""

from __future__ import annotations

from dataclasses import replace

from headrace.experiments.placement.operators import count_operators
from headrace.planners.placement.problem import (
    BaseStream,
    Filter,
    Join,
    Leaf,
    Network,
    PlacementProblem,
    Query,
    Reused,
    Tree,
)

NETWORK = Network((0, 1, 2), ((0, 1, 1.0), (1, 2, 1.0)))
STREAMS = {name: BaseStream(name, i, 1.0) for i, name in enumerate("abc")}
WEAK, STRONG = Filter("weak", "a", 0.5), Filter("strong", "a", 0.1, frozenset({"weak"}))
A, B, C = Leaf("a", 0), Leaf("b", 1), Leaf("c", 2)
AB = Join(A, B, 1)
PAIR = frozenset("ab")


def problem(*queries: Query) -> PlacementProblem:
    return PlacementProblem(NETWORK, STREAMS, {}, queries, filters={"weak": WEAK, "strong": STRONG})


def query(name: str, streams: str, condition: str | None = None) -> Query:
    return Query(name, tuple(streams), 2, {"a": condition} if condition else {})


def count(made: PlacementProblem, *trees: Tree) -> tuple[int, int]:
    return count_operators(made, [(q.id, tree) for q, tree in zip(made.queries, trees, strict=True)])


def test_without_filters_there_are_only_joins() -> None:
    made = problem(query("x", "ab"), query("y", "abc"))
    assert count(made, AB, Join(Reused(0, "x", PAIR, 1), C, 2)) == (2, 0)
    assert count(made, AB, Join(AB, C, 2)) == (3, 0), "the same join twice runs twice"


def test_a_filter_stands_at_the_source_once() -> None:
    assert count(problem(query("x", "abc", "weak")), Join(AB, C, 2)) == (2, 1)


def test_a_stronger_reader_cuts_behind_the_join() -> None:
    made = problem(query("x", "ab", "weak"), query("y", "ab", "strong"))
    assert count(made, AB, Reused(0, "x", PAIR, 1)) == (1, 2)


def test_a_widened_join_is_cut_for_who_had_it_before() -> None:
    """The join holds all rows for y, so x's own rows are cut out behind it, and none before it."""
    made = problem(query("x", "ab", "strong"), query("y", "ab"))
    assert count(made, AB, Reused(0, "x", PAIR, 1)) == (1, 1)
    other = problem(query("x", "ab", "strong"), query("y", "ab", "weak"))
    assert count(other, AB, Reused(0, "x", PAIR, 1)) == (1, 2)


def test_the_same_filter_is_not_cut_again() -> None:
    made = problem(query("x", "ab", "weak"), query("y", "abc", "weak"))
    assert count(made, AB, Join(Reused(0, "x", PAIR, 1), C, 2)) == (2, 1)


def test_a_single_stream_is_filtered_for_its_sink() -> None:
    assert count(problem(query("x", "a", "weak")), A) == (0, 1)
    assert count(problem(query("x", "a")), A) == (0, 0)


def test_results_at_sinks_are_no_joins() -> None:
    made = replace(problem(query("x", "ab", "weak"), query("y", "ab", "strong")), sinks=True)
    assert count(made, AB, Reused(1, "x", PAIR, 2)) == (1, 2), (
        "the weak one at the source, the strong one at x's sink"
    )
