"""examples/airline: every query that is placed gives the answer it gives whole, whatever the planner."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.catalog.load import load_project
from headrace.catalog.model import GeneratorSource
from headrace.plan.placed import PlacedPlan
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.generate import batches
from headrace.service.binding import plan_query
from headrace.service.placing import place_joins

PROJECT = load_project(Path(__file__).parents[3] / "examples" / "airline")
WHOLE = PlacedPlan(tuple(plan_query(PROJECT, query) for query in PROJECT.queries.values()))


@cache
def tables() -> dict[str, pa.Table]:
    """Fifty seconds, with fewer flights than the example has so that rows meet."""
    found = {}
    for name, stream in PROJECT.streams.items():
        assert isinstance(stream.source, GeneratorSource)
        source = stream.source
        few = {
            column: drawn.model_copy(update={"high": 100.0})
            if column in ("num", "flight", "dest", "city")
            else drawn
            for column, drawn in source.columns.items()
        }
        short = source.model_copy(update={"rows": int(50 * stream.rate), "columns": few})
        found[name] = pa.concat_tables(batches(stream.model_copy(update={"source": short})))
    return found


@cache
def answer(query: str) -> pa.Table:
    return evaluate(plan_query(PROJECT, PROJECT.queries[query]).plan, tables())


@pytest.mark.parametrize("planner", ["exact", "joint", "bottom-up", "relaxation"])
def test_answers_are_those_of_the_whole_queries(planner: str) -> None:
    found = place_joins(PROJECT, WHOLE, planner)
    assert found is not None
    assert len(found.network.queries) == 9
    assert sum(answer(query.query).num_rows > 0 for query in found.network.queries) > 5
    for query in found.network.queries:
        assert not multiset_difference(answer(query.query), evaluate(query.plan, tables())), query.query


def test_what_the_example_shows() -> None:
    found = place_joins(PROJECT, WHOLE)
    assert found is not None
    assert found.cost < 0.9 * found.alone < 0.6 * found.at_sinks
    assert any(len(join.queries) > 3 for join in found.network.joins), "flights and check-ins serve many"
    assert [whole.name for whole in found.whole] == ["sales_5m"]
