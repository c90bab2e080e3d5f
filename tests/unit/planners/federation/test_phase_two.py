"""Phase two against all 2^n splits, and how many plans it compares. The large runs are in
tests/deep/federation."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from headrace.errors import InternalError
from headrace.plan.federated import Engine
from headrace.planners.federation.brute_force import best_split, every_split
from headrace.planners.federation.cost import bottleneck, operator_costs
from headrace.planners.federation.decompose import piece_roots
from headrace.planners.federation.fronts import Open, done_front, open_front
from headrace.planners.federation.phase_one import best_logical_plan
from headrace.planners.federation.phase_two import _Search, engines_of, search
from headrace.planners.federation.problem import (
    InDuckDB,
    Kind,
    Operator,
    Options,
    Plan,
    Prices,
    Stream,
    Window,
)
from headrace.planners.federation.recount import Recount
from headrace.planners.federation.sizes import sizes_of
from headrace.planners.federation.templates import averages_joined, paper_tree
from tests.unit.planners.federation.plans import random_plan

S, D = Engine.SPARK, Engine.DUCKDB


def found_costs(plan: Plan, options: Options) -> tuple[float, float]:
    best = search(plan, options).best
    return bottleneck(best[0], best[1], plan.cores), best[1]


def test_equals_all_splits() -> None:
    rng = Random(7)
    for _ in range(150):
        plan = random_plan(rng, 6)
        for feasibility in (True, False):
            want = best_split(plan, Options(feasibility=feasibility))
            # Both costs: the second search breaks ties between infeasible plans.
            costs = found_costs(plan, Options(feasibility=feasibility))
            assert costs[1] == pytest.approx(want.utilisation, rel=1e-9)
            assert not feasibility or costs[0] == pytest.approx(want.bottleneck, rel=1e-9)


def test_the_papers_pruning_is_optimal_by_the_definition() -> None:
    rng = Random(8)
    for _ in range(150):
        plan = random_plan(rng, 6)
        want = best_split(plan, Options())
        c_b, c_u = found_costs(plan, Options(pruning="paper"))
        same = (c_u, want.utilisation) if want.feasible else (c_b, want.bottleneck)
        assert same[0] == pytest.approx(same[1], rel=1e-9)


def test_unpruned_search_compares_every_split() -> None:
    plan = random_plan(Random(3), 6, fixed=0)
    found = search(plan, Options(pruning="none"))
    splits = {split.engines: split for split in every_split(plan, Options())}
    assert found.examined == len(splits) == 2 ** len(plan.operators)
    for largest, total, bits in found.complete:
        split = splits[engines_of(bits, len(plan.operators))]
        assert bottleneck(largest, total, plan.cores) == pytest.approx(split.bottleneck)
        assert total == pytest.approx(split.utilisation)


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_n_unary_operators_leave_n_plus_1_plans(count: int) -> None:
    rng = Random(count)
    plan = random_plan(rng, count, unary=True, fixed=0)
    while len(plan.operators) < count:
        plan = random_plan(rng, count, unary=True, fixed=0)
    plan = replace(plan, cores=None)
    assert search(plan, Options(pruning="paper")).examined == count + 1
    assert search(plan, Options()).examined <= count + 1


@pytest.mark.parametrize(("ways", "operators", "papers"), [(2, 6, 11), (5, 15, 312), (8, 24, 8411)])
def test_table_2_of_the_paper(ways: int, operators: int, papers: int) -> None:
    plan = paper_tree(ways)
    assert len(plan.operators) == operators
    by_paper, ours = search(plan, Options(pruning="paper")), search(plan, Options())
    assert by_paper.examined == papers
    assert ours.examined <= papers / 1.3
    assert ours.best[1] == pytest.approx(by_paper.best[1])
    own = best_logical_plan(averages_joined(ways)).plan
    assert len(own.operators) == operators
    assert search(own, Options()).examined <= papers / 1.3


def test_every_operator_on_one_engine_but_for_fixed_ones() -> None:
    plan = random_plan(Random(5), 8, fixed=0)
    count = len(plan.operators)
    assert engines_of(search(plan, Options(engine="spark")).best[2], count) == (S,) * count
    assert engines_of(search(plan, Options(engine="duckdb")).best[2], count) == (D,) * count
    first = replace(plan.operators[0], engine=D)
    fixed = replace(plan, operators=(first, *plan.operators[1:]))
    assert engines_of(search(fixed, Options(engine="spark")).best[2], count) == (D, *(S,) * (count - 1))


def chain(
    spark: tuple[float, ...], duckdb: tuple[float, ...], prices: Prices, cores: float | None = None
) -> Plan:
    """One row a second through operators that keep every row, evaluated once a second."""
    operators, below = [], "w"
    for i, (c, held) in enumerate(zip(spark, duckdb, strict=True)):
        operators.append(Operator(f"o{i}", Kind.PROJECT, (below,), spark=(c,), duckdb=(InDuckDB(0.0, held),)))
        below = f"o{i}"
    window = Window("w", "s", 1, 1)
    return Plan((Stream("s", 1),), (window,), tuple(operators), prices=prices, cores=cores)


def test_a_plan_that_fits_is_taken_before_a_cheaper_one_that_does_not() -> None:
    """0.9 for each on Spark, 0.7 for one in DuckDB, 1.2 for both: the smallest sum, and too much for one
    core."""
    plan = chain((0.9, 0.9), (0.5, 0.5), Prices(0.1, 0.1, 0.0))
    assert engines_of(search(plan, Options()).best[2], 2) == (D, S)
    assert engines_of(search(plan, Options(feasibility=False)).best[2], 2) == (D, D)


def test_of_infeasible_plans_with_the_least_bottleneck_the_cheapest_is_given() -> None:
    """The last operator takes 5 whatever is below it. Below it, Spark has the smaller bottleneck (2 against
    3) and the larger sum (4 against 3); one partial plan by the definition would be the wrong one."""
    plan = chain((2.0, 2.0, 5.0), (1.25, 1.25, 9.0), Prices(0.25, 0.25, 0.0))
    assert found_costs(plan, Options()) == pytest.approx((5, 8))
    assert found_costs(plan, Options(pruning="paper"))[0] == pytest.approx(5)
    assert found_costs(plan, Options(pruning="paper"))[1] > 8.5


def test_one_plan_on_spark_is_not_enough_where_cores_are_shared() -> None:
    """C_b is then at least C_u / cores, so that a plan with the larger u may win later by its smaller sum."""
    rng = Random(11)
    seen = 0
    for _ in range(150):
        plan = replace(random_plan(rng, 6, fixed=0), cores=1.5)
        want = best_split(plan, Options())
        c_b, c_u = found_costs(plan, Options())
        assert (c_b, c_u) == pytest.approx((want.bottleneck, want.utilisation), rel=1e-9)
        alone = best_split(replace(plan, cores=None), Options())
        seen += alone.engines != want.engines
    assert seen


def test_fronts_keep_what_nothing_beats() -> None:
    plans: list[Open] = [
        (0.5, 1.0, 1.0, 1.0, 1),
        (0.6, 1.0, 1.0, 1.0, 2),  # the largest u counts only above the limit, so this is the same plan again
        (2.0, 0.5, 1.0, 1.0, 3),
        (0.5, 2.0, 0.9, 0.9, 4),
        (0.5, 1.2, 1.1, 1.1, 5),
    ]
    assert [plan[4] for plan in open_front(plans, 1.0, 1.0, 1.0)] == [3, 1, 4]
    # A held row costs more where it is evaluated more often: both ends of the range of l count.
    pair: list[Open] = [(0.0, 0.0, 2.0, 0.0, 1), (0.0, 0.0, 0.5, 1.0, 2)]
    assert [plan[4] for plan in open_front(pair, 1.0, 1.0, 1.0)] == [2]
    assert sorted(plan[4] for plan in open_front(pair, 1.0, 4.0, 1.0)) == [1, 2]
    done = [(0.5, 3.0, 1), (0.9, 2.0, 2), (1.5, 1.0, 3), (1.4, 2.5, 4)]
    assert [plan[2] for plan in done_front(done, 1.0)] == [3, 2]
    assert [plan[2] for plan in done_front(done, float("inf"))] == [3]


def test_pieces_are_small_and_cover_the_plan() -> None:
    plan = paper_tree(8)
    roots = piece_roots(plan, 15)
    assert len(roots) == 1
    for most in (1, 2, 3, 7, 24):
        cut = piece_roots(plan, most)
        size: dict[str, int] = {}
        for i, operator in enumerate(plan.operators):
            below = sum(size[name] for name in operator.inputs if name in size)
            assert below + 1 <= most
            size[operator.name] = 0 if i in cut else below + 1
    assert piece_roots(plan, 24) == frozenset()


def test_decomposition_is_valid_and_never_better_than_the_optimum() -> None:
    rng = Random(12)
    worse = 0
    for _ in range(100):
        plan = random_plan(rng, 8)
        whole = search(plan, Options())
        for most in (1, 3, 5):
            pieces = search(plan, Options(), piece_roots(plan, most))
            split = Recount(plan, sizes_of(plan)).split(engines_of(pieces.best[2], len(plan.operators)))
            assert pieces.best[1] == pytest.approx(split.utilisation)
            assert bottleneck(pieces.best[0], pieces.best[1], plan.cores) == pytest.approx(split.bottleneck)
            ours = (bottleneck(whole.best[0], whole.best[1], plan.cores) > 1, *_primary(whole.best, plan))
            theirs = (split.bottleneck > 1, *_primary(pieces.best, plan))
            assert ours[0] <= theirs[0]
            assert ours[0] < theirs[0] or ours[1] <= theirs[1] * (1 + 1e-9)
            worse += ours[0] < theirs[0] or ours[1] < theirs[1] * (1 - 1e-9)
    assert worse


def _primary(best: tuple[float, float, int], plan: Plan) -> tuple[float]:
    c_b = bottleneck(best[0], best[1], plan.cores)
    return (best[1] if c_b <= 1 else c_b,)


def test_a_search_without_any_engine_is_our_bug() -> None:
    costs = operator_costs(random_plan(Random(1), 1))
    with pytest.raises(InternalError, match="no engine"):
        _Search(costs, [()], "pareto", None, 1.0, frozenset()).run()
