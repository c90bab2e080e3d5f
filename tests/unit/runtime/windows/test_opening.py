"""Level 1 against a plain evaluation of the rows."""

from __future__ import annotations

import math
import random
from collections import defaultdict

import pyarrow as pa
import pytest

from headrace.errors import EngineError
from headrace.plan.expr import AggregateCall, ColumnRef
from headrace.plan.types import Column, DataType
from headrace.runtime.windows.opening import (
    ROWS,
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


@pytest.mark.parametrize("seed", range(6))
def test_partials_of_a_batch(seed: int) -> None:
    rng = random.Random(seed)
    rows: list[Row] = []
    for t in (rng.randint(0, 60) for _ in range(200)):
        x = None if rng.random() < 0.2 else rng.gauss(1000, 1)
        rows.append((t, rng.choice(["a", "b", None]), x))
    arguments, columns = arguments_of(call for _, call in CALLS)
    (column,) = columns
    made = partial_table(batch_of(rows, column), arguments, ["k"])
    assert_partials(made.to_pylist(), rows, spec())


def test_nan_is_the_largest_number() -> None:
    """Arrow's own minimum and maximum pass it over, even where there is nothing else."""
    arguments, columns = arguments_of(call for _, call in CALLS)
    (column,) = columns
    given: list[Row] = [
        (0, "a", math.nan),
        (0, "a", -1.0),
        (0, "b", math.nan),
        (0, "c", None),
        (0, "c", -0.5),
    ]
    made = partial_table(batch_of(given, column), arguments, ["k"])
    low, high = (
        next(o.partials[0] for o in spec().queries[0].outputs if o.name == n) for n in ("min", "max")
    )
    assert repr(made[spec().partials[low].name].to_pylist()) == "[-1.0, nan, -0.5]"
    assert repr(made[spec().partials[high].name].to_pylist()) == "[nan, nan, -0.5]"


def test_a_sum_that_does_not_fit_is_refused() -> None:
    arguments, columns = arguments_of([AggregateCall("sum", ColumnRef("l", DataType.BIGINT))])
    (column,) = columns

    def sums(values: list[int | None]) -> list[int | None]:
        keys = [str(k // 2) for k in range(len(values))]
        cells = {FRAGMENT: [0] * len(values), "k": keys, column: pa.array(values, pa.int64())}
        made = partial_table(pa.record_batch(cells), arguments, ["k"])
        return made[arguments[0].partial.name].to_pylist()  # type: ignore[no-any-return]

    assert sums([2**62, 2**61, -(2**62), 2**62, 2**62]) == [2**62 + 2**61, 0, 2**62]
    assert sums([None, None]) == [None]
    with pytest.raises(EngineError, match="does not fit"):
        sums([1, 1, 2**62, 2**62])
    with pytest.raises(EngineError, match="does not fit"):
        sums([-(2**63), -1])


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

        assert row[ROWS] == len(every)
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
