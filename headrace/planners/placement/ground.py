"""What planning all queries together needs to know and never changes: rates, distances, wishes.

Sets of streams are bit masks over the problem's streams; sites are positions in `Ground.sites`, the sites
that joins may be put on here. On a small network these are all of it.

An operator may also cost something besides its inputs: what it takes to open it (`Opening`). That is how
replanning makes operators that would have to move pay for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from headrace.errors import UserError
from headrace.planners.placement.jit import Flags, Floats, Ints
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import PlacementProblem, Site
from headrace.planners.placement.rates import Held, data_rate, together, wanted
from headrace.planners.placement.subsets_kernels import cheapest, splits

Wish = int
"""What is wanted of each stream of a mask: a number for a tuple of `Held`, lowest bit first, since they are
compared and looked up all the time. Without cuts all are WHOLE."""
WHOLE = 0
Opening = Callable[[int, int, Site], float]
"""What it costs to run a join of this mask, with this part of it on one side, at this site."""

MOST_SITES = 1200
"""Up to so many sites all of them are looked at; beyond, those of streams and sinks, and others named."""


@dataclass(frozen=True)
class Local:
    """The subsets of one mask, numbered by the bits of the mask, lowest first."""

    masks: tuple[int, ...]
    """Subset -> global mask; the empty set first."""
    index: Mapping[int, int]
    """And back."""
    rate: Floats
    base: Ints
    whole: Floats
    """A share of 1 for each subset."""
    opening: Floats


@dataclass(frozen=True)
class Node:
    """A plan for a mask: an operator that runs (`number` >= 0), a base stream, or a join to be made."""

    mask: int
    site: int
    number: int = -1
    left: Node | None = None
    right: Node | None = None


class Ground:
    def __init__(
        self,
        problem: PlacementProblem,
        prepared: Prepared,
        more: Iterable[Site] = (),
        opening: Opening | None = None,
        most: int = MOST_SITES,
    ) -> None:
        self.problem = problem
        self.sites = _candidates(problem, prepared, more, most)
        self.position = {site: i for i, site in enumerate(self.sites)}
        self.distance: Floats = np.ascontiguousarray(prepared.between(self.sites, self.sites))
        self.allowed: Flags = np.array([site not in problem.forbidden for site in self.sites])
        self.names = tuple(problem.streams)
        self._bit = {name: i for i, name in enumerate(self.names)}
        self.cut = bool(problem.filters) or any(query.widths for query in problem.queries)
        """Whether some query wants less than whole streams: what an edge carries depends on its readers."""
        self._held: list[tuple[Held, ...]] = [()]
        self._number: dict[tuple[Held, ...], Wish] = {(): WHOLE}
        self._parts: dict[tuple[int, Wish, int], Wish] = {}
        self._unions: dict[tuple[int, frozenset[tuple[int, Wish]]], Wish] = {}
        self.masks = [self.mask(query.streams) for query in problem.queries]
        self.sinks = [self.position[query.sink] for query in problem.queries]
        self.wishes = [self._wish(i) for i in range(len(problem.queries))]
        self._opening = opening
        self._locals: dict[tuple[int, Wish], Local] = {}
        self._rates: dict[tuple[int, Wish], float] = {}
        asked = zip(self.masks, self.wishes, self.sinks, strict=True)
        self.outs = [self.out(self.rate(mask, wish), sink) for mask, wish, sink in asked]
        """Query -> what its result costs to its sink, by site."""

    def mask(self, names: Iterable[str]) -> int:
        return sum(1 << self._bit[name] for name in names)

    def streams(self, mask: int) -> list[str]:
        return [name for i, name in enumerate(self.names) if mask >> i & 1]

    def rate(self, mask: int, wish: Wish) -> float:
        """Data rate of a mask, of which so much is wanted."""
        found = self._rates.get((mask, wish))
        if found is None:
            names = self.streams(mask)
            whole = {name: Held(None, self.problem.streams[name].width) for name in names}
            holding = dict(zip(names, self._held[wish], strict=True)) if self.cut else whole
            found = self._rates[mask, wish] = data_rate(self.problem, holding, names)
        return found

    def out(self, rate: float, site: int) -> Floats:
        """What a rate costs to a site, from every one; no path stays no path even for nothing."""
        distance = self.distance[:, site]
        found: Floats = np.where(np.isfinite(distance), rate * distance, np.inf)
        return found

    def part(self, mask: int, wish: Wish, of: int) -> Wish:
        """The wish for a subset, out of the wish for the whole mask."""
        if not self.cut or mask == of:
            return wish
        found = self._parts.get((mask, wish, of))
        if found is None:
            bits = [i for i in range(mask.bit_length()) if mask >> i & 1]
            held = tuple(one for i, one in zip(bits, self._held[wish], strict=True) if of >> i & 1)
            found = self._parts[mask, wish, of] = self._numbered(held)
        return found

    def union(self, mask: int, wishes: Iterable[tuple[int, Wish]]) -> Wish:
        """The least that serves them all, for a mask that each of them has."""
        if not self.cut:
            return WHOLE
        key = (mask, frozenset(wishes))
        found = self._unions.get(key)
        if found is None:
            each = [self._held[self.part(whole, wish, mask)] for whole, wish in key[1]]
            held = tuple(together(self.problem, one) for one in zip(*each, strict=True))
            found = self._unions[key] = self._numbered(held)
        return found

    def _numbered(self, held: tuple[Held, ...]) -> Wish:
        if held not in self._number:
            self._number[held] = len(self._held)
            self._held.append(held)
        return self._number[held]

    def opened(self, mask: int, part: int, site: int) -> float:
        return 0.0 if self._opening is None else self._opening(mask, part, self.sites[site])

    def local(self, mask: int, wish: Wish) -> Local:
        found = self._locals.get((mask, wish))
        if found is None:
            found = self._locals[mask, wish] = self._made_local(mask, wish)
        return found

    def plan(
        self,
        mask: int,
        wish: Wish,
        offered: Iterable[tuple[int, int, int, float]],
        out: Floats,
        share: Floats | None = None,
    ) -> Node:
        """The cheapest way to make a mask where sending it on costs `out` by site. Offers are (number, mask,
        site, cost)."""
        here = self.local(mask, wish)
        costs = np.full((len(here.masks), len(self.sites)), np.inf)
        numbers: dict[tuple[int, int], int] = {}
        for number, one, site, cost in offered:
            i = here.index[one]
            if cost < costs[i, site]:
                costs[i, site] = cost
                numbers[i, site] = number
        weights = here.whole if share is None else share
        made, split, source = cheapest(
            here.rate, here.base, self.distance, self.allowed, costs, weights, here.opening
        )
        total = made[-1] + out
        best = int(np.argmin(total))
        if not total[best] < np.inf:
            raise self._nowhere(mask, here, out)

        def node(subset: int, site: int) -> Node:
            part = int(split[subset, site])
            if part == 0:
                return Node(here.masks[subset], site, numbers.get((subset, site), -1))
            rest = subset ^ part
            left = node(part, int(source[part, site]))
            return Node(here.masks[subset], site, -1, left, node(rest, int(source[rest, site])))

        return node(len(here.masks) - 1, best)

    def _nowhere(self, mask: int, here: Local, out: Floats) -> UserError:
        names = self.streams(mask)
        ends = np.isfinite(out)
        lost = [
            n
            for n, at in zip(names, here.base, strict=True)
            if not np.isfinite(self.distance[at][ends]).any()
        ]
        if lost:
            return UserError(f"stream {lost[0]} cannot reach the sink of {', '.join(names)}")
        return UserError(
            f"{', '.join(names)} cannot be joined on the way to the sink",
            hint="Every site that all of them reach is forbidden, or there is none.",
        )

    def _wish(self, query: int) -> Wish:
        if not self.cut:
            return WHOLE
        held = wanted(self.problem, self.problem.queries[query])
        return self._numbered(tuple(held[name] for name in self.streams(self.masks[query])))

    def _made_local(self, mask: int, wish: Wish) -> Local:
        bits = [i for i in range(mask.bit_length()) if mask >> i & 1]
        masks = tuple(
            sum(1 << bit for k, bit in enumerate(bits) if subset >> k & 1) for subset in range(1 << len(bits))
        )
        rate = np.array([0.0] + [self.rate(one, self.part(mask, wish, one)) for one in masks[1:]])
        base = np.array([self.position[self.problem.streams[self.names[bit]].site] for bit in bits])
        index = {one: i for i, one in enumerate(masks)}
        return Local(masks, index, rate, base, np.ones(len(masks)), self._opening_of(masks, len(bits)))

    def _opening_of(self, masks: tuple[int, ...], streams: int) -> Floats:
        if self._opening is None:
            return np.zeros((0, 0))
        rows = [(masks[whole], masks[part]) for whole, part in splits(streams)]
        sites = range(len(self.sites))
        return np.array([[self.opened(*row, site) for site in sites] for row in rows]).reshape(-1, len(sites))


def _candidates(problem: PlacementProblem, prepared: Prepared, more: Iterable[Site], most: int) -> list[Site]:
    if prepared.size <= most:
        return list(range(prepared.size))
    used = {stream.site for stream in problem.streams.values()} | {query.sink for query in problem.queries}
    return sorted(used | set(more))
