"""Both phases together: what is reported, and why others lost."""

from __future__ import annotations

from dataclasses import replace
from itertools import count, pairwise
from random import Random

import pytest

from headrace.errors import UserError
from headrace.plan.federated import Engine
from headrace.planners.federation.brute_force import every_split
from headrace.planners.federation.compare import rank
from headrace.planners.federation.losers import why_lost
from headrace.planners.federation.problem import (
    Federated,
    InDuckDB,
    Kind,
    Operator,
    Options,
    Plan,
    Prices,
    Query,
    Stream,
    Table,
    Window,
)
from headrace.planners.federation.solve import complete_plans, solve
from headrace.planners.federation.templates import averages_joined, paper_tree
from tests.unit.planners.federation.plans import random_plan

S, D = Engine.SPARK, Engine.DUCKDB


def solved(problem: Plan | Query, options: Options | None = None) -> Federated:
    ticks = count()
    return solve(problem, options or Options(), lambda: next(ticks))


def chain(
    spark: tuple[float, ...], held: tuple[float, ...], prices: Prices, cores: float | None = None
) -> Plan:
    operators, below = [], "w"
    for i, (c, in_duckdb) in enumerate(zip(spark, held, strict=True)):
        duckdb = (InDuckDB(0.0, in_duckdb),)
        operators.append(Operator(f"o{i}", Kind.PROJECT, (below,), spark=(c,), duckdb=duckdb))
        below = f"o{i}"
    return Plan((Stream("s", 1),), (Window("w", "s", 1, 1),), tuple(operators), prices=prices, cores=cores)


def test_answer_of_a_query() -> None:
    answer = solved(averages_joined(3))
    assert len(answer.plan.operators) == len(answer.sizes) == len(answer.split.engines) == 9
    assert answer.joins_examined > 3
    assert (answer.phase_one_seconds, answer.phase_two_seconds) == (1, 1)
    assert sorted(n for part in answer.split.parts for n in part.operators) == sorted(answer.plan.position)
    assert {S, D} == set(answer.split.engines)


def test_runners_up_of_small_plans_are_the_next_best_of_all() -> None:
    rng = Random(31)
    for _ in range(20):
        plan = random_plan(rng, 6, fixed=0)
        answer = solved(plan, Options(runners=4))
        every = sorted(every_split(plan, Options()), key=lambda one: rank(one.bottleneck, one.utilisation))
        pure = {(S,) * len(plan.operators), (D,) * len(plan.operators)}
        got = [loser.split for loser in answer.losers]
        expected = min(4, len(every) - 1)
        assert len(got) >= expected
        assert pure <= {answer.split.engines, *(split.engines for split in got)}
        ours = [split.utilisation for split in [answer.split, *got][: expected + 1]]
        assert ours == pytest.approx([split.utilisation for split in every[: expected + 1]])


def test_runners_up_of_large_plans_hold_the_pure_ones() -> None:
    answer = solved(paper_tree(5), Options(runners=2))
    assert len(answer.losers) == 4
    assert {(S,) * 15, (D,) * 15} <= {loser.split.engines for loser in answer.losers}
    assert solved(paper_tree(5), Options(runners=0)).losers == ()


def test_reasons() -> None:
    """Spark 0.9 + 0.9; DuckDB 1.2 for both, or 0.7 for one."""
    plan = chain((0.9, 0.9), (0.5, 0.5), Prices(0.1, 0.1, 0.0))
    answer = solved(plan)
    assert answer.split.engines == (D, S)
    why = {loser.split.engines: loser.why for loser in answer.losers}
    assert why[D, D] == "infeasible: o0, o1 on DuckDB takes 1.2 of one core"
    assert why[S, S] == "takes 0.2 cores more (1.8, 12%): work on Spark 1.8 instead of 0.9"
    assert why[S, D] == "costs the same"


def test_reasons_where_nothing_is_feasible() -> None:
    plan = chain((3.0,), (1.8,), Prices(0.1, 0.1, 0.0))
    assert [loser.why for loser in solved(plan).losers] == [
        "slower: o0 on Spark takes 3 of one core, against 2"
    ]
    shared = chain((0.9, 0.9), (0.4, 0.3), Prices(0.1, 0.1, 0.0), cores=1.0)
    whys = {loser.split.engines: loser.why for loser in solved(shared).losers}
    assert solved(shared).split.engines == (D, D)
    assert whys[S, S] == "infeasible: it takes 1.8 of 1 cores"


def whys(plan: Plan, options: Options | None = None) -> dict[tuple[Engine, ...], str]:
    return {loser.split.engines: loser.why for loser in solved(plan, options).losers}


def test_reasons_compare_like_with_like_where_cores_are_shared() -> None:
    why = whys(chain((0.9, 0.9), (0.5, 0.5), Prices(0.1, 0.1, 0.0), cores=0.5))
    assert why[S, S] == "slower: it takes 1.8 of 0.5 cores, against 1.2"
    # One part of 2.5, against two of 2 that share one core and a half.
    why = whys(chain((2.0, 2.0), (0.25, 0.25), Prices(1.0, 1.0, 0.0), cores=1.5))
    assert why[S, S] == "slower: it takes 4 of 1.5 cores: C_b 2.67 against 2.5"


