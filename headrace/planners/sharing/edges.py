"""Exact edge rates: the density of a union of residue classes, without laying out the composite slide.

A query (range r, slide s) has edges at 0 mod s and at (r mod s) mod s. The edge rate of a set of queries is
the density of the union of these classes. We count the complement, the uncovered share of the integers:

- Independence. Moduli with no common prime are independent (Chinese remainders), so the shares of coprime
  components multiply. A component whose classes have one modulus m leaves 1 - n/m.
- Conditioning. Else some prime p divides two moduli. Cut the p-adic integers into cells, digit by digit,
  only where some class still depends on the digit; in a cell a class is ruled out, or loses (part of) its
  power of p. A power that only one class still depends on is never cut. With all residues 0 the cells are
  the p-adic valuations.

The work is counted in cells. Past `budget` the components that remain are bounded instead, so the answer is
an interval that holds the truth (see `_bounds` for the proofs); within the budget low == high. A cell's
share of what is left of the budget is its share of the integers, so that the width is spent where it weighs
least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from headrace.planners.sharing.primes import prime_powers

Window = tuple[int, int]
"""(range, slide), integers in one unit."""

ResidueClass = tuple[int, int]
"""(modulus, residue): all t with t mod modulus == residue."""

_Classes = tuple[ResidueClass, ...]
_Share = tuple[int, int, int]
"""(low, high, period): between low and high of the integers in one period are not covered."""

_MEMO_LIMIT = 1_000_000
_COUNTED_AS_ONE = 32
"""A cell of more classes than this counts as several, so that the budget bounds the time of large trees
too."""
_ONE = 1 << 80
_PAIRED = 16
"""With how many others a bound pairs each class: its cost must not grow with the square of the tree."""


@dataclass(frozen=True, slots=True)
class EdgeRate:
    """The edge rate lies in [low, high]; the two are equal unless the budget ran out."""

    low: Fraction
    high: Fraction

    @property
    def exact(self) -> bool:
        return self.low == self.high


def edge_rate(windows: Iterable[Window], *, budget: int = 100_000) -> EdgeRate:
    """The density of the edges of `windows`: edges per unit of time."""
    return EdgeCounter(budget=budget).rate(windows)


def edge_classes(windows: Iterable[Window]) -> set[ResidueClass]:
    """Where windows open and where they close."""
    return {c for r, s in windows for c in ((s, 0), (s, r % s))}


class EdgeCounter:
    """Edge rates with a memory shared over calls: a tree that grows by a query pays for what the query
    touches."""

    def __init__(self, *, budget: int = 100_000) -> None:
        self._budget = budget
        self._spent = 0
        self._generous = True
        self._parts: dict[_Classes, _Share] = {}
        self._unions: dict[frozenset[ResidueClass], EdgeRate] = {}

    def rate(self, windows: Iterable[Window]) -> EdgeRate:
        return self.union(edge_classes(windows))

    def added(self, windows: Iterable[Window], more: Iterable[Window]) -> EdgeRate:
        """The rate once `more` joins `windows`: components that `more` does not touch are remembered."""
        return self.union(edge_classes(windows) | edge_classes(more))

    def union(self, classes: Iterable[ResidueClass]) -> EdgeRate:
        """The density of the union of residue classes."""
        key = frozenset(classes)
        known = self._unions.get(key)
        if known is None:
            self._forget()
            known = self._unions[key] = self._counted(_without_subsumed(key))
        return known

    def _counted(self, classes: _Classes) -> EdgeRate:
        """First half the budget with generous shares, which settles most sets; then go again with fair ones.

        What was settled is remembered, so every pass has more left for the rest.
        """
        limit, low, high = self._spent + self._budget, Fraction(0), Fraction(1)
        self._generous, reach = True, self._spent + self._budget // 2
        while low < high:
            before = self._spent
            below, above, period = self._uncovered(classes, reach)
            low, high = max(low, 1 - Fraction(above, period)), min(high, 1 - Fraction(below, period))
            if not self._generous and self._spent - before <= self._budget // 20:
                break
            self._generous, reach = False, limit
        return EdgeRate(low, high)

    def _forget(self) -> None:
        if len(self._parts) + len(self._unions) > _MEMO_LIMIT:
            self._parts.clear()
            self._unions.clear()

    def _uncovered(self, classes: _Classes, limit: int) -> _Share:
        """The uncovered share of subsumption-free classes; may raise `_spent` up to about `limit`."""
        if classes and classes[0][0] == 1:
            return 0, 0, 1
        low = high = period = 1
        for part in _components(classes):
            below, above, length = self._part(part, limit)
            low, high, period = low * below, high * above, period * length
        return low, high, period

    def _part(self, part: _Classes, limit: int) -> _Share:
        first, last = part[0][0], part[-1][0]
        if first == last:
            return first - len(part), first - len(part), first
        if len(part) == 2:
            return _pair(*part)
        known = self._parts.get(part)
        if known is not None:
            return known
        if self._spent >= limit:
            return _bounds(part)
        share = self._conditioned(part, limit)
        if share[0] == share[1]:
            self._parts[part] = share
        return share

    def _conditioned(self, part: _Classes, limit: int) -> _Share:
        """Sum over the cells of one prime, the easy cells first: what they leave of the budget helps the
        others."""
        cells, total = _cells(part, _branching_prime(part))
        weight, low, high, period = sum(cells.values()), 0, 0, 1
        for live, mass in sorted(cells.items(), key=lambda cell: len(cell[0])):
            self._spent += 1 + len(live) // _COUNTED_AS_ONE
            fair = max(mass, weight // 4) if self._generous else mass
            allowance = max(0, limit - self._spent) * fair // weight
            below, above, length = self._uncovered(live, self._spent + allowance)
            weight -= mass
            common = lcm(period, length)
            low = low * (common // period) + mass * below * (common // length)
            high = high * (common // period) + mass * above * (common // length)
            period = common
        return low, high, period * total


def _without_subsumed(classes: Iterable[ResidueClass]) -> _Classes:
    """Ascending, without the classes that lie inside another."""
    kept: list[ResidueClass] = []
    for m, a in sorted(classes):
        if all(m % d or a % d != b for d, b in kept):
            kept.append((m, a))
    return tuple(kept)


def _components(classes: _Classes) -> list[_Classes]:
    """Split into parts whose moduli have no prime in common; each keeps its order."""
    parts: list[tuple[int, list[ResidueClass]]] = []
    for c in classes:
        product, members, apart = c[0], [c], []
        for part in parts:
            if gcd(part[0], c[0]) == 1:
                apart.append(part)
            else:
                product, members = lcm(product, part[0]), part[1] + members
        apart.append((product, members))
        parts = apart
    return [tuple(members) if len(members) < 3 else tuple(sorted(members)) for _, members in parts]


def _pair(one: ResidueClass, two: ResidueClass) -> _Share:
    (m, a), (n, b) = one, two
    common = gcd(m, n)
    period = m // common * n
    uncovered = period - period // m - period // n + ((a - b) % common == 0)
    return uncovered, uncovered, period


def _branching_prime(part: _Classes) -> int:
    """The prime that the most classes depend on: it frees or rules out the most at once (see the note)."""
    counts: Counter[int] = Counter()
    moduli: dict[int, int] = {}
    shared: set[int] = set()
    for m, _ in part:
        for p, _ in prime_powers(m):
            counts[p] += 1
            if moduli.setdefault(p, m) != m:
                shared.add(p)
    return max(shared, key=lambda p: (counts[p], p))


_Digit = tuple[int, int, ResidueClass]
"""A class with its power q of the prime and its residue mod q."""


def _cells(part: _Classes, p: int) -> tuple[dict[_Classes, int], int]:
    """The live classes of every cell of the prime p with the cell's mass, and the mass of all cells
    together."""
    free, bound, top = [], [], 1
    for c in part:
        power = p ** dict(prime_powers(c[0])).get(p, 0)
        if power == 1:
            free.append(c)
        else:
            bound.append((power, c[1] % power, c))
            top = max(top, power)
    cells: Counter[_Classes] = Counter()
    for mass, freed in _cut(p, 1, top, bound, []):
        live = _joined(free, freed)
        if not (live and live[0][0] == 1):
            cells[live] += mass
    return cells, top


def _cut(
    p: int, level: int, mass: int, open_: Sequence[_Digit], freed: list[ResidueClass]
) -> Iterator[tuple[int, list[ResidueClass]]]:
    """Cells below one node of the p-adic tree: the digits up to `level` = p^j are known, `open_` still
    depends."""
    power, residue, (modulus, _) = open_[0] if open_ else (level, 0, (1, 0))
    if all(d[0] == power and d[1] == residue for d in open_):
        # Any residue will do for a power that one modulus keeps for itself, so a mod (m / level) is as good
        # as any.
        if all(d[2][0] == modulus for d in open_) and level > 1:
            yield mass, freed + [(m // level, a % (m // level)) for _, _, (m, a) in open_]
            return
        inside = mass * level // power
        yield inside, freed + [(m // power, a % (m // power)) for _, _, (m, a) in open_]
        yield mass - inside, freed
        return
    deeper: dict[int, list[_Digit]] = {}
    for d in open_:
        deeper.setdefault(d[1] // level % p, []).append(d)
    below, finer = mass // p, level * p
    for digits in deeper.values():
        done = [(m // finer, a % (m // finer)) for q, _, (m, a) in digits if q == finer]
        yield from _cut(p, finer, below, [d for d in digits if d[0] > finer], freed + done)
    if len(deeper) < p:
        yield below * (p - len(deeper)), freed


def _joined(free: list[ResidueClass], freed: list[ResidueClass]) -> _Classes:
    """Both together, without subsumed classes; among `free` nothing is subsumed yet."""
    kept = free
    smaller = _without_subsumed(freed)
    for m, a in smaller:
        kept = [c for c in kept if c[0] % m or c[1] % m != a]
    fresh = [c for c in smaller if all(c[0] % m or c[1] % m != a for m, a in kept)]
    return tuple(sorted(kept + fresh))


def _bounds(part: _Classes) -> _Share:
    """An interval for the uncovered share of one component, at a price that hardly grows with it.

    From above: leaving classes out only uncovers more, and what is left is exact when the moduli kept are
    coprime. From below, residues all 0: "m does not divide t" is a decreasing event in the exponents of t's
    primes, which are independent, so by Harris' inequality such events are positively correlated and the
    share is at least the product of (1 - 1/m) (Heilbronn and Rohrbach). From below, any residues: P(A or B
    or ...) <= sum of P(A) - sum of P(A and B) over the edges of any forest on the events, because the
    events that hold at t span at most (their number - 1) of its edges (Hunter, Worsley). All in integers
    over 2^80, rounded outwards.
    """
    high = _ONE
    kept: dict[int, int] = {}
    for m, count in Counter(m for m, _ in part).items():
        if all(gcd(m, other) == 1 for other in kept):
            kept[m] = count
            high = -(-high * (m - count) // m)
    low = _ONE
    if any(a for _, a in part):
        low = max(0, _ONE + _forest(part) - sum(-(-_ONE // m) for m, _ in part))
    else:
        for m, _ in part:
            low = low * (m - 1) // m
    return low, high, _ONE


def _forest(part: _Classes) -> int:
    """The weight of a heavy forest of overlaps: every class hangs on the earlier class it overlaps most."""
    weight = 0
    for i, (m, a) in enumerate(part):
        overlaps = ((gcd(m, n), n, b) for n, b in part[: min(i, _PAIRED)])
        weight += max(
            (common * _ONE // (m * n) for common, n, b in overlaps if (a - b) % common == 0), default=0
        )
    return weight
