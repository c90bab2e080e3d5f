"""Plans like those of the paper's experiments (Sections 4.4 and 5.2), drawn at random within its figures.

    Query Plan 1    5 operators, depth  5, breadth  1: one stream, single-stream operators
    Query Plan 2   20 operators, depth  9, breadth  6: 6 streams, 5 joins
    Query Plan 3   40 operators, depth 14, breadth  8: 8 streams, 7 joins
    Query Plan 4   80 operators, depth 14, breadth 16: two results, so twice Query Plan 3

Breadth is read as the number of leaves, each on a stream of its own: a binary tree with b leaves has b - 1
joins, and the paper gives Query Plan 2 its 6 and 5. Depth is the number of operators on the longest path.
(The paper has 13 streams at most in Section 4.4 and 16 in 5.2.2; and Query Plan 1 is five joins in 5.2.3:
`joins_in_a_row`.)

Costs are Equations 1 to 3, a stream gives 72,000 rows in 30 minutes, a join gives twice what it reads, any
other operator all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream

STREAM_RATE = 72_000 / 1800
JOIN_SELECTIVITY = 2.0
ROW_BYTES = 100.0


@dataclass(frozen=True, slots=True)
class Shape:
    operators: int
    depth: int
    breadth: int
    copies: int = 1


SHAPES = {5: Shape(5, 5, 1), 20: Shape(20, 9, 6), 40: Shape(40, 14, 8), 80: Shape(40, 14, 8, copies=2)}
"""By the number of operators."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Seconds of cpu: omega to take or give a row, rho to look at one, psi to see whether a kept row is out
    of the window, once a second; `pair` is rho where a join looks at a pair, small since it finds pairs by
    hash."""

    omega: float = 1e-5
    rho: float = 1e-5
    psi: float = 1e-7
    pair: float = 1e-8
    window: float = 10.0


def sites(count: int) -> tuple[Site, ...]:
    return tuple(Site(f"s{i + 1}") for i in range(count))


def paper_plan(operators: int, site_count: int, rng: Random, unit: Unit | None = None) -> Problem:
    """One of the four plans. Raises KeyError for any other number of operators."""
    return fleet(1, operators, site_count, rng, unit)


def fleet(queries: int, operators: int, site_count: int, rng: Random, unit: Unit | None = None) -> Problem:
    """Many queries of one of these sizes together: more than the paper had."""
    shape = SHAPES[operators]
    growing = _Growing(unit or Unit())
    for number in range(queries * shape.copies):
        growing.tree(_drawn(shape, rng), f"q{number + 1}")
    return growing.problem(site_count)


def joins_in_a_row(count: int, site_count: int, unit: Unit | None = None) -> Problem:
    """Each join reads the one before it and a stream more."""
    tree: _Node = _Node([])
    for _ in range(count):
        tree = _Node([tree, _Node([])])
    growing = _Growing(unit or Unit())
    growing.tree(tree, "q1")
    return growing.problem(site_count)


@dataclass(slots=True, eq=False)
class _Node:
    """A stream, or a join of two; `chain` single-stream operators stand on it."""

    inputs: list[_Node]
    chain: int = 0


def _drawn(shape: Shape, rng: Random) -> _Node:
    """Join trees are drawn until one can have the depth."""
    while True:
        nodes = [_Node([]) for _ in range(shape.breadth)]
        every = list(nodes)
        while len(nodes) > 1:
            pair = [nodes.pop(rng.randrange(len(nodes))) for _ in range(2)]
            nodes.append(_Node(pair))
            every.append(nodes[-1])
        if _stretch(nodes[0], every, shape, rng):
            return nodes[0]


def _stretch(root: _Node, every: list[_Node], shape: Shape, rng: Random) -> bool:
    """Put single-stream operators on the edges, so that the longest path has the depth asked for."""
    left = shape.operators - (shape.breadth - 1)
    for node in every:
        if not node.inputs:
            node.chain, left = 1, left - 1
    while left > 0:
        open_ = [node for node in every if _depth_with(root, node) <= shape.depth]
        if not open_:
            return False
        rng.choice(open_).chain += 1
        left -= 1
    return left == 0 and _depth(root) == shape.depth


def _depth(node: _Node) -> int:
    return node.chain + (1 + max(map(_depth, node.inputs)) if node.inputs else 0)


def _depth_with(root: _Node, node: _Node) -> int:
    """The depth if the node had one operator more on it."""
    node.chain += 1
    found = _depth(root)
    node.chain -= 1
    return found


class _Growing:
    """Operators in post-order, with their costs."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._operators: list[Operator] = []
        self._streams: list[Stream] = []
        self._queries: list[Query] = []

    def tree(self, root: _Node, query: str) -> None:
        name, _ = self._node(root)
        self._queries.append(Query(query, (name,)))

    def problem(self, site_count: int) -> Problem:
        return Problem(sites(site_count), tuple(self._operators), tuple(self._queries), tuple(self._streams))

    def _node(self, node: _Node) -> tuple[str, float]:
        below = [self._node(one) for one in node.inputs]
        name, rate = self._join(below) if below else self._stream()
        for _ in range(node.chain):
            name, rate = self._single(name, rate)
        return name, rate

    def _stream(self) -> tuple[str, float]:
        self._streams.append(Stream(f"stream{len(self._streams) + 1}", STREAM_RATE))
        return self._streams[-1].id, STREAM_RATE

    def _single(self, below: str, n: float) -> tuple[str, float]:
        unit = self._unit
        cpu = n * (unit.omega + unit.rho) + n * unit.omega
        return self._add("select", (below,), cpu, n, 0.0)

    def _join(self, below: list[tuple[str, float]]) -> tuple[str, float]:
        unit, (n1, n2) = self._unit, (rate for _, rate in below)
        s1, s2, given = n1 * unit.window, n2 * unit.window, JOIN_SELECTIVITY * (n1 + n2)
        pairs = n1 * s2 + n2 * s1
        cpu = (n1 + n2 + given) * unit.omega + unit.psi * (s1 + s2) + unit.pair * pairs
        return self._add("join", tuple(name for name, _ in below), cpu, given, (s1 + s2) * ROW_BYTES)

    def _add(
        self, kind: str, inputs: tuple[str, ...], cpu: float, rate: float, state: float
    ) -> tuple[str, float]:
        self._operators.append(Operator(f"o{len(self._operators) + 1}", inputs, cpu, rate, state, kind))
        return self._operators[-1].id, rate
