"""A view of a query, planned within a cluster and handed down to the sites: what the paper's planners share.

A view is a set of streams to be joined from given sources and brought to a target. `Views.instantiate` plans
it over the members of a cluster: the cheapest of all join orders and all assignments of joins to members,
every source and target below a member taken to be where that member is. Joins on one member that feed each
other are a view again, and so is a source that is read below a member: that member's cluster plans them in
the same way, until level 1, where members are sites.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import factorial

import numpy as np
from numpy.typing import NDArray

from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.drafts import Draft, Input, Make, Read, Search
from headrace.planners.placement.hierarchy import Cluster, Hierarchy
from headrace.planners.placement.problem import (
    Floats,
    Join,
    Leaf,
    Placed,
    PlacementProblem,
    Query,
    Reused,
    Site,
    Tree,
    walk,
)
from headrace.planners.placement.rates import by_subset


class NoWay(Exception):
    """The estimates of a cluster led to a view that cannot be made."""


@dataclass(frozen=True, slots=True)
class Source:
    """A set of streams (bits) that can be read at a site: a base or derived stream, or a view's output."""

    streams: int
    site: Site
    tree: Tree
    extra: float = 0.0


@dataclass(frozen=True, slots=True)
class Found:
    draft: Draft
    cost: float
    """By the estimates of the cluster."""
    plans: int


@dataclass(slots=True)
class Tally:
    plans: int = 0
    """Join orders times placements, of every search of the query."""
    flows: dict[int, float] = field(default_factory=dict)
    """Level -> total data rate on the edges of the trees chosen there, for the bound of Theorem 3. A source
    that is read without a choice counts at every level that had none."""


def join_orders(sources: int) -> int:
    """Linear and bushy ones, as the paper counts them: sequences of joins."""
    return factorial(sources) * factorial(sources - 1) // (1 << sources - 1)


def plans_of(sources: int, sites: int) -> int:
    """All join orders times all placements (Lemma 1). With a single source there is nothing to compare."""
    placements: int = sites ** (sources - 1)
    return 0 if sources < 2 else join_orders(sources) * placements


class Ground:
    """What all queries of a problem have in common: the hierarchy, and what is known of its clusters."""

    def __init__(self, problem: PlacementProblem, hierarchy: Hierarchy) -> None:
        self.problem, self.hierarchy, self.prepared = problem, hierarchy, hierarchy.prepared
        self._costs: dict[Cluster, Floats] = {}
        self._allowed: dict[Cluster, NDArray[np.bool_]] = {}

    def costs(self, cluster: Cluster) -> Floats:
        if cluster not in self._costs:
            self._costs[cluster] = self.prepared.between(cluster.members, cluster.members)
        return self._costs[cluster]

    def allowed(self, cluster: Cluster) -> NDArray[np.bool_]:
        """The members that may join, or have a site below them that may."""
        if cluster not in self._allowed:
            free = {cluster.member_of[site] for site in cluster.sites if site not in self.problem.forbidden}
            self._allowed[cluster] = np.array([member in free for member in cluster.members])
        return self._allowed[cluster]


