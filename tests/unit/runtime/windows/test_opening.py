"""Level 1 against a plain evaluation of the rows: any batching, open fragments, late rows, NULLs."""

from __future__ import annotations

import math
import random
from collections import defaultdict

import pyarrow as pa
import pytest

from headrace.plan.expr import AggregateCall, ColumnRef
from headrace.plan.types import Column, DataType
from headrace.runtime.windows.opening import (
    ROWS,
    Opening,
    arguments_of,
    edge_classes,
    next_edges,
    partial_table,
)
from headrace.runtime.windows.partials import needs_of
from headrace.runtime.windows.spec import FRAGMENT, QuerySpec, TreeSpec

X = ColumnRef("x", DataType.DOUBLE)
CALLS = [(f, AggregateCall(f, X)) for f in ("count", "sum", "avg", "min", "max", "var_pop")]
CALLS.append(("all", AggregateCall("count", None)))
WINDOWS = [(10, 3), (7, 5), (4, 4)]
Row = tuple[int, str | None, float | None]


def spec() -> TreeSpec:
    needs = needs_of([CALLS] * len(WINDOWS))
    queries = tuple(
        QuerySpec(f"q{i}", r, s, out)
        for i, ((r, s), out) in enumerate(zip(WINDOWS, needs.outputs, strict=True))
    )
    return TreeSpec((Column("k", DataType.STRING),), needs.partials, queries)


def fragment(t: int) -> int:
    """The last instant at or before t that is an edge, one step at a time."""
    while not any(t % s in (0, r % s) for r, s in WINDOWS):
        t -= 1
    return t


def batch_of(rows: list[Row], column: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([fragment(t) for t, _, _ in rows], pa.int64()),
            pa.array([k for _, k, _ in rows], pa.string()),
            pa.array([x for _, _, x in rows], pa.float64()),
        ],
        names=[FRAGMENT, "k", column],
    )


def test_edges() -> None:
    queries = spec().queries
    starts = [t for t in range(-50, 200) if fragment(t) == t]
    found = next_edges(pa.array(starts[:-1]).to_numpy(), edge_classes(queries))
    assert found.tolist() == starts[1:]


@pytest.mark.parametrize("seed", range(12))
def test_closed_fragments_are_those_of_all_rows_at_once(seed: int) -> None:
    rng = random.Random(seed)
    rows: list[Row] = []
    for t in sorted(rng.randint(0, 120) for _ in range(300)):
        x = None if rng.random() < 0.2 else rng.gauss(1000, 1)
        rows.append((t + rng.randint(-3, 0), rng.choice(["a", "b", None]), x))
    arguments, columns = arguments_of(call for _, call in CALLS)
    opening, tree = Opening(spec()), spec()
    watermark, late = -(10**6), 0
    seen: list[Row] = []
    closed: list[dict[str, object]] = []
    for start in range(0, len(rows), 40):
        part = rows[start : start + 40]
        (column,) = columns
        late += opening.take(partial_table(batch_of(part, column), arguments, ["k"]), watermark)
        edges = edge_classes(tree.queries)
        ends = next_edges(pa.array([fragment(t) for t, _, _ in part]).to_numpy(), edges)
        seen += [row for row, end in zip(part, ends.tolist(), strict=True) if end > watermark]
        watermark = max(watermark, max(t for t, _, _ in part) - 2)
        held = opening.held()
        opening = Opening(tree, held)
        done = opening.closed(watermark)
        closed += [] if done is None else done.to_pylist()
    done = opening.closed(10**6)
    closed += [] if done is None else done.to_pylist()
    assert late == len(rows) - len(seen)
    assert_partials(closed, seen, tree)


def assert_partials(closed: list[dict[str, object]], rows: list[Row], tree: TreeSpec) -> None:
    groups: dict[tuple[int, str | None], list[float | None]] = defaultdict(list)
    for t, k, x in rows:
        groups[fragment(t), k].append(x)
    assert len(closed) == len(groups)
    outputs = {output.name: output.partials for output in tree.queries[0].outputs}
    for row in closed:
        every = groups[row[FRAGMENT], row["k"]]  # type: ignore[index]
        xs = [x for x in every if x is not None]

        def value(name: str, position: int = 0) -> object:
            return row[tree.partials[outputs[name][position]].name]  # noqa: B023

        assert ROWS not in row
        assert (value("all"), value("count")) == (len(every), len(xs))
        assert value("min") == min(xs, default=None) and value("max") == max(xs, default=None)
        if not xs:
            assert value("sum") is None
            continue
        assert value("sum") == pytest.approx(math.fsum(xs), rel=1e-12)
        mean = math.fsum(xs) / len(xs)
        assert value("var_pop", 1) == pytest.approx(mean, rel=1e-12)
        m2 = math.fsum((x - mean) ** 2 for x in xs)
        assert value("var_pop", 2) == pytest.approx(m2, rel=1e-8, abs=1e-8)
