"""The virtual hierarchy: sites in clusters, their coordinators in clusters again, up to a single one.

    level 1        clusters of sites, at most max_cs in each
    level i + 1    clusters of the coordinators of level i
    level h        one cluster

A site is known at level i by its representative there: itself at level 1, above it the coordinator of the
cluster that holds its representative one level below. Symbols of the paper: h = levels, d_i = the most a unit
of data pays between two members of one cluster of level i, c_est^l(a, b) = what it pays between the
representatives of a and b at level l.

Hierarchies do not change: a site that joins or leaves makes a new one, in which the clusters that it did not
touch are the same objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from headrace.errors import InternalError, UserError
from headrace.planners.placement.clusters import by_centrality, capped_groups, coordinates
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import Site


@dataclass(frozen=True, eq=False)
class Cluster:
    """At level 1 `members` are sites; above it they are the coordinators of `parts`, in the same order."""

    level: int
    members: tuple[Site, ...]
    coordinator: Site
    backup: Site | None
    """Knows all that the coordinator knows, and takes over when it fails. None: there is no other member."""
    parts: tuple[Cluster, ...] = ()

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        """All that lie below."""
        return tuple(sorted(self.member_of))

    @cached_property
    def member_of(self) -> Mapping[Site, Site]:
        """The representative, among the members, of every site below."""
        if not self.parts:
            return {site: site for site in self.members}
        return {site: part.coordinator for part in self.parts for site in part.member_of}

    def part(self, member: Site) -> Cluster:
        return self.parts[self.members.index(member)]

    def walk(self) -> Iterator[Cluster]:
        yield self
        for part in self.parts:
            yield from part.walk()


@dataclass(frozen=True, eq=False)
class Hierarchy:
    prepared: Prepared
    max_cs: int
    seed: int
    top: Cluster

    @property
    def height(self) -> int:
        return self.top.level

    @property
    def sites(self) -> tuple[Site, ...]:
        return self.top.sites

    def path(self, site: Site) -> list[Cluster]:
        """The clusters that hold a site, from level 1 up to the single one."""
        found = [self.top]
        while found[-1].parts:
            found.append(found[-1].part(found[-1].member_of[site]))
        return found[::-1]

    def clusters(self, level: int) -> list[Cluster]:
        return [cluster for cluster in self.top.walk() if cluster.level == level]

    def representative(self, site: Site, level: int) -> Site:
        return self.path(site)[level - 1].member_of[site]

    def estimate(self, a: Site, b: Site, level: int) -> float:
        """c_est^l(a, b)."""
        return self.prepared.distance(self.representative(a, level), self.representative(b, level))

    @cached_property
    def spreads(self) -> tuple[float, ...]:
        """d_1 to d_h."""
        most = [0.0] * self.height
        for cluster in self.top.walk():
            costs = self.prepared.between(cluster.members, cluster.members)
            most[cluster.level - 1] = max(most[cluster.level - 1], float(costs.max()))
        return tuple(most)

    def joined(self, site: Site) -> Hierarchy:
        """The request goes to the top, then down to the nearest member of each cluster. A cluster that grows
        above max_cs is parted, which adds a member one level up."""
        if site in self.top.member_of:
            raise InternalError(f"placement: site {site} is in the hierarchy already")
        tops = self._with(self.top, site)
        if len(tops) > 1:
            tops = [_cluster(self.prepared, self.top.level + 1, tops)]
        return replace(self, top=tops[0])

    def left(self, site: Site) -> Hierarchy:
        """A site leaves or fails. Where it was the coordinator the backup takes over, and stands for the
        cluster one level up; a cluster without members is gone."""
        top = self._without(self.top, site)
        if top is None:
            raise UserError("the last site cannot leave the hierarchy")
        while len(top.parts) == 1:
            top = top.parts[0]
        return replace(self, top=top)

    def _with(self, cluster: Cluster, site: Site) -> list[Cluster]:
        if not cluster.parts:
            return self._parted(1, [*cluster.members, site], cluster.coordinator)
        nearest = self._nearest(cluster.members, site)
        changed = self._with(cluster.part(nearest), site)
        parts = [part for part in cluster.parts if part.coordinator != nearest] + changed
        return self._parted(cluster.level, parts, cluster.coordinator)

    def _nearest(self, members: Sequence[Site], site: Site) -> Site:
        ways = self.prepared.between(members, [site])[:, 0] + self.prepared.between([site], members)[0]
        return members[int(ways.argmin())]

    def _parted(self, level: int, inside: Sequence[Site | Cluster], coordinator: Site) -> list[Cluster]:
        """One cluster, or as many as it takes to have no more than max_cs members in any. The coordinator
        goes on where it is a member: only the clusters that are new need one."""
        if len(inside) <= self.max_cs:
            return [_cluster(self.prepared, level, inside, keep=coordinator)]
        rng = np.random.default_rng(self.seed)
        points = coordinates(self.prepared, [_name(one) for one in inside], rng)
        groups = capped_groups(points, self.max_cs, rng)
        return [_cluster(self.prepared, level, [inside[i] for i in g], keep=coordinator) for g in groups]

    def _without(self, cluster: Cluster, site: Site) -> Cluster | None:
        inside: list[Site | Cluster]
        if not cluster.parts:
            inside = [member for member in cluster.members if member != site]
        else:
            standing = cluster.member_of[site]
            changed = self._without(cluster.part(standing), site)
            inside = [part for part in cluster.parts if part.coordinator != standing]
            inside += [] if changed is None else [changed]
        if not inside:
            return None
        names = [_name(one) for one in inside]
        heir = cluster.coordinator if cluster.coordinator in names else cluster.backup
        return _cluster(self.prepared, cluster.level, inside, keep=heir)


def build(prepared: Prepared, max_cs: int, seed: int = 0, sites: Sequence[Site] | None = None) -> Hierarchy:
    """Of all sites of the network, or of some of them."""
    if max_cs < 2:
        raise UserError(
            f"a cluster of at most {max_cs} sites makes no hierarchy", hint="max_cs is 2 or more."
        )
    inside: list[Site | Cluster] = list(range(prepared.size) if sites is None else sorted(sites))
    rng = np.random.default_rng(seed)
    level = 1
    while len(inside) > max_cs:
        points = coordinates(prepared, [_name(one) for one in inside], rng)
        groups = capped_groups(points, max_cs, rng)
        inside = [_cluster(prepared, level, [inside[i] for i in group]) for group in groups]
        level += 1
    return Hierarchy(prepared, max_cs, seed, _cluster(prepared, level, inside))


def _cluster(
    prepared: Prepared, level: int, inside: Sequence[Site | Cluster], keep: Site | None = None
) -> Cluster:
    """The medoid coordinates, or who did so before; the next best site is the backup."""
    ordered = sorted(inside, key=_name)
    members = tuple(_name(one) for one in ordered)
    best = by_centrality(prepared, members)
    coordinator = keep if keep is not None and keep in members else best[0]
    backup = next((site for site in best if site != coordinator), None)
    parts = tuple(one for one in ordered if isinstance(one, Cluster))
    return Cluster(level, members, coordinator, backup, parts)


def _name(one: Site | Cluster) -> Site:
    return one.coordinator if isinstance(one, Cluster) else one
