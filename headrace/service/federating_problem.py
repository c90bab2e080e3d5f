"""A query as a problem for the federation planner: rates, sizes, selectivities, unit costs of both engines.

Estimates are those of the sharing planner (estimates.py): the project file's rates and numbers of values, one
row in three for a comparison, one match in a static table. A join of windows matches rows whose keys are
equal, as if all combinations of keys were equally frequent. Observed rates take the place of declared ones.

What is read twice travels once: where a relation stands a second time in the plan, its rows have no width.
So does a stream below equal filters; they are one to the run time, which does them on Spark if one of them
is there. Below other filters it is charged to each, since only some of them may be on DuckDB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod

from headrace.catalog.model import Project
from headrace.cost import federation as cost
from headrace.cost.federation import ROW_BYTES, FederationCosts, Input
from headrace.cost.windows import seen
from headrace.errors import InternalError
from headrace.plan import logical as lp
from headrace.plan.expr import Expr
from headrace.plan.federated import Engine, operators
from headrace.plan.federated_parts import widened
from headrace.plan.functions import MERGEABLE
from headrace.plan.shared import MICROS
from headrace.planners.federation.problem import (
    InDuckDB,
    Kind,
    Operator,
    Plan,
    Prices,
    Stream,
    Table,
    Window,
)
from headrace.service.estimates import GUESS, batches_per_second, distinct_of, expected_rate, share, values
from headrace.service.federating_widths import Path, widths

_LEAST = 1e-6
"""Of what was let through, or came: where nothing was seen, something may still come."""
NO_WINDOW = "it has no window, so DuckDB would have nothing to keep"
TWO_TIMES = "it opens windows on two event times of the same joined rows"
NO_CHOICE = "it has no operator that could run on DuckDB"
Rates = Mapping[str, float]
"""Observed rows per second, by stream; those that are not there are as the project says."""
Seen = Mapping[lp.LogicalPlan, float]
"""What was observed of relations, in place of estimates: rows per second of rows of streams, rows in a window
of what has windows."""


def not_federated(plan: lp.LogicalPlan) -> str:
    """Why a query has no choice of engine; empty where it has."""
    if not operators(plan):
        return NO_CHOICE
    if plan.shape is not lp.Shape.WINDOWED:
        return NO_WINDOW
    times: dict[lp.LogicalPlan, set[str]] = {}
    # As the run time sees it: rows that are read with other columns are the same rows.
    for node in lp.nodes(*widened((plan,))):
        if isinstance(node, lp.Window):
            times.setdefault(node.input, set()).add(node.time)
    return TWO_TIMES if any(len(each) > 1 for each in times.values()) else ""


def problem_of(
    project: Project,
    site: str,
    plan: lp.LogicalPlan,
    costs: FederationCosts,
    rates: Rates | None = None,
    engines: tuple[Engine | None, ...] | None = None,
    seen: Seen | None = None,
) -> Plan:
    """The operators of the problem are those of `operators(plan)`, in that order; they are called as in the
    text of the plan. `engines` fixes some."""
    return problem_and_values(project, site, plan, costs, rates, engines, seen)[0]


def problem_and_values(
    project: Project,
    site: str,
    plan: lp.LogicalPlan,
    costs: FederationCosts,
    rates: Rates | None = None,
    engines: tuple[Engine | None, ...] | None = None,
    seen: Seen | None = None,
) -> tuple[Plan, Mapping[str, float]]:
    """The same, and how many different values the columns of the answer have."""
    building = _Building(
        project, costs, rates or {}, batches_per_second(project), widths(plan), node_ids(plan), seen or {}
    )
    distinct = building.visit(plan, None, ()).distinct
    fixed = engines or (None,) * len(building.made)
    made = tuple(replace(one, engine=engine) for one, engine in zip(building.made, fixed, strict=True))
    slides = max(MICROS / spec.slide for spec in building.specs)
    statements = min(1.0, building.batches / slides)
    found = Plan(
        streams=tuple(building.streams.values()),
        windows=tuple(building.windows),
        operators=made,
        tables=tuple(building.tables),
        # One statement gives all windows that end in a micro-batch.
        prices=Prices(costs.transfer_in, costs.transfer_out, costs.statement * statements),
        cores=project.sites[site].cpu,
    )
    return found, distinct


def node_ids(plan: lp.LogicalPlan) -> dict[lp.LogicalPlan, str]:
    """The names of nodes in the text of the plan (plan/text.py)."""
    distinct = dict.fromkeys(lp.nodes(plan))
    return {node: f"n{number}" for number, node in enumerate(distinct)}


@dataclass(frozen=True, slots=True)
class _Relation:
    """What a sub-plan gives, as the planner sees it."""

    name: str
    given: Input
    distinct: Mapping[str, float]
    """Different values of its columns."""

    def values(self, expr: Expr) -> float:
        return values(expr, lambda name: self.distinct.get(name, GUESS))

    def share(self, condition: Expr) -> float:
        return share([condition], lambda name: self.distinct.get(name, GUESS))


@dataclass(slots=True)
class _Building:
    project: Project
    costs: FederationCosts
    rates: Rates
    batches: float
    widths: Mapping[Path, float]
    ids: Mapping[lp.LogicalPlan, str]
    seen: Seen
    streams: dict[str, Stream] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    made: list[Operator] = field(default_factory=list)
    specs: list[lp.WindowSpec] = field(default_factory=list)
    travelling: set[object] = field(default_factory=set)
    """Relations whose rows have a width already."""

    def visit(self, node: lp.LogicalPlan, spec: lp.WindowSpec | None, path: Path) -> _Relation:
        """`spec` is of the window that stands above the node."""
        match node:
            case lp.StreamScan() | lp.IntervalJoin():
                return self._leaf(node, spec, path)
            case lp.Window():
                return self.visit(node.input, node.spec, (*path, 0))
            case lp.Project():
                below = self.visit(node.input, spec, (*path, 0))
                self._narrow(below, node.input, path)
                return replace(below, distinct={name: below.values(expr) for name, expr in node.items})
            case lp.Filter():
                return self._filter(node, self.visit(node.input, spec, (*path, 0)), path)
            case lp.TableJoin():
                return self._table_join(node, self.visit(node.input, spec, (*path, 0)), path)
            case lp.Aggregate():
                return self._aggregate(node, self.visit(node.input, spec, (*path, 0)), path)
            case lp.WindowJoin():
                left, right = (self.visit(child, spec, (*path, i)) for i, child in enumerate(node.inputs))
                return self._join(node, left, right, path)
        raise InternalError(f"federation: no such operator of a query: {type(node).__name__}")

    # -- leaves -------------------------------------------------------------------------------------

    def _leaf(self, node: lp.LogicalPlan, spec: lp.WindowSpec | None, path: Path) -> _Relation:
        if spec is None:
            raise InternalError("federation: rows that are in no window")
        names = lp.streams_of(node)
        # A join of streams is taken to give as many rows as its slowest side, as in predict.py.
        found = self.seen.get(node)
        rate = min(self._rate(name) for name in names) if found is None else max(found, _LEAST)
        name = " x ".join(names)
        self.streams[name] = Stream(name, rate)
        self.specs.append(spec)
        seconds, slide = spec.range / MICROS, spec.slide / MICROS
        known = distinct_of(self.project, names[0])
        window = Window(f"w{len(self.windows) + 1}", name, seconds, slide, width=self._width(node, path))
        self.windows.append(window)
        given = Input(rate, rate * seconds, 1 / slide, spec.range / spec.slide)
        return _Relation(window.name, given, {column: known(column) for column in node.schema.names})

    def _rate(self, stream: str) -> float:
        found = self.rates.get(stream)
        return expected_rate(self.project.streams[stream]) if found is None else max(found, _LEAST)

    def _width(self, node: lp.LogicalPlan, path: Path, *, once: bool = True) -> float:
        if once and node in self.travelling:
            return 0.0
        if once:
            self.travelling.add(node)
        return self.widths[path] + ROW_BYTES

    # -- operators ----------------------------------------------------------------------------------

    def _filter(self, node: lp.Filter, below: _Relation, path: Path) -> _Relation:
        unit = self._row_by_row(node, below, (*path, 0))
        passed = min(1.0, self._passed(node, below, below.share(node.predicate)))
        given = replace(below.given, rate=below.given.rate * passed, rows=below.given.rows * passed)
        one = Operator("", Kind.SELECT, (below.name,), selectivity=passed)
        return self._add(one, node, path, (unit,), given, below.distinct)

    def _passed(self, node: lp.LogicalPlan, below: _Relation, guess: float) -> float:
        """The share of rows that an operator lets through: as seen, or as guessed."""
        came = below.given.rate if node.shape is lp.Shape.STREAM else below.given.rows
        return max(self.seen[node] / came, _LEAST) if node in self.seen and came else guess

    def _row_by_row(self, node: lp.Filter | lp.TableJoin, below: _Relation, path: Path) -> cost.Unit:
        """What it costs; and a stream right below is charged to it: see the docstring of the module."""
        unit = cost.unit(cost.filter_work(below.given), below.given, self.costs)
        if node in self.travelling and node.shape is lp.Shape.STREAM:
            return replace(unit, spark=0.0)
        for number, window in enumerate(self.windows):
            if window.name == below.name and not window.width:
                self.windows[number] = replace(window, width=self._width(node.input, path, once=False))
        return unit

    def _table_join(self, node: lp.TableJoin, below: _Relation, path: Path) -> _Relation:
        work = self._row_by_row(node, below, (*path, 0))
        table = self._table(node)
        passed = self._passed(node, below, 1.0 if node.outer else below.share(node.residual))
        known = {name: _of_table(self.project, name) for name in node.table.schema.names}
        one = Operator(
            "", Kind.JOIN, (below.name, table.name), left=passed / table.rows, right=passed / table.rows
        )
        given = replace(below.given, rate=below.given.rate * passed, rows=below.given.rows * passed)
        return self._add(one, node, path, (work, cost.Unit(0.0, 0.0)), given, {**below.distinct, **known})

    def _table(self, node: lp.TableJoin) -> Table:
        sizes = [self.project.tables[name].rows for name in lp.tables_of(node.table)]
        rows = prod(len(found) if found else GUESS for found in sizes)
        self.tables.append(Table(f"t{len(self.tables) + 1}", float(rows), 0.0))
        return self.tables[-1]

    def _aggregate(self, node: lp.Aggregate, below: _Relation, path: Path) -> _Relation:
        groups = max(1.0, prod(below.values(key) for _, key in node.keys))
        found = max(1.0, seen(groups, below.given.rows)) if below.given.rows else 1.0
        if node in self.seen:
            found = groups = max(1.0, self.seen[node])
        mergeable = all(call.function in MERGEABLE for _, call in node.aggregates)
        work = cost.aggregate_work(below.given, groups, self.batches, mergeable=mergeable)
        slides = below.given.slides
        one = Operator("", Kind.AGGREGATE, (below.name,), groups=found)
        given = Input(slides * found, found, slides)
        known = {name: below.values(key) for name, key in node.keys}
        return self._add(one, node, path, (cost.unit(work, below.given, self.costs),), given, known)

    def _join(self, node: lp.WindowJoin, left: _Relation, right: _Relation, path: Path) -> _Relation:
        distinct = {**left.distinct, **right.distinct}
        both = _Relation("", left.given, distinct)
        keys = prod(max(left.values(mine), right.values(theirs)) for mine, theirs in node.on)
        passed = both.share(node.residual) / max(1.0, keys)
        pairs = left.given.rows * right.given.rows
        if node in self.seen and pairs:
            passed = self.seen[node] / pairs
        sides = [left.given, right.given]
        units = tuple(cost.unit(cost.join_work(one, self.batches), one, self.costs) for one in sides)
        rate = passed * (left.given.rate * right.given.rows + right.given.rate * left.given.rows)
        slides = max(one.slides for one in sides)
        rows = passed * pairs
        # Results of both sides come together, once a slide: Eq. 2 would count each pair twice.
        known = slides * rows if all(one.copies <= 1 for one in sides) else None
        given = Input(rate if known is None else known, rows, slides)
        one = Operator("", Kind.JOIN, (left.name, right.name), left=passed, right=passed, rate=known)
        return self._add(one, node, path, units, given, distinct)

    def _add(
        self,
        one: Operator,
        node: lp.LogicalPlan,
        path: Path,
        units: tuple[cost.Unit, ...],
        given: Input,
        distinct: Mapping[str, float],
    ) -> _Relation:
        name = self.ids[node]
        again = sum(other.name.split("/")[0] == name for other in self.made)
        name = f"{name}/{again + 1}" if again else name
        self.made.append(
            replace(
                one,
                name=name,
                width=self._width(node, path),
                spark=tuple(unit.spark for unit in units),
                duckdb=tuple(InDuckDB(0.0, unit.held) for unit in units),
            )
        )
        return _Relation(name, given, distinct)

    def _narrow(self, below: _Relation, node: lp.LogicalPlan, path: Path) -> None:
        """A projection goes with the operator below it: what leaves that is as wide as the projection."""
        for number, one in enumerate(self.made):
            if one.name == below.name and one.width:
                self.made[number] = replace(one, width=self.widths[path] + ROW_BYTES)


def _of_table(project: Project, column: str) -> float:
    """Different values of a column of a joined table, which is called `alias.column` or `column`."""
    short = column.rsplit(".", 1)[-1]
    for table in project.tables.values():
        if short in table.columns and table.rows is not None:
            place = list(table.columns).index(short)
            return float(max(1, len({row[place] for row in table.rows})))
    return float(GUESS)
