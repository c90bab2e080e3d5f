"""The relations of a query as bits, and what is between two sets of them: conditions, selectivity, unit
costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import prod

from headrace.plan.federated import Engine
from headrace.planners.federation.keys import KeyFactor
from headrace.planners.federation.problem import JoinEdge, Kind, Operator, Query

Relations = int
"""A set of relations: bit i is `query.relations[i]`."""
_Edge = tuple[Relations, Relations, int]
"""What it connects, and its place in `query.joins`."""


class JoinGraph:
    def __init__(self, query: Query) -> None:
        self._bit = {relation.name: 1 << i for i, relation in enumerate(query.relations)}
        self._joins = joins = query.joins
        edges = [(self._bit[edge.left], self._bit[edge.right], i) for i, edge in enumerate(joins)]
        self._plain = [edge for edge in edges if joins[edge[2]].key is None]
        keys = dict.fromkeys(edge.key for edge in joins if edge.key is not None)
        strictest = sorted(edges, key=lambda edge: joins[edge[2]].selectivity)
        self._keys = [[edge for edge in strictest if joins[edge[2]].key == key] for key in keys]
        self._factors = [KeyFactor([(a, b, joins[i].selectivity) for a, b, i in same]) for same in self._keys]
        self._bound = [edge for edge in edges if joins[edge[2]].engine is not None]
        self._made: dict[tuple[float, tuple[int, ...], tuple[int, ...], tuple[int, ...]], Operator] = {}
        self.all: Relations = (1 << len(query.relations)) - 1
        cross = query.cross
        self.cross = Operator("", Kind.JOIN, spark=(cross.spark,) * 2, duckdb=(cross.duckdb,) * 2)
        """A join without a condition. Joins have no names and no inputs yet."""

    def bits(self, names: Iterable[str]) -> Relations:
        found = 0
        for name in names:
            found |= self._bit[name]
        return found

    def between(self, left: Relations, right: Relations) -> Operator | None:
        """The join of two sets of relations; None: no condition is between them. Of several conditions, the
        dearest gives the unit costs: they are tested together on one pair of rows. A key counts once, by the
        strictest of its conditions that is between them; where it only follows from others, by its
        strictest, which says who tests it only where no condition of this join's own does."""
        crossing = [i for a, b, i in self._plain if _crosses(a, b, left, right)]
        implied: list[int] = []
        share = prod(self._joins[i].selectivity for i in crossing)
        for factor, edges in zip(self._factors, self._keys, strict=True):
            if factor.members & left and factor.members & right:
                own = next((i for a, b, i in edges if _crosses(a, b, left, right)), None)
                (implied if own is None else crossing).append(edges[0][2] if own is None else own)
                share *= factor.between(left, right)
        if not crossing and not implied:
            return None
        bound = [i for a, b, i in self._bound if _crosses(a, b, left, right)]
        found = share, tuple(crossing), tuple(implied), tuple(bound)
        if found not in self._made:
            # A condition that follows from others is tested where those of this join are.
            engine = self._engine(bound if crossing else implied)
            self._made[found] = _together(share, [self._joins[i] for i in (*crossing, *implied)], engine)
        return self._made[found]

    def clash(self, left: Relations, right: Relations) -> tuple[int, int] | None:
        """Two conditions between them, by their places, that must be tested on different engines: no join
        can do both."""
        found = [i for a, b, i in self._bound if _crosses(a, b, left, right)]
        other = (i for i in found if self._joins[i].engine is not self._joins[found[0]].engine)
        second = next(other, None)
        return None if second is None else (found[0], second)

    def _engine(self, edges: Iterable[int]) -> Engine | None:
        return next((one for i in edges if (one := self._joins[i].engine) is not None), None)

    @cached_property
    def pieces(self) -> tuple[Relations, ...]:
        """Sets of relations that conditions connect. Only these are ever combined by cross products, each
        as a whole."""
        found: list[Relations] = []
        for i in range(self.all.bit_length()):
            touching = [piece for piece in found if self.between(piece, 1 << i)]
            merged = 1 << i
            for piece in touching:
                merged |= piece
            found = [piece for piece in found if piece not in touching] + [merged]
        return tuple(found)

    def may_cross(self, left: Relations, right: Relations) -> bool:
        both = left | right
        return all(piece & both in (0, piece) and (piece & left in (0, piece)) for piece in self.pieces)


def halves(whole: Relations) -> Iterator[tuple[Relations, Relations]]:
    """Every way to cut a set in two, once: the lowest relation is on the left."""
    lowest = whole & -whole
    rest = whole ^ lowest
    right = rest
    while right:
        yield whole ^ right, right
        right = (right - 1) & rest


def _crosses(a: Relations, b: Relations, left: Relations, right: Relations) -> bool:
    return bool((a & left and b & right) or (a & right and b & left))


def _together(share: float, edges: Sequence[JoinEdge], engine: Engine | None) -> Operator:
    spark = max(edge.spark for edge in edges)
    duckdb = max((edge.duckdb for edge in edges), key=lambda cost: (cost.held, cost.arriving))
    return Operator(
        "", Kind.JOIN, left=share, right=share, spark=(spark,) * 2, duckdb=(duckdb,) * 2, engine=engine
    )
