"""`python -m benchmarks.fragment_engine`: the final level of a tree by itself, no Spark.

Fragments of 1 s, slides of 1 s, three aggregates a query, an hour of event time in batches of 60 s. CPU
seconds of this process: taking the fragments, all windows as Arrow batches, and the state to be stored. A
cell is one aggregate of one result row. Each case runs once unmeasured (imports, memory) and three times
measured; the table shows the median.
"""

from __future__ import annotations

import resource
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from headrace.plan.expr import AggregateCall, ColumnRef
from headrace.plan.types import Column, DataType
from headrace.runtime.windows import QuerySpec, TreeSpec, needs_of
from headrace.runtime.windows.lanes import Array
from headrace.runtime.windows.opening import ROWS
from headrace.runtime.windows.sketch import entries, sketches
from headrace.runtime.windows.spec import FRAGMENT, Partial, PartialKind
from headrace.runtime.windows.weaver import Weaver

SECOND = 1_000_000
LOAD = ColumnRef("load", DataType.DOUBLE)
USER = ColumnRef("user", DataType.BIGINT)
CALLS = (
    ("rows", AggregateCall("count", None)),
    ("mean", AggregateCall("avg", LOAD)),
    ("peak", AggregateCall("max", LOAD)),
)
SPREAD = (*CALLS[:2], ("spread", AggregateCall("stddev_samp", LOAD)))
DISTINCT = (*CALLS[:2], ("users", AggregateCall("approx_count_distinct", USER)))
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    queries: int
    range: int
    """Seconds; query k has k seconds more."""
    keys: int = 200
    seconds: int = 3600
    batch: int = 60
    density: float = 1.0
    """The share of (fragment, key) that has rows."""
    calls: tuple[tuple[str, AggregateCall], ...] = CALLS
    late: float = 0.0
    """The share of partials that come 150 s behind."""
    delay: int = 0
    """Seconds that the watermark is behind: so much stays open."""
    groups: int = 1
    """Every second query groups by a coarser key with so many keys in one; 1: none does."""


CASES = (
    Case("1 query, 300 s", 1, 300),
    Case("10 queries, 300 s", 10, 300),
    Case("50 queries, 300 s", 50, 300),
    Case("200 queries, 300 s", 200, 300),
    Case("50 queries, 300 s, 2 h", 50, 300, seconds=7200),
    Case("50 queries, 3000 s, 2 h", 50, 3000, seconds=7200),
    Case("1 query, 300 s, batches of 1 s", 1, 300, seconds=600, batch=1),
    Case("50 queries, 300 s, batches of 1 s", 50, 300, seconds=600, batch=1),
    Case("200 queries, 300 s, batches of 1 s", 200, 300, seconds=600, batch=1),
    Case("50 queries, batches of 1 s, 60 s open", 50, 300, seconds=600, batch=1, delay=60),
    Case("50 queries, 300 s, 1 % late", 50, 300, late=0.01),
    Case("50 queries, 300 s, half by 10 keys", 50, 300, groups=20),
    Case("5 queries, 300 s, distinct, 10 min", 5, 300, seconds=600, calls=DISTINCT),
    Case("50 queries, 300 s, stddev", 50, 300, calls=SPREAD),
    Case("10 queries, 20,000 keys, 1 % active", 10, 300, keys=20_000, seconds=600, density=0.01),
    Case("1 query, 24 h, 20,000 keys, 0.1 %", 1, 86_400, keys=20_000, seconds=1200, density=0.001),
)


@dataclass(frozen=True, slots=True)
class Figures:
    cpu: float
    rows: int
    stored: int
    """Bytes put, over the run."""
    fragments: int


def tree(case: Case) -> TreeSpec:
    needs = needs_of([case.calls] * case.queries)
    queries = tuple(
        QuerySpec(
            f"q{k}",
            (case.range + k) * SECOND,
            SECOND,
            outputs,
            keys=(1,) if case.groups > 1 and k % 2 else None,
        )
        for k, outputs in enumerate(needs.outputs)
    )
    keys = (Column("plug", DataType.BIGINT), Column("house", DataType.BIGINT))
    return TreeSpec(keys if case.groups > 1 else keys[:1], needs.partials, queries)


def batches(case: Case, spec: TreeSpec) -> Iterator[tuple[pa.Table, int]]:
    chance = np.random.default_rng(0)
    for low in range(0, case.seconds, case.batch):
        starts = np.repeat(np.arange(low, low + case.batch) * SECOND, case.keys)
        keys = np.tile(np.arange(case.keys), case.batch)
        chosen = chance.random(len(starts)) < case.density
        starts, keys = starts[chosen], keys[chosen]
        starts[chance.random(len(starts)) < case.late] -= 150 * SECOND
        columns: dict[str, pa.Array] = {FRAGMENT: pa.array(starts), "plug": pa.array(keys)}
        if case.groups > 1:
            columns["house"] = pa.array(keys // case.groups)
        columns[ROWS] = pa.array(np.ones(len(starts), np.int64))
        columns |= {p.name: pa.array(_values(p, len(starts), chance)) for p in spec.partials}
        yield pa.table(columns), (low + case.batch - case.delay) * SECOND


def _values(partial: Partial, size: int, chance: np.random.Generator) -> Array | pa.Array:
    if partial.kind is PartialKind.SKETCH:
        users = entries(pa.array(chance.integers(0, 10_000, 3 * size)))
        ends = pa.array(np.arange(0, 3 * size + 1, 3), pa.int32())
        return sketches(pa.ListArray.from_arrays(ends, users))
    return chance.integers(1, 50, size) if partial.type is DataType.BIGINT else chance.random(size) * 100


def run(case: Case) -> Figures:
    spec = tree(case)
    weaver, given = Weaver(spec), list(batches(case, spec))
    rows = stored = 0
    started = time.process_time()
    for table, watermark in given:
        weaver.take(table)
        rows += sum(batch.num_rows for _, batch in weaver.advance(watermark).results)
        stored += sum(map(len, weaver.changes()[0].values()))
    cpu = time.process_time() - started
    return Figures(cpu, rows, stored, sum(table.num_rows for table, _ in given))


def measure(case: Case) -> Figures:
    run(case)
    measured = [run(case) for _ in range(ROUNDS)]
    cpu = statistics.median(figures.cpu for figures in measured)
    return Figures(cpu, measured[0].rows, measured[0].stored, measured[0].fragments)


def main(arguments: list[str]) -> int:
    table = Table("case", "CPU s", "result rows", "M rows/s", "M cells/s", "state B written / row")
    wanted = [c for c in CASES if not arguments or any(a in c.name for a in arguments)]
    for case in wanted:
        found = measure(case)
        rate = found.rows / found.cpu / 1e6
        per_row = found.stored / found.fragments
        numbers = (f"{found.cpu:.2f}", f"{found.rows:,}", f"{rate:.1f}", f"{3 * rate:.0f}", f"{per_row:.1f}")
        table.add_row(case.name, *numbers)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    Console(width=110).print(table, f"peak memory of the process, inputs included: {peak:.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
