"""The cheapest deployment of all queries together, exactly: a mixed integer programme for tiny cases.

    y[S, n]           1: a join of S runs at n
    z[S, n, A]        it joins A and S - A                     sum over A of z = y
    f[S, n, A, X, a]  it fetches its input X (A or S - A) from a    sum over a of f = z,  f <= y[X, a]
    g[q, n]           query q fetches its result from n             sum over n of g = 1,  g <= y[S_q, n]

Costs are on f and g: rate * distance; an input that is a base stream has one site to come from, so its cost
is on z. There can be no cycle, since inputs are smaller sets. Once y is fixed the rest is a choice of
cheapest inputs, so only y has to be integer.

Holds for whole streams (no filters, no widths) whose results are not read at sinks: then a set at a site is
the same thing for everybody, and one join of it there is enough. Grows as 3^K N^2 and then exponentially:
meant for 2-4 streams and up to 6 sites.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from headrace.errors import InternalError, NotSupported, UserError
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import PlacementProblem, Site
from headrace.planners.placement.rates import Held, data_rate

Streams = frozenset[str]


@dataclass(frozen=True, slots=True)
class JointOptimum:
    cost: float
    operators: tuple[tuple[Streams, Site], ...]
    """The joins that run."""


def joint_optimum(problem: PlacementProblem, prepared: Prepared, *, relaxed: bool = False) -> JointOptimum:
    """`relaxed`: operators may run in part; a lower bound. Raises NotSupported and UserError."""
    if problem.filters or problem.sinks or any(query.widths for query in problem.queries):
        raise NotSupported("the exact programme knows no filters, widths or results read at sinks")
    if problem.reuse:
        return _Programme(problem, prepared).solved(relaxed)
    alone = [
        _Programme(replace(problem, queries=(query,)), prepared).solved(relaxed) for query in problem.queries
    ]
    return JointOptimum(sum(one.cost for one in alone), tuple(op for one in alone for op in one.operators))


@dataclass
class _Programme:
    problem: PlacementProblem
    prepared: Prepared
    costs: list[float] = field(default_factory=list)
    runs: dict[tuple[Streams, Site], int] = field(default_factory=dict)
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    """(row, variable, value)"""
    lower: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sites = [n for n in range(self.prepared.size) if n not in self.problem.forbidden]
        queries = {frozenset(query.streams) for query in self.problem.queries}
        wanted = {part for streams in queries for part in _subsets(sorted(streams)) if len(part) > 1}
        self.runs = {(s, n): self._variable(0.0) for s in sorted(wanted, key=sorted) for n in self.sites}
        for streams, site in list(self.runs):
            self._join(streams, site)
        for query in self.problem.queries:
            reached = self._variable(0.0)
            self._row({reached: 1.0}, 1.0, 1.0)
            self._fetch(frozenset(query.streams), query.sink, reached)

    def solved(self, relaxed: bool) -> JointOptimum:
        if not self.lower:
            return JointOptimum(0.0, ())
        count = len(self.costs)
        rows, columns, values = zip(*self.entries, strict=True)
        matrix = csr_array((values, (rows, columns)), shape=(len(self.lower), count))
        integer = np.zeros(count)
        integer[list(self.runs.values())] = 0 if relaxed else 1
        found = milp(
            self.costs,
            integrality=integer,
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(matrix, self.lower, self.upper),
            options={"mip_rel_gap": 0.0},
        )
        if found.status == 2:
            raise UserError("some query cannot be deployed", hint="Some stream cannot reach its sink.")
        if found.status != 0:
            raise InternalError(f"placement: HiGHS says {found.message}")
        on = tuple(key for key, variable in self.runs.items() if found.x[variable] > 0.5)
        return JointOptimum(float(found.fun), on)

    def _join(self, streams: Streams, site: Site) -> None:
        """Its splits, and where each side comes from."""
        balance = {self.runs[streams, site]: -1.0}
        for part in _subsets(sorted(streams)):
            rest = streams - part
            if rest and min(streams) in part:
                chosen = self._variable(0.0)
                balance[chosen] = 1.0
                self._fetch(part, site, chosen)
                self._fetch(rest, site, chosen)
        self._row(balance, 0.0, 0.0)

    def _fetch(self, streams: Streams, to: Site, reader: int) -> None:
        """As much of a set as the reader runs comes from sites where it is."""
        if len(streams) == 1:
            (name,) = streams
            way = self._way(streams, self.problem.streams[name].site, to)
            self.costs[reader] += way if np.isfinite(way) else 0.0
            if not np.isfinite(way):
                self._row({reader: 1.0}, 0.0, 0.0)
            return
        balance = {reader: -1.0}
        for site in self.sites:
            way = self._way(streams, site, to)
            if np.isfinite(way):
                carried = self._variable(way)
                balance[carried] = 1.0
                self._row({carried: 1.0, self.runs[streams, site]: -1.0}, -np.inf, 0.0)
        self._row(balance, 0.0, 0.0)

    def _way(self, streams: Streams, source: Site, target: Site) -> float:
        distance = self.prepared.distance(source, target)
        return self._rate(streams) * distance if np.isfinite(distance) else np.inf

    def _rate(self, streams: Streams) -> float:
        whole = {name: Held(None, self.problem.streams[name].width) for name in streams}
        return data_rate(self.problem, whole, streams)

    def _variable(self, cost: float) -> int:
        self.costs.append(cost)
        return len(self.costs) - 1

    def _row(self, entries: dict[int, float], lower: float, upper: float) -> None:
        self.entries += [(len(self.lower), variable, value) for variable, value in entries.items()]
        self.lower.append(lower)
        self.upper.append(upper)


def _subsets(names: list[str]) -> Iterator[Streams]:
    """All that are not empty."""
    for mask in range(1, 1 << len(names)):
        yield frozenset(name for i, name in enumerate(names) if mask >> i & 1)
