"""A project's window aggregates, woven: queries that can share are grouped, and the planner makes trees.

Queries can share when they read the same rows and group them by the same keys (plan/shared.py). They are
compared in a normal form: filters pushed down, windows right above the rows, projections merged, and no
column dropped, since which columns a query reads is no reason to read the stream twice.

Each group is one sharing problem, in the largest time unit that makes all its ranges and slides whole. The
price of sending rows between sites is not counted here, nor where a stream comes from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from headrace.catalog.model import Project, Query, RateSource, Site, Stream
from headrace.errors import UserError
from headrace.plan.logical import Aggregate, Filter, LogicalPlan, TableJoin, Window, WindowJoin
from headrace.plan.logical import Project as Projection
from headrace.plan.shared import (
    MICROS,
    Member,
    NotShared,
    Rows,
    SharedPlan,
    Tree,
    format_keys,
    own_edge_rate,
    own_operations,
    unmergeable,
)
from headrace.rewrite.driver import rewrite
from headrace.rewrite.merge_projections import merge_projections
from headrace.rewrite.normalise_windows import normalise_windows
from headrace.rewrite.push_filters import push_filters
from headrace.service.planning import bind
from headrace.service.project import selected

if TYPE_CHECKING:
    from headrace.planners.sharing.problem import SharingPlan, SharingProblem

_NORMAL_FORM = (push_filters, normalise_windows, merge_projections)
OFF = "sharing is off in the project file"


class _Steps:
    """A clock that counts how often it is read. A plan is part of a deployment: it must not depend on how
    busy the machine was when it was made. The size is a power of two, so that sums of steps are exact."""

    SIZE = 1 / 1024

    def __init__(self) -> None:
        self._read = 0

    def __call__(self) -> float:
        self._read += 1
        return self._read * self.SIZE


_CLOCK = _Steps()


def _steps(queries: int) -> int:
    """How long to search: a step takes the longer the more queries there are."""
    return max(16, min(256, 50_000 // queries))


def share(project: Project, only: Sequence[str] = (), *, skip_wrong: bool = False) -> SharedPlan:
    """The trees of all queries (or of those named in `only`), and why the others are in none. A query that
    does not bind raises its UserError, or is left out."""
    members: list[Member] = []
    unshared: list[NotShared] = []
    for query in selected(project, only):
        try:
            found = _aggregate(project, query)
        except UserError:
            if skip_wrong:
                continue
            raise
        if isinstance(found, str):
            unshared.append(NotShared(query.name, found))
        else:
            members.append(Member(query.name, found))
    return SharedPlan(_trees(project, members), tuple(unshared))


def _aggregate(project: Project, query: Query) -> Aggregate | str:
    if not project.planner.sharing:
        return OFF
    return weavable(rewrite(bind(project, query), _NORMAL_FORM))


def weavable(plan: LogicalPlan) -> Aggregate | str:
    """The aggregate of a plan that can be in a tree, or why there is none. What stands above it (filters on
    results, projections, aggregates of aggregates) is done on its results, shared or not."""
    top: Aggregate | None = None
    while True:
        match plan:
            case Aggregate(input=Window()):
                return unmergeable(plan) or plan
            case WindowJoin():
                return "it joins windows with each other, and a tree gives one window aggregate"
            case Filter() | Projection() | Aggregate() | TableJoin():
                top = plan if isinstance(plan, Aggregate) else top
                plan = plan.input
            case Window() if top is not None:
                return unmergeable(top)
            case _:
                return "it has no window aggregate"


@dataclass(frozen=True, slots=True)
class _Group:
    """Queries that could all be in one tree."""

    rows: Rows
    members: tuple[Member, ...]
    rate: float
    """Rows per second of their stream."""

    @property
    def unit(self) -> int:
        """Microseconds: the largest unit in which all ranges and slides are whole."""
        return math.gcd(*(part for m in self.members for part in (m.spec.range, m.spec.slide)))


def _groups(project: Project, members: Sequence[Member]) -> list[_Group]:
    found: dict[Rows, list[Member]] = {}
    for member in members:
        found.setdefault(member.rows, []).append(member)
    return [
        _Group(rows, tuple(own), expected_rate(project.streams[rows.stream])) for rows, own in found.items()
    ]


def expected_rate(stream: Stream) -> float:
    """Rows per second: what the project says, and for the rate source what the source will do."""
    if isinstance(stream.source, RateSource) and "rate" not in stream.model_fields_set:
        return float(stream.source.rows_per_second)
    return stream.rate


def used_sites(project: Project) -> tuple[Site, ...]:
    """Where trees can run. `local` is always in the catalog; where it was not declared and nothing is there,
    it is no place to send work to."""
    named = {query.site for query in project.queries.values()} | {s.site for s in project.streams.values()}
    default = Site(name="local")
    sites = [site for site in project.sites.values() if site.name in named or site != default]
    return tuple(sites) or tuple(project.sites.values())


def _trees(project: Project, members: Sequence[Member]) -> tuple[Tree, ...]:
    groups = _groups(project, members)
    sites = used_sites(project)
    trees = [tree for group in groups for tree in _weave(project, group, groups, sites)]
    order = {member.query: number for number, member in enumerate(members)}
    return tuple(sorted(spread(trees, sites), key=lambda tree: order[tree.queries[0]]))


def sharing_problem(group: _Group, sites: Sequence[Site]) -> SharingProblem:
    from headrace.planners.sharing.problem import SharingProblem, WindowQuery

    unit = group.unit
    queries = tuple(WindowQuery(m.query, m.spec.range // unit, m.spec.slide // unit) for m in group.members)
    capacities = tuple(site.cpu for site in sites) if len(sites) > 1 else (1.0,)
    return SharingProblem(group.rate * unit / MICROS, capacities, queries, "true")


def _weave(project: Project, group: _Group, groups: Sequence[_Group], sites: Sequence[Site]) -> list[Tree]:
    if len(group.members) == 1:
        return [_single(group, sites[0], _why_alone(group, groups))]
    # Imported here: the kernels take a second to load, and a project without partners needs none.
    from headrace.planners.sharing.problem import Options
    from headrace.planners.sharing.solve import solve

    choices = project.planner
    problem = sharing_problem(group, sites)
    options = Options(balance=choices.balance, seconds=_steps(len(group.members)) * _Steps.SIZE)
    plan = solve(problem, choices.optimiser, options, clock=_CLOCK)
    return _as_trees(group, groups, sites, plan)


def _single(group: _Group, site: Site, why: str) -> Tree:
    """The tree of a query without partners: nothing to search, and all is known in closed form."""
    member = group.members[0]
    rate, cost = own_edge_rate(member.spec), alone_cost(group.rate, member)
    return Tree(site.name, (member,), rate, rate, cost, cost, why)


def _as_trees(
    group: _Group, groups: Sequence[_Group], sites: Sequence[Site], plan: SharingPlan
) -> list[Tree]:
    """The planner's answer in seconds, and in the project's words."""
    scale = Fraction(MICROS, group.unit)
    by_name = {member.query: member for member in group.members}
    trees = []
    for site, node in zip(sites, plan.nodes, strict=True):
        for report in node.trees:
            members = tuple(by_name[query] for query in report.queries)
            trees.append(
                Tree(
                    site=site.name,
                    members=members,
                    edge_rate=report.edge_rate * scale,
                    edge_rate_low=report.edge_rate_low * scale,
                    cost=float(report.cost * scale),
                    unshared_cost=sum(alone_cost(group.rate, member) for member in members),
                    alone=_why_alone(group, groups) if len(members) == 1 else "",
                )
            )
    return trees


def alone_cost(rate: float, member: Member) -> float:
    """Operations per second of a tree with this one member."""
    return rate + float(own_operations(member.spec))


def saving_of(rate: float, tree: Tree, query: str) -> float:
    """Operations per second that this one query saves by being in its tree."""
    from headrace.planners.sharing.operations import final_operations

    own = next(member for member in tree.members if member.query == query)
    others = [m.spec for m in tree.members if m is not own]
    if not others:
        return 0.0
    unit = math.gcd(*(part for spec in others for part in (spec.range, spec.slide)))
    windows = [(spec.range // unit, spec.slide // unit) for spec in others]
    low, high = final_operations(windows)
    without = rate + float((low + high) / 2 * MICROS / unit)
    return without + alone_cost(rate, own) - tree.cost


def _why_alone(group: _Group, groups: Sequence[_Group]) -> str:
    if len(group.members) > 1:
        partners = len(group.members) - 1
        one = "its partner" if partners == 1 else f"its {partners} partners"
        return f"no tree with {one} was found that costs less"
    stream = group.rows.stream
    others = [other for other in groups if other is not group and other.rows.stream == stream]
    for other in others:
        if (other.rows.input, other.rows.time) == (group.rows.input, group.rows.time):
            return (
                f"no partner with the same keys: {_names(other.members)} the same rows by "
                f"{format_keys(other.rows.keys)}"
            )
    for other in others:
        if other.rows.keys == group.rows.keys:
            return f"no partner with the same rows: {_names(other.members)} other rows of {stream}"
    if others:
        return f"no partner: the others over {stream} read other rows, by other keys"
    return f"no partner: no other window aggregate over {stream} can share"


def _names(members: Sequence[Member]) -> str:
    first = members[0].query
    return f"{first} reads" if len(members) == 1 else f"{first} and {len(members) - 1} more read"


def spread(trees: Sequence[Tree], sites: Sequence[Site]) -> list[Tree]:
    """The trees of all groups over the sites. Each group was spread by itself, so the sites that come first
    may have got too much; the dearest tree goes first, to the site that is then the least loaded, and that
    is kept where it is better. What a tree costs does not depend on where it stands."""
    capacity = {site.name: site.cpu for site in sites}
    moved: list[Tree] = []
    load = dict.fromkeys(capacity, 0.0)
    for tree in sorted(trees, key=lambda tree: -tree.cost):
        site = min(load, key=lambda name: load[name] + tree.cost / capacity[name])
        load[site] += tree.cost / capacity[site]
        moved.append(replace(tree, site=site))
    return moved if heaviest(moved, capacity) < heaviest(trees, capacity) else list(trees)


def heaviest(trees: Sequence[Tree], capacity: Mapping[str, float]) -> float:
    """The load of the most loaded site."""
    load = dict.fromkeys(capacity, 0.0)
    for tree in trees:
        load[tree.site] += tree.cost / capacity[tree.site]
    return max(load.values())
