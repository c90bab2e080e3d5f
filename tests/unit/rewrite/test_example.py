"""Queries of the example project: load, bind, and answer the same before and after the rewrite. Every fourth
here, the others in deep/."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.catalog.load import load_project
from headrace.catalog.model import GeneratorSource, Query
from headrace.plan.logical import LogicalPlan
from headrace.plan.text import format_plan
from headrace.rewrite.driver import rewrite
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.generate import batches
from headrace.sql.bind import bind_query

PROJECT = load_project(Path(__file__).parents[3] / "examples" / "smart-plugs")
QUERIES = list(PROJECT.queries.values())
Row = tuple[object, ...]


@cache
def tables() -> Mapping[str, pa.Table]:
    """The first 100 seconds of the streams, and the static tables."""
    found = {}
    for name, stream in PROJECT.streams.items():
        assert isinstance(stream.source, GeneratorSource)
        short = stream.source.model_copy(update={"rows": int(100 * stream.rate)})
        found[name] = pa.concat_tables(batches(stream.model_copy(update={"source": short})))
    for name, table in PROJECT.tables.items():
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows or ()]
        found[name] = pa.Table.from_pylist(rows)
    return found


def answer(plan: LogicalPlan) -> list[Row]:
    found = evaluate(plan, tables())
    return sorted((tuple(row.values()) for row in found.to_pylist()), key=_without_fractions)


def _without_fractions(row: Row) -> tuple[str, ...]:
    return tuple("" if isinstance(v, float) else str(v) for v in row) + tuple(
        f"{v:.6g}" for v in row if isinstance(v, float)
    )


@pytest.mark.parametrize("query", QUERIES[::4], ids=lambda query: query.name)
def test_the_rewrite_changes_no_answer(query: Query) -> None:
    compare_answers(query)


def compare_answers(query: Query) -> None:
    bound = bind_query(query, PROJECT.streams, PROJECT.tables)
    better = rewrite(bound)
    assert better.schema == bound.schema
    before, after = answer(bound), answer(better)
    assert len(before) > 0
    assert len(before) == len(after)
    for mine, theirs in zip(before, after, strict=True):
        for left, right in zip(mine, theirs, strict=True):
            # Sums of fractions may be added up in another order.
            assert left == (pytest.approx(right, rel=1e-9) if isinstance(right, float) else right)


def test_it_is_as_large_as_it_says() -> None:
    assert len(PROJECT.queries) >= 40
    readme = (PROJECT.root / "README.md").read_text()
    assert f"{len(PROJECT.queries)} things" in readme
    plans = (bind_query(q, PROJECT.streams, PROJECT.tables) for q in PROJECT.queries.values())
    texts = {format_plan(rewrite(plan)) for plan in plans}
    assert len(texts) == len(PROJECT.queries), "two queries ask the same"
