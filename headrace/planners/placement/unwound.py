"""Between the graph of a search and deployments of one query after another, both ways.

Whoever comes first makes an operator, everybody after reads it; the order is the problem's, except that a
result read at a sink must have come there before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.ground import Ground, Node
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.pool import Input, Pool
from headrace.planners.placement.problem import Join, Leaf, Reused, Site, Tree, streams_of


def unwound(pool: Pool, prepared: Prepared) -> list[tuple[str, Tree]]:
    """The trees in an order of deployment."""
    queries = pool.ground.problem.queries
    unwinding = _Unwinding(pool, Deployed(pool.ground.problem, prepared.distance))
    return [(queries[query].id, unwinding.tree(query)) for query in order(pool)]


def wound(ground: Ground, trees: Sequence[tuple[str, Tree]]) -> Pool:
    """The graph of what runs, from trees in the order of deployment. Of queries that are gone only what
    others read is left. Queries that can run no longer as they did, because a path is gone or a site is
    forbidden now, are left out, with those that read from them."""
    pool = Pool(ground)
    index = {query.id: i for i, query in enumerate(ground.problem.queries)}
    winding = _Winding(pool)
    for name, tree in trees:
        if streams_of(tree) <= ground.problem.streams.keys():
            winding.add(name, index.get(name), tree)
    pool.sweep()
    return pool


@dataclass
class _Winding:
    pool: Pool
    known: dict[tuple[int, Site, str], int] = field(default_factory=dict)
    """(mask, site, who made it) -> operator"""

    def add(self, name: str, query: int | None, tree: Tree) -> None:
        """`query` None: it is gone."""
        ground = self.pool.ground
        node = self._node(tree)
        if node is None:
            return
        if query is None:
            made = self.pool.opened(node)
        elif np.isfinite(ground.distance[node.site, ground.sinks[query]]):
            made = self.pool.below(self.pool.add(query, node))
        else:
            return
        for number in made:
            one = self.pool.operators[number]
            if one.query < 0 or ground.problem.sinks:
                self.known.setdefault((one.mask, ground.sites[one.site], name), number)

    def _node(self, tree: Tree) -> Node | None:
        """None: it cannot run any more."""
        ground = self.pool.ground
        mask = ground.mask(streams_of(tree))
        site = ground.position[tree.site]
        if isinstance(tree, Leaf):
            return Node(mask, site)
        if isinstance(tree, Reused):
            number = self.known.get((mask, tree.site, tree.query))
            return None if number is None else Node(mask, site, number)
        left, right = self._node(tree.left), self._node(tree.right)
        if left is None or right is None or not ground.allowed[site]:
            return None
        if not np.isfinite(ground.distance[[left.site, right.site], site]).all():
            return None
        first, second = (left, right) if left.mask & mask & -mask else (right, left)
        return Node(mask, site, -1, first, second)


def order(pool: Pool) -> list[int]:
    """The queries as given, but those whose results others read at their sinks before these."""
    found: dict[int, None] = {}

    def visit(number: int) -> None:
        one = pool.operators[number]
        for _, _, source in one.inputs:
            if source >= 0:
                visit(source)
        if one.query >= 0:
            found[one.query] = None

    for query in sorted(pool.ways):
        if query not in found:
            visit(pool.ways[query])
    return list(found)


@dataclass
class _Unwinding:
    pool: Pool
    deployed: Deployed
    known: dict[int, int] = field(default_factory=dict)
    """Operator -> its number in the table of advertisements."""

    def tree(self, query: int) -> Tree:
        way = self.pool.ways[query]
        wanted = self.pool.ground.problem.queries[query]
        tree = self._node(query, self.pool.operators[way].inputs[0])
        before = set(self.deployed.derived)
        self.deployed.add(wanted, tree)
        advertised = {
            (one.streams, one.site, one.at_sink): number
            for number, one in self.deployed.derived.items()
            if number not in before
        }
        self._note(way, advertised)
        return tree

    def _note(self, number: int, advertised: dict[tuple[frozenset[str], int, bool], int]) -> None:
        """Remember under which numbers the operators of a new tree are advertised."""
        ground, one = self.pool.ground, self.pool.operators[number]
        key = (frozenset(ground.streams(one.mask)), ground.sites[one.site], one.query >= 0)
        if number not in self.known and key in advertised:
            self.known[number] = advertised[key]
        for _, _, source in one.inputs:
            if source >= 0 and source not in self.known:
                self._note(source, advertised)

    def _node(self, query: int, source: Input) -> Tree:
        ground, (mask, site, number) = self.pool.ground, source
        if number < 0:
            return Leaf(ground.streams(mask)[0], ground.sites[site])
        if number in self.known:
            return self._reused(query, self.known[number])
        left, right = self.pool.operators[number].inputs
        return Join(self._node(query, left), self._node(query, right), ground.sites[site])

    def _reused(self, query: int, number: int) -> Reused:
        """With what it adds upstream, if the table offers just this one; it offers the cheapest of equals."""
        one = self.deployed.derived[number]
        offers = self.deployed.offers(self.pool.ground.problem.queries[query]) if self.pool.ground.cut else []
        extra = next((offer.extra for offer in offers if offer.number == number), 0.0)
        return Reused(number, one.query, one.streams, one.site, extra)
