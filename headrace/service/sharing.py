"""A project's window aggregates, woven: queries that can share are put together, and trees are made of them.

Queries can share when they read the same rows below their filters on the same site (plan/shared.py). The
chosen optimiser makes trees of those with equal filters and keys by the paper's cost; with ours, they are
then merged and split by what they cost on Spark (regroup.py). An optimiser of the paper is taken at its word.

A tree runs where its queries give their answers. Sending rows between sites is not planned here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.catalog.model import Project, Query
from headrace.cost.windows import WindowCosts
from headrace.errors import UserError
from headrace.plan.logical import LogicalPlan, streams_of
from headrace.plan.placed import TreeMember, split_filter
from headrace.plan.shared import MICROS, NotShared, SharedPlan, Tree
from headrace.plan.text import format_expr
from headrace.service.binding import for_each
from headrace.service.calibration_file import costs_of
from headrace.service.loads import Loads, Price
from headrace.service.members import member_of
from headrace.service.project import selected
from headrace.service.regroup import Group, regroup

if TYPE_CHECKING:
    from headrace.planners.sharing.problem import SharingProblem

Costs = Callable[[str], WindowCosts]
"""Of a site."""
OURS = "headrace"


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


def calibrated(project: Project) -> Costs:
    """What was measured on each site, or the defaults."""
    return lambda site: costs_of(project, site)[0]


def share(
    project: Project, only: Sequence[str] = (), *, skip_wrong: bool = False, costs: Costs | None = None
) -> SharedPlan:
    """The trees of all queries (or of those named in `only`), and why the others are in none. A query that
    does not bind is left out, or raises the first UserError, which counts the others."""

    def found(query: Query) -> TreeMember | NotShared | None:
        try:
            member = member_of(project, query)
        except UserError:
            if skip_wrong:
                return None
            raise
        return NotShared(query.name, member) if isinstance(member, str) else member

    both = for_each(selected(project, only), found)
    members = [one for one in both if isinstance(one, TreeMember)]
    families = families_of(project, members, costs or calibrated(project))
    trees = [tree for family in families for tree in _weave(project, family, families)]
    order = {member.query: number for number, member in enumerate(members)}
    trees.sort(key=lambda tree: order[tree.queries[0]])
    return SharedPlan(tuple(trees), tuple(one for one in both if isinstance(one, NotShared)))


@dataclass(frozen=True, slots=True)
class Family:
    """Queries that could all be in one tree."""

    site: str
    source: LogicalPlan
    """The rows below their filters."""
    members: tuple[TreeMember, ...]
    loads: Loads

    @property
    def stream(self) -> str:
        return streams_of(self.source)[0]

    def of(self, group: Group) -> tuple[TreeMember, ...]:
        return tuple(self.members[i] for i in sorted(group))


def families_of(project: Project, members: Sequence[TreeMember], costs: Costs) -> list[Family]:
    found: dict[tuple[str, LogicalPlan, str], list[TreeMember]] = {}
    for member in members:
        window = member.window
        key = (project.queries[member.query].site, split_filter(window.input)[0], window.time)
        found.setdefault(key, []).append(member)
    return [
        Family(site, source, tuple(own), Loads(project, site, own, costs(site)))
        for (site, source, _), own in found.items()
    ]


def _weave(project: Project, family: Family, families: Sequence[Family]) -> list[Tree]:
    everyone = range(len(family.members))
    if len(family.members) == 1:
        groups = [frozenset(everyone)]
    else:
        groups = _proposed(project, family)
        if project.planner.optimiser == OURS:
            groups = _regrouped(family, groups)
    return [_tree(family, group, groups, families) for group in groups]


def _filter_of(member: TreeMember) -> frozenset[str]:
    return frozenset(map(format_expr, split_filter(member.window.input)[1]))


def _blocks(family: Family) -> list[Sequence[Hashable]]:
    """Labels of the members: what is never parted (one more of them costs no fragment, row or roll-up), then
    what is moved as a whole."""
    filters = [_filter_of(member) for member in family.members]
    keys = [member.keys for member in family.members]
    slides = [member.window.spec.slide for member in family.members]
    offsets = [member.window.spec.range % member.window.spec.slide for member in family.members]
    return [list(zip(filters, keys, slides, offsets, strict=True)), filters, keys, slides]


def _grouped(labels: Sequence[Hashable]) -> list[Group]:
    found: dict[Hashable, list[int]] = {}
    for i, label in enumerate(labels):
        found.setdefault(label, []).append(i)
    return [frozenset(group) for group in found.values()]


def _proposed(project: Project, family: Family) -> list[Group]:
    """The optimiser's trees of the members with equal filters and keys."""
    labels = [(_filter_of(member), member.keys) for member in family.members]
    return [tree for group in _grouped(labels) for tree in _solved(project, family, sorted(group))]


