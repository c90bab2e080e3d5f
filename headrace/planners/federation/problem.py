"""The federation problem as data: a query with rates, windows, selectivities and unit costs of two engines.

A `Plan` is a tree of operators over windows and tables; what is asked is an engine for each operator. A
`Query` says less: which relations are joined by which conditions, and what may stand where; phase one makes
a `Plan` of it.

Every cost is a time (seconds) and every rate is rows a second, so that u = 1 is one core kept busy.

Symbols of the paper: lambda = rows that unit-time source arrivals bring to an operator, W = rows in a
relation, l = how often a window slides, g = groups, f = selectivity, c = unit cost, u = cost of a part, C_b
= the largest u (bottleneck), C_u = their sum (utilisation), SPE-op = an operator on Spark, DB-op = a part
on DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Literal

from headrace.errors import InternalError
from headrace.plan.federated import Engine

JOIN_INPUTS = 2
FEASIBLE = 1 + 1e-9
"""The largest C_b that keeps up: 1, and what the rounding of sums may add to it."""


class Kind(StrEnum):
    SELECT = "select"
    PROJECT = "project"
    JOIN = "join"
    AGGREGATE = "aggregate"

    @property
    def inputs(self) -> int:
        return JOIN_INPUTS if self is Kind.JOIN else 1


class Unit(StrEnum):
    """What range and slide of a window count."""

    TIME = "time"
    """Seconds."""
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Stream:
    name: str
    rate: float
    """Rows a second (lambda_S)."""


@dataclass(frozen=True, slots=True)
class Window:
    name: str
    stream: str
    range: float
    slide: float
    unit: Unit = Unit.TIME
    width: float = 1.0
    """Of a row, in the unit that the prices of transfer are for."""


@dataclass(frozen=True, slots=True)
class Table:
    """A relation that does not change: nothing arrives, and it never slides."""

    name: str
    rows: float
    width: float = 1.0


@dataclass(frozen=True, slots=True)
class InDuckDB:
    """Seconds for one row of an input: once when it arrives, and at each evaluation while it is held."""

    arriving: float = 0.0
    held: float = 0.0


@dataclass(frozen=True, slots=True)
class Prices:
    """What it costs to have a part on DuckDB, whatever it does."""

    transfer_in: float = 5e-7
    """Seconds for one unit of width of one row, from Spark to DuckDB."""
    transfer_out: float = 5e-7
    """And back."""
    statement: float = 1e-3
    """Seconds for each evaluation."""


@dataclass(frozen=True, slots=True)
class UnitCost:
    """Seconds for one row of one input, on both engines."""

    spark: float
    duckdb: InDuckDB


DEFAULT_COSTS: Mapping[Kind, UnitCost] = {
    Kind.SELECT: UnitCost(1e-6, InDuckDB(0.0, 2e-9)),
    Kind.PROJECT: UnitCost(5e-7, InDuckDB(0.0, 1e-9)),
    Kind.JOIN: UnitCost(5e-6, InDuckDB(0.0, 2e-8)),
    Kind.AGGREGATE: UnitCost(2e-5, InDuckDB(0.0, 1e-8)),
}
"""Orders of magnitude for problems that give none. Calibrated ones are for the product."""


@dataclass(frozen=True, slots=True)
class Operator:
    """`spark` and `duckdb` have a cost for each input, `inputs` the names of windows, tables or operators;
    the operators of a `Query` are not attached yet and have no inputs."""

    name: str
    kind: Kind
    inputs: tuple[str, ...] = ()
    selectivity: float = 1.0
    """Of a selection (f)."""
    left: float = 1.0
    """Of a join: the share of the left relation that a row from the right finds (f_L)."""
    right: float = 1.0
    """And of the right relation that a row from the left finds (f_R)."""
    groups: float = 1.0
    """Of an aggregate: how many there are in a window (g)."""
    width: float | None = None
    """Of a result row; None: as wide as the input, for a join as both together."""
    spark: tuple[float, ...] = ()
    duckdb: tuple[InDuckDB, ...] = ()
    engine: Engine | None = None
    """Where it must run; None: the planner decides."""
    prices: Prices | None = None
    """In place of the plan's: what its inputs pay on the way in, its results on the way out, and an
    evaluation where it is the last of a part."""
    rate: float | None = None
    """Rows it gives a second where that was observed, in place of Eq. 1-3."""
    size: float | None = None
    """Rows in its relation where that was observed."""

    def __post_init__(self) -> None:
        count = self.kind.inputs
        if self.inputs and len(self.inputs) != count:
            raise InternalError(f"federation: {self.name} has {len(self.inputs)} inputs, not {count}")
        default = DEFAULT_COSTS[self.kind]
        object.__setattr__(self, "spark", self.spark or (default.spark,) * count)
        object.__setattr__(self, "duckdb", self.duckdb or (default.duckdb,) * count)
        if len(self.spark) != count or len(self.duckdb) != count:
            raise InternalError(f"federation: {self.name} has other inputs than unit costs")


@dataclass(frozen=True)
class Plan:
    """A logical plan: each operator after its inputs, the root last. It is a tree: what an operator gives
    is read once. A window may be read more than once."""

    streams: tuple[Stream, ...]
    windows: tuple[Window, ...]
    operators: tuple[Operator, ...]
    tables: tuple[Table, ...] = ()
    prices: Prices = field(default_factory=Prices)
    cores: float | None = None
    """Of the machine that all parts share; None: as many as there are parts, as in the paper."""

    def __post_init__(self) -> None:
        leaves = {window.name for window in self.windows} | {table.name for table in self.tables}
        streams = {stream.name for stream in self.streams}
        if any(window.stream not in streams for window in self.windows):
            raise InternalError("federation: a window is on no stream")
        taken, unread = set(leaves), set[str]()
        for operator in self.operators:
            if not operator.inputs or operator.name in taken:
                raise InternalError(f"federation: {operator.name} has no inputs, or a name that is taken")
            for name in operator.inputs:
                if name not in leaves and name not in unread:
                    raise InternalError(f"federation: {operator.name} cannot read {name}")
                unread.discard(name)
            taken.add(operator.name)
            unread.add(operator.name)
        if len(unread) != 1:
            raise InternalError(f"federation: no tree: {len(unread)} operators are read by none")

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Of each operator, by name."""
        return {operator.name: i for i, operator in enumerate(self.operators)}