class Views:
    """For one query."""

    def __init__(self, ground: Ground, query: Query, deployed: Deployed) -> None:
        self.ground, self.query = ground, query
        self.rates = by_subset(ground.problem, query)
        self.every = (1 << len(query.streams)) - 1
        self.tally = Tally()
        self.sources = self._leaves() + [
            Source(self.bits(leaf), leaf.site, leaf, leaf.extra)
            for leaf in (offer.as_leaf() for offer in deployed.offers(query))
            if leaf.site in ground.hierarchy.top.member_of
        ]

    def bits(self, tree: Tree) -> int:
        names = {tree.stream} if isinstance(tree, Leaf) else tree.streams
        return sum(1 << i for i, name in enumerate(self.query.streams) if name in names)

    def instantiate(
        self, cluster: Cluster, streams: int, given: Sequence[Source], local: Sequence[Source], target: Site
    ) -> Source:
        """A deployment of a view from `given` sources, wherever they are, and `local` ones, all below the
        cluster. Raises NoWay."""
        sources = [*given, *local]
        if len(sources) == 1:
            self._note_flows(range(2, cluster.level + 1), Read(0, streams))
            return sources[0]
        found = self.search(cluster, streams, given, local, target)
        self.tally.plans += found.plans
        self._note_flows([cluster.level], found.draft)
        if cluster.level == 1:
            return _as_source(found.draft, sources)
        return _Handing(self, cluster, sources, len(given)).down(found.draft, target)

    def search(
        self, cluster: Cluster, streams: int, given: Sequence[Source], local: Sequence[Source], target: Site
    ) -> Found:
        """The best draft over the members of one cluster. Raises NoWay."""
        places = [source.site for source in given] + [cluster.member_of[source.site] for source in local]
        prepared, end = self.ground.prepared, cluster.member_of.get(target, target)
        ways = prepared.between(places, [*cluster.members, end])
        inputs = [Input(one.streams, ways[i, :-1], one.extra) for i, one in enumerate([*given, *local])]
        allowed = self.ground.allowed(cluster)
        search = Search(cluster.members, self.ground.costs(cluster), allowed, self.rates, inputs)
        best = search.best(streams, ways[:, -1].tolist(), prepared.between(cluster.members, [end])[:, 0])
        if best is None:
            raise NoWay
        return Found(*best, plans_of(search.pieces(streams), int(allowed.sum())))

    def placed(self, found: Source, notes: dict[str, str]) -> Placed:
        """The answer, with its cost from the sites that were chosen, not from estimates."""
        cost = self._sent(found.tree, self.query.sink)
        for node in walk(found.tree):
            if isinstance(node, Reused):
                cost += node.extra
            elif isinstance(node, Join):
                cost += self._sent(node.left, node.site) + self._sent(node.right, node.site)
        return Placed(self.query.id, found.tree, cost, max(1, self.tally.plans), notes=notes)

    def _leaves(self) -> list[Source]:
        streams = self.ground.problem.streams
        leaves = [Leaf(name, streams[name].site) for name in self.query.streams]
        return [Source(self.bits(leaf), leaf.site, leaf) for leaf in leaves]

    def _sent(self, tree: Tree, to: Site) -> float:
        return float(self.rates[self.bits(tree)]) * self.ground.prepared.distance(tree.site, to)

    def _note_flows(self, levels: Iterable[int], draft: Draft) -> None:
        waiting, total = [draft], 0.0
        while waiting:
            one = waiting.pop()
            total += float(self.rates[one.streams])
            waiting += [one.left, one.right] if isinstance(one, Make) else []
        for level in levels:
            self.tally.flows[level] = self.tally.flows.get(level, 0.0) + total


def _as_source(draft: Draft, sources: Sequence[Source]) -> Source:
    """At level 1 a draft is a deployment."""
    if isinstance(draft, Read):
        return sources[draft.source]
    left, right = _as_source(draft.left, sources), _as_source(draft.right, sources)
    return Source(draft.streams, draft.member, Join(left.tree, right.tree, draft.member))


@dataclass(slots=True)
class _Handing:
    """From a draft of one cluster to the views of its members, inputs first: so a view is planned with its
    inputs where they really are, and only its reader still taken to be at its representative."""

    views: Views
    cluster: Cluster
    sources: list[Source]
    given: int
    """The first so many sources are from outside."""

    def down(self, draft: Draft, target: Site) -> Source:
        if isinstance(draft, Make):
            inside, outside = self._connected(draft)
            given = [self.down(one, draft.member) for one in outside]
            return self._view(draft.member, draft.streams, inside, given, target)
        member = self._below(draft)
        if member is None:
            return self.sources[draft.source]
        return self._view(member, draft.streams, draft.streams, [], target)

    def _view(self, member: Site, streams: int, inside: int, given: Sequence[Source], target: Site) -> Source:
        below = self.cluster.part(member)
        local = [
            source
            for source in self.sources[self.given :]
            if source.streams | inside == inside and source.site in below.member_of
        ]
        return self.views.instantiate(below, streams, given, local, target)

    def _connected(self, draft: Make) -> tuple[int, list[Draft]]:
        """The streams that a view reads below its own member, and what it reads from elsewhere."""
        inside, outside = 0, list[Draft]()
        for one in (draft.left, draft.right):
            if isinstance(one, Make) and one.member == draft.member:
                more, others = self._connected(one)
                inside, outside = inside | more, outside + others
            elif isinstance(one, Read) and self._below(one) == draft.member:
                inside |= one.streams
            else:
                outside.append(one)
        return inside, outside

    def _below(self, read: Read) -> Site | None:
        """The member below which a source lies; None: outside the cluster."""
        if read.source < self.given:
            return None
        return self.cluster.member_of[self.sources[read.source].site]
