"""Oracles: slow, plain, and sharing no code with what they check.

Edge rates by a bit set over one composite slide and by inclusion-exclusion; fragments and final operations
by walking a time line; costs of whole plans from these; the best plans of small problems by trying all of
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import gcd, lcm

import numpy as np
from numpy.typing import NDArray

from headrace.errors import UserError
from headrace.planners.sharing.problem import Assignment, SharingProblem

LARGEST_COMPOSITE_SLIDE = 20_000_000
LARGEST_PROBLEM = 9

_Window = tuple[int, int]
_Terms = dict[tuple[int, int], int]
"""Signed residue classes {(modulus, residue): coefficient} whose sum is 1 on every edge and 0 elsewhere."""


def composite_slide(windows: Iterable[_Window]) -> int:
    return lcm(*(slide for _, slide in windows))


def edge_bits(windows: Sequence[_Window], length: int) -> NDArray[np.bool_]:
    """One flag for each instant in [0, length): does some window open or close there?"""
    bits = np.zeros(length, dtype=np.bool_)
    for reach, slide in windows:
        bits[::slide] = True
        bits[reach % slide :: slide] = True
    return bits


def bitset_edge_rate(windows: Sequence[_Window]) -> Fraction:
    """The paper's Bit Set technique: mark all edges of one composite slide and count them."""
    length = composite_slide(windows)
    if length > LARGEST_COMPOSITE_SLIDE:
        raise UserError(f"a bit set of {length} instants is too large", hint="Use inclusion_exclusion.")
    return Fraction(int(np.count_nonzero(edge_bits(windows, length))), length)


def inclusion_exclusion(windows: Sequence[_Window]) -> Fraction:
    """The edge rate as a signed sum over the intersections of edge classes."""
    return sum((Fraction(sign, modulus) for (modulus, _), sign in _terms(windows).items()), Fraction(0))


def _terms(windows: Sequence[_Window]) -> _Terms:
    """1 - product over classes of (1 - class), multiplied out; equal intersections are added up on the
    way."""
    complement: _Terms = {(1, 0): 1}
    for c in sorted({(s, a) for r, s in windows for a in (0, r % s)}):
        for term, sign in list(complement.items()):
            both = _intersection(c, term)
            if both is not None:
                complement[both] = complement.get(both, 0) - sign
        complement = {term: sign for term, sign in complement.items() if sign}
    union = {term: -sign for term, sign in complement.items()}
    union[1, 0] = union.get((1, 0), 0) + 1
    return union


def _intersection(one: tuple[int, int], two: tuple[int, int]) -> tuple[int, int] | None:
    """The class of the numbers in both classes, or None when there are none."""
    (m, a), (n, b) = one, two
    common = gcd(m, n)
    if (b - a) % common:
        return None
    steps = (b - a) // common * pow(m // common, -1, n // common)
    return m // common * n, (a + m * steps) % (m // common * n)


@dataclass(frozen=True, slots=True)
class Fragments:
    """What a walk over [0, horizon) found."""

    edges: tuple[int, ...]
    windows: int
    whole: bool
    """Every window that lies inside the horizon is a union of whole fragments."""
    needed: bool
    """Without any one of the edges some window would no longer be such a union."""


def simulated_fragments(windows: Sequence[_Window], horizon: int) -> Fragments:
    """Cut time at every edge, then try every window. The horizon itself counts as no edge."""
    edges = np.flatnonzero(edge_bits(windows, horizon)).tolist()
    spans = [(t, t + r) for r, s in windows for t in range(0, horizon - r, s)]
    fragments = list(pairwise(edges))
    whole = all(_filled(span, fragments) for span in spans)
    # A cut is needed when it is the end of a window: without it a fragment sticks out there. Windows that
    # open
    # before 0 or close after the horizon are not seen, so only the cuts further in are asked.
    longest, ends = max(r for r, _ in windows), {t for span in spans for t in span}
    inner = {t for t in edges if longest <= t < horizon - longest}
    return Fragments(tuple(edges), len(spans), whole, inner <= ends)


def _filled(span: tuple[int, int], fragments: Iterable[tuple[int, int]]) -> bool:
    """Do the fragments that lie inside the span make up all of it?"""
    opens, closes = span
    return sum(end - start for start, end in fragments if opens <= start and end <= closes) == closes - opens


def simulated_operations(windows: Sequence[_Window]) -> Fraction:
    """Final operations a unit of time: count the fragments inside every window that opens in one composite
    slide."""
    length = composite_slide(windows)
    if length > LARGEST_COMPOSITE_SLIDE:
        raise UserError(f"a walk over {length} instants is too long", hint="Use counted_operations.")
    before = np.concatenate(([0], np.cumsum(edge_bits(windows, length))))
    operations = 0
    for reach, slide in windows:
        opens = np.arange(0, length, slide)
        laps, ends = np.divmod(opens + reach, length)
        operations += int(np.sum(laps * before[-1] + before[ends] - before[opens]))
    return Fraction(operations, length)