@dataclass(frozen=True, slots=True)
class Relation:
    """What is joined: a window or a table, and the unary operators that stand on it in any case."""

    name: str
    reads: str
    chain: tuple[Operator, ...] = ()


@dataclass(frozen=True, slots=True)
class JoinEdge:
    """A condition between two relations, and the share of all pairs that meet it."""

    left: str
    right: str
    selectivity: float
    key: str | None = None
    """Conditions of one key say the same of several relations (a.k = b.k, b.k = c.k), also of a and c: what
    they leave together, `keys` has."""
    spark: float = DEFAULT_COSTS[Kind.JOIN].spark
    duckdb: InDuckDB = DEFAULT_COSTS[Kind.JOIN].duckdb
    engine: Engine | None = None


@dataclass(frozen=True, slots=True)
class Movable:
    """An aggregate that may stand at several places: on a join of all of `over`, before or after what that
    is joined with from `beyond`. Valid where such a join is on the grouping columns and finds at most one
    row for a group: then it only adds columns to a group, or takes groups away. `operator.groups` is the
    count without any of `beyond`."""

    operator: Operator
    over: frozenset[str]
    beyond: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Query:
    """What phase one orders. `top` stands on the whole join, in this order."""

    streams: tuple[Stream, ...]
    windows: tuple[Window, ...]
    relations: tuple[Relation, ...]
    joins: tuple[JoinEdge, ...] = ()
    top: tuple[Operator, ...] = ()
    movable: tuple[Movable, ...] = ()
    tables: tuple[Table, ...] = ()
    prices: Prices = field(default_factory=Prices)
    cores: float | None = None
    cross: UnitCost = DEFAULT_COSTS[Kind.JOIN]
    """Of a join without a condition."""
    together: bool = False
    """All relations are results of windows, which come together, once a slide. A join of such gives its
    rows once a slide, too: Eq. 2 would count a pair for each of its two rows."""
    each_join: float = 0.0
    """Seconds a second that a join takes on Spark whatever comes, for phase one alone: in a plan it is part
    of the unit costs."""


Pruning = Literal["pareto", "paper", "none"]
Allowed = Literal["both", "spark", "duckdb"]


@dataclass(frozen=True, slots=True)
class Options:
    feasibility: bool = True
    """False: only C_u counts, as in 8.4 of the paper."""
    engine: Allowed = "both"
    """Have every operator that is free on one engine."""
    pruning: Pruning = "pareto"
    """paper: one partial plan rooted on Spark survives. pareto: and none that another beats in every way.
    none: all 2^n."""
    decompose: int | None = None
    """At most so many operators in one piece; None: the plan is solved whole."""
    runners: int = 3
    """How many of the plans that lost are told."""

    @property
    def limit(self) -> float:
        """Of C_b, for a plan that is feasible."""
        return FEASIBLE if self.feasibility else float("inf")


@dataclass(frozen=True, slots=True)
class Sizes:
    """What an operator gives."""

    rate: float
    """lambda_out, rows a second."""
    rows: float
    """W of its relation."""
    slides: float
    """l: how often a second what is below it slides; of several windows, the fastest."""
    width: float


@dataclass(frozen=True, slots=True)
class Part:
    """An operator on Spark, or a tree of operators on DuckDB that is one statement."""

    engine: Engine
    operators: tuple[str, ...]
    u: float
    transfer_in: float = 0.0
    work: float = 0.0
    """What the operators do: on Spark all of u."""
    statement: float = 0.0
    transfer_out: float = 0.0


@dataclass(frozen=True, slots=True)
class Split:
    """An engine for each operator of a plan, in its order, and what that costs."""

    engines: tuple[Engine, ...]
    parts: tuple[Part, ...]
    """Inputs before the parts that read them."""
    bottleneck: float
    """C_b; where cores are shared, at least C_u / cores."""
    utilisation: float
    """C_u."""

    @property
    def feasible(self) -> bool:
        return self.bottleneck <= FEASIBLE


@dataclass(frozen=True, slots=True)
class Loser:
    """A plan that was not chosen."""

    split: Split
    why: str


@dataclass(frozen=True, slots=True)
class Federated:
    """The answer. Costs are counted again from the engines, by code that no search shares."""

    plan: Plan
    sizes: tuple[Sizes, ...]
    """Of each operator of the plan."""
    split: Split
    losers: tuple[Loser, ...]
    """The best first; all on Spark and all on DuckDB are among them where they are possible."""
    examined: int
    """Complete plans that were compared at the root."""
    examined_again: int
    """And in the second search, which breaks ties where no plan is feasible; 0 where one is."""
    kept: int
    """Partial plans that the search kept, over all operators."""
    joins_examined: int
    """Partial join orders that phase one compared; 0 where the plan was given."""
    phase_one_seconds: float
    phase_two_seconds: float
