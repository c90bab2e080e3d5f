"""From the joins of a project's queries to a placement problem.

What costs is data in flight: bytes per second times the seconds they are under way (the latency of each link
they pass), or times the `cost` that the project file gives a link.

A set of joined streams gives rows times width bytes per second. With r rows per second, windows that let a
row of a meet rows of b for t seconds, and one in d of those having the same keys,

    rows(a, b) = r(a) * r(b) * t(a, b) / d(a, b)          width(a, b) = width(a) + width(b)

The planners know a rate for each stream and a factor for each pair. So rates are given per T seconds and in
rows of W bytes, and what remains goes into the factors of the pairs. One and two streams then come out exact
for any T and W. T = 4/3 of the middle t, and W = 3/8 of the middle width, make three alike streams exact too;
for four, rows and width each come out 16 % too low, for five 43 %: n windows of range R that all overlap have
n * R^(n-1) ways to, against (8/3 * R)^(n-1) * (3/4)^(n(n-1)/2) here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import exp, log

from headrace.catalog.model import Link
from headrace.catalog.model import Project as Catalog
from headrace.plan.expr import Expr, conjunction
from headrace.plan.logical import Filter as Filtered
from headrace.plan.logical import LogicalPlan, StreamScan, nodes
from headrace.plan.text import format_expr
from headrace.plan.types import Column, DataType
from headrace.planners.placement.problem import BaseStream, Filter, Network, PlacementProblem, Query
from headrace.service.estimates import GUESS, Distinct, distinct_of, expected_rate, share
from headrace.service.placing_names import Named
from headrace.service.placing_part import leaf_and_column
from headrace.service.spreading import used_sites

BYTES = {
    DataType.BOOLEAN: 1,
    DataType.INT: 4,
    DataType.BIGINT: 8,
    DataType.FLOAT: 4,
    DataType.DOUBLE: 8,
    DataType.STRING: 20,
    DataType.DATE: 4,
    DataType.TIMESTAMP: 8,
}
"""Of one value; a text is taken to have 20."""
NO_LINKS = "the project has no links: every two sites are taken to be 1 ms apart"
UNLINKED = Link(between=("a", "b"))
"""What is between two sites of a project without links."""
_LEAST = 1e-9
_MICROS = 1e6


@dataclass(frozen=True)
class Placeable:
    """A problem, with what is needed to read its answer."""

    problem: PlacementProblem
    named: Mapping[str, Named]
    """By query."""
    conditions: Mapping[str, tuple[Expr, ...]]
    """Of each filter of the problem, over the columns of its stream."""
    scale: float
    """Bytes per second of one unit of the problem's rates."""


def placeable(catalog: Catalog, named: Mapping[str, Named]) -> Placeable:
    """The problem of these queries, over the sites and links of the project."""
    return _Builder(catalog, named).placeable()


def network_of(catalog: Catalog, more: Collection[str] = ()) -> Network:
    """Sites and links of the project; where it has no link at all, each site is linked with each other.
    `more` are sites that jobs were moved to."""
    linked = {name for link in catalog.links for name in link.between}
    used = {site.name for site in used_sites(catalog)} | linked | set(more)
    sites = tuple(name for name in catalog.sites if name in used)
    number = {name: i for i, name in enumerate(sites)}
    if not catalog.links:
        every = combinations(range(len(sites)), 2)
        return Network(sites, tuple((a, b, cost_of(UNLINKED)) for a, b in every))
    ends = (link.between for link in catalog.links)
    costs = map(cost_of, catalog.links)
    return Network(
        sites, tuple((number[a], number[b], cost) for (a, b), cost in zip(ends, costs, strict=True))
    )


def cost_of(link: Link) -> float:
    """Of a byte: the seconds it is under way, unless the project says otherwise."""
    return link.latency / _MICROS if link.cost is None else link.cost


def width_of(columns: Iterable[Column]) -> float:
    return float(sum(BYTES[column.type] for column in columns))


def rows_of(catalog: Catalog, leaf: LogicalPlan) -> float:
    """Rows per second of a leaf. A row is taken to find one match in a static table."""
    scan = scan_of(leaf)
    filters = [node.predicate for node in nodes(leaf) if isinstance(node, Filtered)]
    passed = share(filters, distinct_in(catalog, leaf))
    return expected_rate(catalog.streams[scan.stream]) * max(passed, _LEAST)


def scan_of(leaf: LogicalPlan) -> StreamScan:
    return next(node for node in nodes(leaf) if isinstance(node, StreamScan))