def test_reasons_have_the_digits_that_tell_plans_apart() -> None:
    near = chain((2.00001,), (1.8,), Prices(0.1, 0.1, 0.0))
    assert whys(near) == {(S,): "slower: o0 on Spark takes 2.00001 of one core, against 2"}
    over = chain((1.0001,), (0.7,), Prices(0.1, 0.1, 0.0))
    assert whys(over) == {(S,): "infeasible: o0 on Spark takes 1.0001 of one core"}
    spark = solved(chain((0.5, 0.00001), (0.1, 0.4), Prices()), Options(engine="spark")).split
    nearly = replace(spark, parts=(replace(spark.parts[0], u=0.5001), spark.parts[1]), utilisation=0.50011)
    assert why_lost(spark, nearly, None) == (
        "takes 0.0001 cores more (0.5, 0%): work on Spark 0.5001 instead of 0.5"
    )


def test_reasons_of_the_paper_where_a_bottleneck_hides_the_rest() -> None:
    """o1 takes 5 on Spark, whatever is below it."""
    plan = chain((0.9, 5.0), (0.1, 8.0), Prices(0.1, 0.1, 0.0))
    assert solved(plan).split.engines == (D, S)
    cheaper, dearer = solved(plan).split, solved(plan, Options(engine="spark")).split
    said = "as slow, and takes 0.6 cores less, which Definition 1 leaves out of account"
    assert why_lost(dearer, cheaper, None) == said


def test_reasons_of_plans_that_the_pieces_did_not_show() -> None:
    plan = chain((0.9, 0.9), (0.5, 0.5), Prices(0.1, 0.1, 0.0))
    splits = {split.engines: split for split in every_split(plan, Options())}
    assert why_lost(splits[D, D], splits[S, S], None) == "feasible, but the search in pieces did not see it"
    assert why_lost(splits[S, S], splits[D, S], None).startswith("takes 0.2 cores less, but")
    slow = {split.engines: split for split in every_split(chain((3.0,), (1.8,), plan.prices), Options())}
    said = "faster (C_b 2 instead of 3), but the search in pieces did not see it"
    assert why_lost(slow[S,], slow[D,], None) == said


def test_equal_sums_are_told_with_their_bottlenecks() -> None:
    one = next(every_split(chain((0.4, 0.3), (0.5, 0.4), Prices()), Options(engine="spark")))
    other = replace(one, bottleneck=0.6)
    assert why_lost(one, other, None) == "takes as much, with C_b 0.6 instead of 0.4"
    assert why_lost(other, one, None) == "costs the same"


def test_what_cannot_be_counted_is_refused_also_at_the_root() -> None:
    """Tables: nothing arrives, so that nothing costs anything, but their product is too large."""
    names = ["t", *(f"j{i}" for i in range(8))]
    joins = [
        Operator(name, Kind.JOIN, (below, "t"), duckdb=(InDuckDB(),) * 2) for below, name in pairwise(names)
    ]
    plan = Plan((), (), tuple(joins), (Table("t", 1e12),))
    with pytest.raises(UserError, match="operator j7 has more rows than can be counted"):
        solved(plan)
    assert solved(replace(plan, operators=plan.operators[:7])).sizes[-1].rows == pytest.approx(1e96)


def test_reasons_without_the_feasibility_check_speak_of_utilisation() -> None:
    plan = chain((0.9, 0.9), (0.5, 0.5), Prices(0.1, 0.1, 0.0))
    answer = solved(plan, Options(feasibility=False))
    assert answer.split.engines == (D, D)
    assert all(loser.why.startswith("takes ") for loser in answer.losers)


def test_a_search_that_would_never_end_is_refused() -> None:
    with pytest.raises(UserError, match="paper has 55,181,291 plans"):
        solved(paper_tree(16), Options(pruning="paper"))
    with pytest.raises(UserError, match="exhaustive has 16,777,216 plans"):
        solved(paper_tree(8), Options(pruning="none"))
    assert solved(paper_tree(16), Options(pruning="paper", decompose=12)).examined < 10_000


def test_counts_are_foretold() -> None:
    for ways in (2, 5, 8):
        for pruning in ("paper", "none"):
            options = Options(pruning=pruning)
            if complete_plans(paper_tree(ways), options) < 10_000:
                assert solved(paper_tree(ways), options).examined == complete_plans(paper_tree(ways), options)


def test_decomposed_plans_are_solved_piece_by_piece() -> None:
    whole, pieces = solved(paper_tree(8)), solved(paper_tree(8), Options(decompose=15))
    assert pieces.split.utilisation >= whole.split.utilisation * (1 - 1e-9)
    by_paper = solved(paper_tree(8), Options(pruning="paper", decompose=15))
    assert by_paper.examined < 600


def test_fixed_operators_stay() -> None:
    plan = chain((0.9, 0.9), (0.5, 0.5), Prices(0.1, 0.1, 0.0))
    last = replace(plan.operators[1], engine=D)
    answer = solved(replace(plan, operators=(plan.operators[0], last)))
    assert answer.split.engines[1] is D
    assert all(loser.split.engines[1] is D for loser in answer.losers)
