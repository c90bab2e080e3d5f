"""How full a site is: cost models that can be exchanged, each giving a normalised cost table (Section 6.1).

A model says what each operator adds to the cost of its site; a site's cost is the sum. Costs are shares of
the site's capacity, so 1 is full and more than 1 overloaded. Where a model is about one resource and a site
has no limit of it, there is no share to tell: then costs are shares of what all operators together hold or
could send. In `combined` the share at such a site is 0, as something else is scarcer there.

    memory     state of operators / memory of the site: the paper's Figure 34, in bytes
    network    Equation 4: the output rates of the operators whose output leaves the site, and the rates of
               base streams that are at home there and read elsewhere
    cpu        cpu of operators, with what their connections take
    combined   the scarcest of the three

Only the sites an operator leaves and comes to change their costs when it is moved, whatever the model:
policies rely on that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite

from headrace.planners.distribution.problem import Edge, Operator, Problem, Site, Table
from headrace.planners.distribution.usage import is_remote

Adds = Callable[[Problem, Table, Operator], float]
"""What an operator takes of the resource of its site, where the table puts it."""


@dataclass(frozen=True, slots=True)
class Resource:
    name: str
    adds: Adds
    capacity: Callable[[Site], float]
    other: Callable[[Site], float]
    """What is used there anyway."""
    most: Callable[[Operator], float]
    """What an operator takes wherever it is, or could take."""


def _cpu(problem: Problem, table: Table, operator: Operator) -> float:
    found = operator.cpu
    if problem.connection_cpu or problem.row_cpu:
        for edge in problem.edges_of[operator.id]:
            if is_remote(edge, table):
                found += problem.connection_cpu + problem.row_cpu * edge.rate
    return found


def _sent(problem: Problem, table: Table, operator: Operator) -> float:
    """An operator with several remote readers counts once, as the sum in Equation 4 has it."""
    own = (edge for edge in problem.edges_of[operator.id] if edge.producer == operator.id)
    leaves = any(is_remote(edge, table) for edge in own)
    return operator.rate * operator.width if leaves else 0.0


MEMORY = Resource(
    "memory",
    lambda problem, table, one: one.state_bytes,
    lambda site: site.memory,
    lambda site: site.memory_other,
    lambda one: one.state_bytes,
)
NETWORK = Resource(
    "network", _sent, lambda site: site.network, lambda site: 0.0, lambda one: one.rate * one.width
)
CPU = Resource("cpu", _cpu, lambda site: site.cpu, lambda site: site.cpu_other, lambda one: one.cpu)


@dataclass(frozen=True, slots=True)
class CostModel:
    name: str
    resources: tuple[Resource, ...]
    falls: bool = False
    """A site that does worse shows a lower figure: it sends less than it did (Section 6.4)."""


MODELS: Mapping[str, CostModel] = {
    "cpu": CostModel("cpu", (CPU,)),
    "memory": CostModel("memory", (MEMORY,)),
    "network": CostModel("network", (NETWORK,), falls=True),
    "combined": CostModel("combined", (CPU, MEMORY, NETWORK)),
}


@dataclass(frozen=True, slots=True)
class SiteCost:
    cost: float
    operators: Mapping[str, float]
    """What each operator there adds. Equation 5 is this divided by the sum: `share`."""
    resource: str

    def share(self, operator: str) -> float:
        total = sum(self.operators.values())
        return self.operators[operator] / total if total else 0.0


@dataclass(frozen=True, slots=True)
class CostTable:
    model: str
    sites: Mapping[str, SiteCost]
    """Those that answer."""

    @property
    def difference(self) -> float:
        """Between the highest and the lowest cost (line 4 of Algorithm 5)."""
        costs = [one.cost for one in self.sites.values()]
        return max(costs) - min(costs) if costs else 0.0


@dataclass(slots=True)
class Costing:
    """A model applied to one problem: scales are fixed once, so that costs before and after a move
    compare."""

    problem: Problem
    model: CostModel
    resources: tuple[Resource, ...] = ()
    """Of several, those that no site limits are left out: a share of nothing is never the scarcest."""
    _scales: dict[str, dict[str, float]] = field(default_factory=dict)
    _home: dict[str, dict[str, list[Edge]]] = field(default_factory=dict)
    """By site and stream that is at home there: who reads it."""
    _fixed: dict[str, list[Edge]] = field(default_factory=dict)
    """By site: edges from the streams that are at home there, and to results that are wanted there."""

    def __post_init__(self) -> None:
        every = self.model.resources
        self.resources = tuple(one for one in every if len(every) == 1 or any(self._limited(one)))
        if self.problem.connection_cpu or self.problem.row_cpu:
            for edge in self.problem.edges:
                if edge.fixed is not None:
                    self._fixed.setdefault(edge.fixed, []).append(edge)
        for edge in self.problem.edges:
            if edge.fixed is not None and edge.stream is not None:
                self._home.setdefault(edge.fixed, {}).setdefault(edge.stream, []).append(edge)
        for resource in self.resources:
            self._scales[resource.name] = self._scale(resource)

    def table(self, table: Table) -> CostTable:
        on: dict[str, list[str]] = {site.id: [] for site in self.problem.alive}
        for name, site in table.items():
            if site in on:
                on[site].append(name)
        return CostTable(self.model.name, {site: self.site(site, on[site], table) for site in on})

    def site(self, site: str, operators: Collection[str], table: Table) -> SiteCost:
        """The cost of one site that runs these operators, all others being where the table has them."""
        best: SiteCost | None = None
        for resource in self.resources:
            scale = self.scale(resource, site)
            adds = {name: self.adds(resource, name, table) / scale for name in operators}
            cost = self.other(resource, site, table) / scale + sum(adds.values())
            if best is None or cost > best.cost:
                best = SiteCost(cost, adds, resource.name)
        assert best is not None
        return best

    def adds(self, resource: Resource, operator: str, table: Table) -> float:
        return resource.adds(self.problem, table, self.problem.operator[operator])

    def scale(self, resource: Resource, site: str) -> float:
        return self._scales[resource.name][site]

    def other(self, resource: Resource, site: str, table: Table) -> float:
        """What is used at a site whatever runs there of this problem."""
        own = resource.other(self.problem.site[site])
        if resource is CPU:
            own += self._ends(site, table)
        if resource is NETWORK:
            own += self._streamed(site, table)
        return own

    def _streamed(self, site: str, table: Table) -> float:
        """Of streams that are at home there: each once, as an operator's output is."""
        return sum(
            edges[0].rate * edges[0].width
            for edges in self._home.get(site, {}).values()
            if any(is_remote(edge, table) for edge in edges)
        )

    def _ends(self, site: str, table: Table) -> float:
        """What the site pays for its end of connections to operators elsewhere that none of its own makes."""
        away = [edge for edge in self._fixed.get(site, ()) if is_remote(edge, table)]
        return sum(self.problem.connection_cpu + self.problem.row_cpu * edge.rate for edge in away)

    def _scale(self, resource: Resource) -> dict[str, float]:
        """The same for every table, or costs before a move would not compare with those after it."""
        capacities = {site.id: resource.capacity(site) for site in self.problem.alive}
        if len(self.model.resources) > 1 or all(self._limited(resource)):
            return capacities
        together = sum(resource.most(one) for one in self.problem.operators)
        if resource is NETWORK:
            together += sum(e[0].rate * e[0].width for own in self._home.values() for e in own.values())
        return dict.fromkeys(capacities, together or 1.0)

    def _limited(self, resource: Resource) -> Iterator[bool]:
        return (isfinite(resource.capacity(site)) for site in self.problem.alive)
