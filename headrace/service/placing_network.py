"""The answer of a placement planner as plans: every join over what its two channels bring, every query over
what its last join gives.

A join keeps of each stream the rows and columns that any of its readers wants; who reads it cuts out its own
part where the join runs, so that no more travels than is wanted. Conditions are checked where the streams
they are about first meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headrace.catalog.model import Project as Catalog
from headrace.ids import fingerprint
from headrace.plan.bounds import TimeBound
from headrace.plan.check import check_plan
from headrace.plan.expr import TRUE, Call, ColumnRef, Expr, conjunction, transform
from headrace.plan.logical import Filter, IntervalJoin, LogicalPlan, Project, StreamScan
from headrace.plan.placed_network import Channel, PlacedJoin, PlacedNetwork, PlacedQuery, PlacedStream
from headrace.plan.text import format_expr, format_plan
from headrace.plan.types import Schema
from headrace.planners.placement.rates import Held, Rows, wanted
from headrace.service.placing_flows import Edge, Flows, Paths, Route
from headrace.service.placing_part import as_pair, name_of, replaced
from headrace.service.placing_problem import Placeable, scan_of


def placed_network(
    catalog: Catalog, found: Placeable, flows: Flows, route: Route | None = None
) -> PlacedNetwork:
    """The deployment as plans. Without a `route` everything goes by the cheapest way."""
    paths = Paths(found.problem.network)
    return _Builder(
        catalog, found, flows, route or (lambda edge: paths.between(edge.source, edge.target))
    ).network()


@dataclass(slots=True)
class _Builder:
    catalog: Catalog
    found: Placeable
    flows: Flows
    route: Route
    joins: dict[int, PlacedJoin] = field(default_factory=dict)
    channels: list[Channel] = field(default_factory=list)
    streams: dict[str, PlacedStream] = field(default_factory=dict)
    sites: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.sites = tuple(str(site) for site in self.found.problem.network.sites)

    def network(self) -> PlacedNetwork:
        for number in self.flows.operators:
            self._join(number)
        queries = tuple(self._query(name) for name in self.found.named)
        return PlacedNetwork(
            tuple(self.streams.values()), tuple(self.joins.values()), queries, tuple(self.channels)
        )

    def _join(self, number: int) -> None:
        one = self.flows.operators[number]
        brought = [self._brought(edge, one.readers, one.holding) for edge in one.inputs]
        plan = self._joined(brought[0], brought[1], one.inputs, one.readers[0])
        name = self._id(plan, self.sites[one.site])
        inputs = [self._channel(edge, name, rows) for edge, rows in zip(one.inputs, brought, strict=True)]
        self.joins[number] = PlacedJoin(
            name,
            self.sites[one.site],
            (inputs[0], inputs[1]),
            tuple(sorted(one.streams)),
            one.rate * self.found.scale,
            one.readers,
            plan,
        )

    def _query(self, name: str) -> PlacedQuery:
        edge, named = self.flows.results[name], self.found.named[name]
        query = next(query for query in self.found.problem.queries if query.id == name)
        brought = self._brought(edge, (name,), wanted(self.found.problem, query))
        items = tuple((item, named.renamed(expr)) for item, expr in named.part.items)
        whole = replaced(named.part.plan, named.part.node, Project(brought, items))
        check_plan(whole, schema=named.part.plan.schema, blame="placement")
        return PlacedQuery(name, named.site, self._channel(edge, name, brought), whole)

    def _id(self, plan: LogicalPlan, site: str) -> str:
        """The same for the same join at the same site, also in the next plan."""
        first = f"join-{fingerprint(f'{site}: {format_plan(plan)}')[:8]}"
        used = {join.id for join in self.joins.values()}
        numbered = (first if n == 1 else f"{first}-{n}" for n in range(1, len(used) + 2))
        return next(name for name in numbered if name not in used)

    def _channel(self, edge: Edge, reader: str, plan: LogicalPlan) -> str:
        source = self._source(edge)
        path = tuple(self.sites[i] for i in self.route(edge))
        name = f"{source} > {reader}"
        self.channels.append(Channel(name, source, reader, path, edge.rate * self.found.scale, plan))
        return name

    def _source(self, edge: Edge) -> str:
        if edge.made_by is not None:
            return self.joins[edge.made_by].id
        (name,) = edge.streams
        stream = scan_of(self._leaf(name, tuple(self.found.named))).stream
        self.streams.setdefault(name, PlacedStream(name, stream, self.sites[edge.source]))
        return name

    def _brought(self, edge: Edge, readers: Sequence[str], holding: Mapping[str, Held]) -> LogicalPlan:
        """The rows of an edge: what its source makes, cut to what these readers want."""
        if edge.made_by is None:
            (name,) = edge.streams
            return self._base(name, readers, holding[name].rows)
        made, source = self.joins[edge.made_by].plan, self.flows.operators[edge.made_by]
        parts = [
            _over(self._passing(holding[name].rows), name)
            for name in sorted(edge.streams)
            if holding[name].rows != source.holding[name].rows
        ]
        kept = Filter(made, conjunction(tuple(parts))) if parts else made
        columns = {n for name in edge.streams for n in self._columns(name, readers)}
        if columns == set(made.schema.names):
            return kept
        return Project(
            kept, tuple((c.name, ColumnRef(c.name, c.type)) for c in made.schema if c.name in columns)
        )

    def _base(self, name: str, readers: Sequence[str], rows: Rows) -> LogicalPlan:
        leaf = self._leaf(name, readers)
        passing = self._passing(rows)
        kept = leaf if passing == TRUE else Filter(leaf, passing)
        return Project(kept, tuple((name_of(name, c.name), ColumnRef(c.name, c.type)) for c in leaf.schema))

    def _leaf(self, name: str, readers: Iterable[str]) -> LogicalPlan:
        """A base stream with the columns that any of the readers wants."""
        leaves = [one.leaf(name) for r in readers if name in (one := self.found.named[r]).names]
        first = leaves[0]
        if not isinstance(first, StreamScan):
            return first
        names = {column.name for leaf in leaves for column in leaf.schema}
        schema = self.catalog.streams[first.stream].schema_
        return replace(first, columns=Schema(column for column in schema if column.name in names))

    def _columns(self, name: str, readers: Sequence[str]) -> list[str]:
        return [name_of(name, column.name) for column in self._leaf(name, readers).schema]

    def _passing(self, rows: Rows) -> Expr:
        """The condition that a row passes at least one of these filters."""
        if rows is None:
            return TRUE
        every = tuple(conjunction(self.found.conditions[name]) for name in sorted(rows))
        return every[0] if len(every) == 1 else Call("or", every)

    def _joined(
        self, left: LogicalPlan, right: LogicalPlan, edges: tuple[Edge, Edge], reader: str
    ) -> IntervalJoin:
        """The join of two sets of streams, as one of its readers says; all say the same."""
        named, mine = self.found.named[reader], edges[0].streams
        on: list[tuple[Expr, Expr]] = []
        rest: list[Expr] = []
        bounds: list[TimeBound] = []
        for a in sorted(mine):
            for b in sorted(edges[1].streams):
                for part in named.between(a, b):
                    pair = as_pair(part, mine)
                    on, rest = (on, [*rest, part]) if pair is None else ([*on, pair], rest)
                times = [name_of(name, named.leaf(name).times[0]) for name in (a, b)]
                for (x, y), most in zip((times, times[::-1]), named.bounds(a, b), strict=True):
                    bounds += [] if most is None else [TimeBound(x, y, most)]
        ordered = sorted(on, key=lambda pair: (format_expr(pair[0]), format_expr(pair[1])))
        return IntervalJoin(left, right, tuple(ordered), tuple(bounds), conjunction(tuple(rest)))


def _over(expr: Expr, name: str) -> Expr:
    """A condition on a stream's own columns, above a join."""
    return transform(
        expr, lambda e: ColumnRef(name_of(name, e.name), e.type) if isinstance(e, ColumnRef) else e
    )
