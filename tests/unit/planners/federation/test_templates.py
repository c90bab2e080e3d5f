"""The queries of the paper as problems."""

from __future__ import annotations

import pytest

from headrace.plan.federated import Engine
from headrace.planners.federation.phase_one import best_logical_plan
from headrace.planners.federation.phase_two import engines_of, search
from headrace.planners.federation.problem import Kind, Options
from headrace.planners.federation.templates import averages_joined, paper_tree, plug_queries


@pytest.mark.parametrize("ways", [2, 3, 5, 8])
def test_n_ways_have_3n_operators(ways: int) -> None:
    for plan in (paper_tree(ways), best_logical_plan(averages_joined(ways)).plan):
        kinds = [operator.kind for operator in plan.operators]
        assert kinds.count(Kind.SELECT) == kinds.count(Kind.AGGREGATE) == ways
        assert (kinds.count(Kind.JOIN), kinds.count(Kind.PROJECT)) == (ways - 1, 1)
        assert [window.range for window in plan.windows] == [60.0 * m for m in range(1, 2 * ways, 2)]


def test_with_a_selective_comparison_the_papers_pruning_examines_no_more_than_in_the_paper() -> None:
    """Where all averages stay, phase one makes balanced trees, which leave that pruning more plans than the
    paper's own trees do; where a comparison drops some of them, it joins one by one."""
    for ways, papers in ((2, 11), (5, 312), (8, 8411)):
        plan = best_logical_plan(averages_joined(ways, agreeing=0.7)).plan
        assert search(plan, Options(pruning="paper")).examined <= papers


def test_the_six_queries_select_on_spark_and_aggregate_in_duckdb() -> None:
    """As the paper's optimiser does at its lowest rates."""
    for name, query in plug_queries().items():
        plan = best_logical_plan(query).plan
        engines = engines_of(search(plan, Options()).best[2], len(plan.operators))
        for operator, engine in zip(plan.operators, engines, strict=True):
            reads_window = operator.inputs[0].startswith("last")
            if operator.kind is Kind.SELECT and reads_window:
                assert engine is Engine.SPARK, (name, operator.name)
            if operator.kind is Kind.AGGREGATE:
                assert engine is Engine.DUCKDB, (name, operator.name)