def counted_operations(windows: Sequence[_Window]) -> Fraction:
    """The same by inclusion-exclusion, for composite slides that cannot be walked."""
    terms = _terms(windows)
    rate = sum((Fraction(sign, m) for (m, _), sign in terms.items()), Fraction(0))
    return sum((r // s * rate + _in_head(terms, s, r % s) for r, s in windows), Fraction(0))


def _in_head(terms: _Terms, slide: int, offset: int) -> Fraction:
    """The density of the edges t with t mod slide < offset: term by term, the residues that agree with it."""
    found = Fraction(0)
    for (modulus, residue), sign in terms.items():
        common = gcd(modulus, slide)
        hits = len(range(residue % common, offset, common))
        found += Fraction(sign * hits, modulus // common * slide)
    return found


def tree_cost(problem: SharingProblem, tree: Sequence[int]) -> float:
    """rate + E * Omega, or rate + the true number of final operations."""
    windows = [(problem.queries[i].range, problem.queries[i].slide) for i in tree]
    walkable = composite_slide(windows) <= LARGEST_COMPOSITE_SLIDE // 200
    if problem.cost == "true":
        operations = simulated_operations(windows) if walkable else counted_operations(windows)
    else:
        rate = bitset_edge_rate(windows) if walkable else inclusion_exclusion(windows)
        operations = rate * sum((Fraction(r, s) for r, s in windows), Fraction(0))
    return problem.rate + float(operations)


def plan_costs(problem: SharingProblem, assignment: Assignment) -> tuple[float, tuple[float, ...]]:
    """The total and the nodes' costs of a plan; refuses what is not a plan of this problem."""
    placed = sorted(i for trees in assignment for tree in trees for i in tree)
    if placed != list(range(len(problem.queries))) or len(assignment) != problem.nodes:
        raise UserError("not a plan of this problem: every query belongs in exactly one tree of one node")
    nodes = tuple(sum(tree_cost(problem, tree) for tree in trees) for trees in assignment)
    return sum(nodes), nodes


@dataclass(frozen=True, slots=True)
class Optimum:
    total: float
    max_load: float
    front: tuple[tuple[float, float], ...]
    """(total, max load) of the plans that no plan beats on both, by ascending total."""


def optimum(problem: SharingProblem) -> Optimum:
    """The exact best plans, by all set partitions and all ways to lay their trees on nodes.

    Partitions come by ascending total, so a partition matters only if it reaches a lower max load than all
    before it; most are ruled out because their total, or their dearest tree, is already too much. Queries
    are never merged first: splitting equal queries can lower the max load.
    """
    count = len(problem.queries)
    if count > LARGEST_PROBLEM:
        raise UserError(
            f"{count} queries are too many to try all plans of", hint=f"At most {LARGEST_PROBLEM}."
        )
    costs = {m: tree_cost(problem, [i for i in range(count) if m >> i & 1]) for m in range(1, 1 << count)}
    partitions = [sorted((costs[m] for m in p), reverse=True) for p in _partitions((1 << count) - 1)]
    front: list[tuple[float, float]] = []
    for trees in sorted(partitions, key=sum):
        best = front[-1][1] if front else float("inf")
        load = _lightest(trees, problem.capacities, best)
        if load < best * (1 - 1e-12):
            if front and sum(trees) <= front[-1][0] * (1 + 1e-12):
                front.pop()
            front.append((sum(trees), load))
    return Optimum(front[0][0], front[-1][1], tuple(front))


def _partitions(mask: int) -> Iterator[list[int]]:
    """All set partitions of the bits of `mask`: the block of its highest bit, then the rest."""
    if not mask:
        yield []
        return
    top = 1 << mask.bit_length() - 1
    others = rest = mask ^ top
    while True:
        for blocks in _partitions(rest):
            yield [top | others ^ rest, *blocks]
        if not rest:
            return
        rest = rest - 1 & others


def _lightest(trees: Sequence[float], capacities: Sequence[float], enough: float) -> float:
    """The lowest max load over all ways to lay the trees on the nodes, or inf when it is not below
    `enough`."""
    if max(sum(trees) / sum(capacities), trees[0] / max(capacities)) >= enough:
        return float("inf")
    return min(
        _max_load(trees, nodes, capacities) for nodes in product(range(len(capacities)), repeat=len(trees))
    )


def _max_load(trees: Sequence[float], nodes: Sequence[int], capacities: Sequence[float]) -> float:
    costs = [0.0] * len(capacities)
    for cost, node in zip(trees, nodes, strict=True):
        costs[node] += cost
    return max(cost / capacity for cost, capacity in zip(costs, capacities, strict=True))