def distinct_in(catalog: Catalog, leaf: LogicalPlan) -> Distinct:
    """For the columns of a leaf. Under a join with a static table they have an alias before their name."""
    stream = catalog.streams[scan_of(leaf).stream]
    known = distinct_of(catalog, stream.name)
    own = {column: known(column) for column in stream.columns}
    return lambda column: own.get(column.rpartition(".")[2], known(column))


def _middle(values: Iterable[float]) -> float:
    """The geometric mean; 1 of nothing."""
    logs = [log(value) for value in values]
    return exp(sum(logs) / len(logs)) if logs else 1.0


@dataclass(slots=True)
class _Builder:
    catalog: Catalog
    named: Mapping[str, Named]

    def placeable(self) -> Placeable:
        network = network_of(self.catalog)
        leaves = {name: one.leaf(name) for one in self.named.values() for name in one.names}
        widths = {name: self._whole(leaf) for name, leaf in leaves.items()}
        size = 3 / 8 * _middle(widths.values())
        span = 4 / 3 * _middle(self._spans())
        streams = {
            name: BaseStream(
                name,
                network.position[self.catalog.streams[scan_of(leaf).stream].site],
                rows_of(self.catalog, leaf) * span * widths[name] / size,
                widths[name],
            )
            for name, leaf in leaves.items()
        }
        conditions = self._conditions()
        problem = PlacementProblem(
            network,
            streams,
            self._factors(widths, span, size),
            tuple(self._query(one, network) for one in self.named.values()),
            filters=self._filters(conditions),
        )
        return Placeable(problem, self.named, {n: parts for n, (_, parts) in conditions.items()}, size / span)

    def _whole(self, leaf: LogicalPlan) -> float:
        """A leaf is read with all columns of its stream; one with static tables as it stands."""
        if isinstance(leaf, StreamScan):
            return width_of(self.catalog.streams[leaf.stream].schema_)
        return width_of(leaf.schema)

    def _spans(self) -> list[float]:
        found = (self._span(one, a, b) for one in self.named.values() for a, b in combinations(one.names, 2))
        return [span for span in found if span is not None]

    @staticmethod
    def _span(one: Named, a: str, b: str) -> float | None:
        """Seconds during which a row of one meets rows of the other; None: only others bound them."""
        forth, back = one.bounds(a, b)
        if not one.stated(a, b) or forth is None or back is None:
            return None
        return max(forth + back + 1, 1) / _MICROS

    def _factors(self, widths: Mapping[str, float], span: float, size: float) -> dict[frozenset[str], float]:
        found: dict[frozenset[str], float] = {}
        for one in self.named.values():
            for a, b in combinations(one.names, 2):
                own = self._span(one, a, b)
                keys = max(share(one.between(a, b), self._of(one)), _LEAST)
                meets = keys * (1.0 if own is None else own / span)
                wide = size * (widths[a] + widths[b]) / (widths[a] * widths[b])
                found.setdefault(frozenset((a, b)), meets * wide)
        return found

    def _of(self, one: Named) -> Distinct:
        """For columns called `name/column`."""
        known = {name: distinct_in(self.catalog, one.leaf(name)) for name in one.names}

        def distinct(column: str) -> float:
            leaf, own = leaf_and_column(column)
            return known[leaf](own) if leaf in known else GUESS

        return distinct

    def _conditions(self) -> dict[str, tuple[str, tuple[Expr, ...]]]:
        """Filters by name: stream and conditions."""
        return {
            filter_name(name, parts): (name, parts)
            for one in self.named.values()
            for name in one.names
            for parts in [one.filter(name)]
            if parts
        }

    def _filters(self, conditions: Mapping[str, tuple[str, tuple[Expr, ...]]]) -> dict[str, Filter]:
        """One that has all conditions of another, and more, is within it."""
        leaves = {name: one.leaf(name) for one in self.named.values() for name in one.names}
        found: dict[str, Filter] = {}
        for name, (stream, parts) in conditions.items():
            within = frozenset(
                other
                for other, (theirs, weaker) in conditions.items()
                if theirs == stream and set(weaker) < set(parts)
            )
            passed = max(share(parts, distinct_in(self.catalog, leaves[stream])), _LEAST)
            found[name] = Filter(name, stream, passed, within)
        return found

    def _query(self, one: Named, network: Network) -> Query:
        filters = {name: one.filter(name) for name in one.names}
        return Query(
            one.query,
            one.names,
            network.position[one.site],
            {name: filter_name(name, parts) for name, parts in filters.items() if parts},
            {name: width_of(one.leaf(name).schema) for name in one.names},
        )


def filter_name(stream: str, parts: tuple[Expr, ...]) -> str:
    return f"{stream}: {format_expr(conjunction(parts))}"
