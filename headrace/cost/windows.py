"""What window queries cost on Spark: CPU, memory and state of a tree, and of a query on its own.

A tree reads each row once, makes fragments of the rows, and windows of the fragments. Its CPU is a sum of
counts, each times what one of them costs (`WindowCosts`); the counts follow from rates (`TreeLoad`). So the
costs can be measured by running trees with known counts and solving for them (cost/fit.py).

Groups are taken to be equally busy: `seen` says how many of them a number of rows meets. A stream with a
few busy groups and many idle ones has fewer fragment rows than predicted here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from headrace.errors import InternalError

_MICROS = 1_000_000
KEY_VALUES = 2
"""Values of a result row besides its outputs: its window, and about one key."""


@dataclass(frozen=True, slots=True)
class WindowCosts:
    """CPU seconds and bytes of one unit of work each, on one site."""

    engine: float
    """Starting Spark, once."""
    job: float
    """Starting a streaming query, once."""
    batch: float
    """A micro-batch of a tree, whatever is in it."""
    query_batch: float
    """Each member, in each micro-batch."""
    row: float
    """Each row read, carried to Arrow and aggregated."""
    row_argument: float
    """Each row and argument column."""
    fragment: float
    """Each fragment row, which is one fragment and group, that reaches a bucket."""
    fragment_slide: float
    """Each fragment row and distinct slide (and set of keys): roll-up, suffix and prefix."""
    cell: float
    """Each result row: one window, group and query."""
    cell_output: float
    """Each result row and output column."""
    plain_job: float
    """Starting a query that runs as Spark's own window, once."""
    plain_batch: float
    """A micro-batch of a query that runs as Spark's own window."""
    plain_row: float
    """Each row that such a query reads."""
    expanded_row: float
    """Each row and window it falls in, which is how Spark's own window works."""
    plain_state: float
    """Each window and group that a micro-batch of such a query touches in the state store."""
    fragment_state: float
    """Bytes on disk of a kept fragment row."""
    fragment_memory: float
    """Bytes in memory of a kept fragment row."""
    result_memory: float
    """Bytes of one value of the results of a micro-batch, with all copies on their way to the sink."""
    worker_memory: float
    """Bytes of a Python worker that holds nothing."""
    engine_memory: float
    """Bytes of Spark itself, once a site."""

    def __post_init__(self) -> None:
        for name, value in self.to_dict().items():
            if not (math.isfinite(value) and value >= 0):
                raise InternalError(f"WindowCosts: {name} is {value}")

    def to_dict(self) -> dict[str, float]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, float]) -> WindowCosts:
        """Raises InternalError for another set of names: figures of another version mean other things."""
        names = {field.name for field in fields(cls)}
        if set(data) != names:
            raise InternalError(f"WindowCosts: names differ in {', '.join(sorted(names ^ set(data)))}")
        return cls(**data)


DEFAULTS = WindowCosts(
    engine=39.0,
    job=3.7,
    batch=1.2,
    query_batch=6.4e-3,
    row=6.9e-7,
    row_argument=2.7e-7,
    fragment=1.2e-6,
    fragment_slide=7.5e-7,
    cell=2.8e-7,
    cell_output=2e-7,
    plain_job=2.9,
    plain_batch=0.47,
    plain_row=0.0,
    expanded_row=3.5e-7,
    plain_state=1.9e-5,
    fragment_state=38.0,
    fragment_memory=130.0,
    result_memory=95.0,
    worker_memory=3e8,
    engine_memory=1.2e9,
)
"""For a site that was never calibrated: what a calibration found on the machine this was written on
(2026-11-16, 2 cores AMD EPYC, Spark 4.3 in process, others busy on it). Elsewhere an order of magnitude, no
more."""


@dataclass(frozen=True, slots=True)
class QueryLoad:
    """One window query. Times are microseconds."""

    range: int
    slide: int
    groups: float
    """Distinct values of its keys; 1 where it has none."""
    outputs: int
    selectivity: float = 1.0
    """The share of the tree's rows that it wants."""

    def __post_init__(self) -> None:
        if min(self.range, self.slide, self.outputs) <= 0 or self.groups < 1:
            raise InternalError(f"QueryLoad: {self}")

    @property
    def windows_per_second(self) -> float:
        return _MICROS / self.slide

    @property
    def range_seconds(self) -> float:
        return self.range / _MICROS

    def cells_per_second(self, rate: float) -> float:
        """Result rows: a window gives one for each group that has a row in it."""
        inside = rate * self.selectivity * self.range_seconds
        return self.windows_per_second * seen(self.groups, inside)