def _solved(project: Project, family: Family, group: Sequence[int]) -> list[Group]:
    if len(group) == 1:
        return [frozenset(group)]
    # Imported here: the kernels take a second to load, and a project without partners needs none.
    from headrace.planners.sharing.problem import Options
    from headrace.planners.sharing.solve import solve

    choices = project.planner
    problem = sharing_problem(family.of(frozenset(group)), family.loads)
    options = Options(balance=choices.balance, seconds=_steps(len(group)) * _Steps.SIZE)
    plan = solve(problem, choices.optimiser, options, clock=_CLOCK)
    return [frozenset(group[i] for i in tree) for node in plan.assignment for tree in node]


def sharing_problem(members: Sequence[TreeMember], loads: Loads) -> SharingProblem:
    """In the largest unit of time that makes all ranges and slides whole."""
    from headrace.planners.sharing.problem import SharingProblem, WindowQuery

    specs = [member.window.spec for member in members]
    unit = math.gcd(*(part for spec in specs for part in (spec.range, spec.slide)))
    queries = tuple(
        WindowQuery(member.query, spec.range // unit, spec.slide // unit)
        for member, spec in zip(members, specs, strict=True)
    )
    return SharingProblem(loads.rate(members) * unit / MICROS, (1.0,), queries, "true")


def _regrouped(family: Family, proposed: Sequence[Group]) -> list[Group]:
    blocks = _blocks(family)
    # A paper's plan may part what costs nothing to keep together; the search never does.
    whole = {label: group for group in _grouped(blocks[0]) for label in [blocks[0][min(group)]]}
    first = [frozenset[int]().union(*(whole[blocks[0][i]] for i in tree)) for tree in proposed]
    starts = [_disjoint(first), [frozenset(range(len(family.members)))]]
    starts += [_grouped(kind) for kind in blocks[1:3]]
    return regroup(starts, blocks, lambda group: family.loads.price(family.of(group)).total)


def _disjoint(trees: Sequence[Group]) -> list[Group]:
    """The trees, each without what an earlier one has."""
    taken: frozenset[int] = frozenset()
    kept = []
    for tree in trees:
        if tree - taken:
            kept.append(tree - taken)
        taken |= tree
    return kept


def _tree(family: Family, group: Group, groups: Sequence[Group], families: Sequence[Family]) -> Tree:
    members, loads = family.of(group), family.loads
    edges = loads.edges(members)
    return Tree(
        site=family.site,
        members=members,
        edge_rate=edges.high,
        edge_rate_low=edges.low,
        cost=loads.cores(members),
        unshared_cost=sum(loads.cores((member,)) for member in members),
        plain_cost=sum(loads.plain(member) for member in members),
        alone=_why_alone(family, group, groups, families) if len(members) == 1 else "",
    )


def saving_of(project: Project, tree: Tree, query: str, costs: Costs | None = None) -> float:
    """Cores that this one query saves by being in its tree."""
    loads = Loads(project, tree.site, tree.members, (costs or calibrated(project))(tree.site))
    own = tuple(member for member in tree.members if member.query == query)
    others = tuple(member for member in tree.members if member.query != query)
    return loads.cores(others) + loads.cores(own) - loads.cores(tree.members) if others else 0.0


def _why_alone(family: Family, group: Group, groups: Sequence[Group], families: Sequence[Family]) -> str:
    others = [family.of(other) for other in groups if other != group]
    if not others:
        return _no_partner(family, families)
    (own,), price = family.of(group), family.loads.price
    nearest = min(others, key=lambda other: price((own, *other)).total - price(other).total)
    together, apart = price((own, *nearest)), (price((own,)), price(nearest))
    more = _more(together, apart)
    if together.total <= sum(one.total for one in apart) or not more:
        return "the chosen optimiser found no tree for it"
    return f"one tree with {_names(nearest)} would {more}"


def _more(together: Price, apart: Sequence[Price]) -> str:
    """In what one tree is dearer than two."""
    cpu = together.cpu - sum(one.cpu for one in apart)
    idle = together.idle - sum(one.idle for one in apart)
    memory = together.memory - sum(one.memory for one in apart)
    told = [
        (cpu, f"take {cpu:.2g} cores more"),
        (idle, f"leave {idle:.2g} cores idle, with all keys in one bucket"),
        (memory, f"keep {memory / 2**20:,.0f} MiB more"),
    ]
    return " and ".join(words for amount, words in told if amount > 0)


def _no_partner(family: Family, families: Sequence[Family]) -> str:
    stream = family.stream
    others = [other for other in families if other is not family and other.stream == stream]
    elsewhere = [other for other in others if other.site != family.site and other.source == family.source]
    if elsewhere:
        there = f"{_names(elsewhere[0].members)} on {elsewhere[0].site}"
        return (
            f"no partner on {family.site}: a tree runs on one site, and its partners ({there}) are elsewhere"
        )
    if others:
        return f"no partner with the same rows: the others over {stream} join it with other tables, or not"
    return f"no partner: no other window aggregate over {stream} can share"


def _names(members: Sequence[TreeMember]) -> str:
    first = members[0].query
    return first if len(members) == 1 else f"{first} and {len(members) - 1} more"