@dataclass(frozen=True, slots=True)
class TreeLoad:
    """What a tree has to do, in rates per second of event time."""

    rate: float
    """Rows that reach the tree."""
    arguments: int
    """Columns that its aggregates are over."""
    edge_rate: float
    """Fragments."""
    groups: float
    """Distinct values of its keys, all of them together; 1 where it has none."""
    queries: tuple[QueryLoad, ...]
    batches_per_second: float = 1.0
    buckets: int = 2

    def __post_init__(self) -> None:
        numbers = (self.rate, self.edge_rate, self.batches_per_second, self.buckets)
        if not self.queries or min(numbers) <= 0 or self.groups < 1 or self.arguments < 0:
            raise InternalError(f"TreeLoad: {self}")

    @property
    def longest_range_seconds(self) -> float:
        return max(query.range_seconds for query in self.queries)

    @property
    def fragment_rows(self) -> float:
        """Fragment rows per second that are kept."""
        return self.edge_rate * seen(self.groups, self.rate / self.edge_rate)

    @property
    def pieces(self) -> float:
        """Fragment rows per second that reach a bucket: the end of a micro-batch cuts a fragment in two."""
        cuts = self.edge_rate + self.batches_per_second
        return cuts * seen(self.groups, self.rate / cuts)

    @property
    def kept(self) -> float:
        """Fragment rows that are kept at any time."""
        return self.fragment_rows * self.longest_range_seconds

    @property
    def rolled(self) -> float:
        """Fragment rows per second, each once for every slide and set of groups it is rolled up for."""
        kinds = {(query.slide, query.groups) for query in self.queries}
        return sum(self.edge_rate * seen(groups, self.rate / self.edge_rate) for _, groups in kinds)


@dataclass(frozen=True, slots=True)
class Predicted:
    cpu: float
    """Cores."""
    memory: int
    """Bytes, without what Spark itself takes."""
    state: int
    """Bytes on disk."""
    parts: dict[str, float]
    """Cores by what they are spent on."""


def seen(groups: float, rows: float) -> float:
    """How many of `groups` equally likely groups so many rows meet, on average."""
    return groups * -math.expm1(-rows / groups)


def work(load: TreeLoad) -> dict[str, float]:
    """How much of each kind of work a tree has in a second. The names are those of WindowCosts."""
    cells = [query.cells_per_second(load.rate) for query in load.queries]
    return {
        "batch": load.batches_per_second,
        "query_batch": load.batches_per_second * len(load.queries),
        "row": load.rate,
        "row_argument": load.rate * load.arguments,
        "fragment": load.pieces,
        "fragment_slide": load.rolled,
        "cell": sum(cells),
        "cell_output": sum(n * query.outputs for n, query in zip(cells, load.queries, strict=True)),
    }


def predict(load: TreeLoad, costs: WindowCosts = DEFAULTS) -> Predicted:
    """What a tree takes while it runs; starting it is apart (`costs.job`)."""
    prices = costs.to_dict()
    done = work(load)
    values = (done["cell_output"] + KEY_VALUES * done["cell"]) / load.batches_per_second
    memory = load.buckets * costs.worker_memory + load.kept * costs.fragment_memory
    memory += values * costs.result_memory
    parts = {name: amount * prices[name] for name, amount in done.items()}
    return Predicted(sum(parts.values()), int(memory), int(load.kept * costs.fragment_state), parts)


def plain_work(rate: float, query: QueryLoad, batches_per_second: float) -> dict[str, float]:
    """How much of each kind of work one query has in a second as Spark's own window."""
    wanted = rate * query.selectivity
    windows = query.range / query.slide
    # The windows that are open for the rows of one batch, which spans one batch's time.
    open_windows = windows + query.windows_per_second / batches_per_second
    touched = open_windows * seen(query.groups, wanted / batches_per_second * windows / open_windows)
    return {
        "plain_batch": batches_per_second,
        "plain_row": rate,
        "expanded_row": wanted * windows,
        "plain_state": touched * batches_per_second,
    }


def plain_spark(load: TreeLoad, costs: WindowCosts = DEFAULTS) -> float:
    """Cores that the queries of a tree take, each run on its own as Spark's own window."""
    prices = costs.to_dict()
    done = (plain_work(load.rate, query, load.batches_per_second) for query in load.queries)
    return sum(amount * prices[name] for work_ in done for name, amount in work_.items())
