"""Deployments of one query within limits of sites, made bottom-up: for when branch and bound gave up.

    label of (S, n) = a way to have S made at n: what it costs, and what it takes of the room of each site

Labels that another one beats in cost and in room everywhere are dropped, and those that cannot lead to less
than the best known deployment. If nothing else is dropped, the search is complete; with only the `width` best
labels of each set kept it is a quick search. What is kept then is half the cheapest, half those that leave
the large sites free, since the largest join may fit nowhere else.

`packed` takes one tree after another and puts its joins where there is room: for queries of many streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from headrace.planners.placement.jit import Flags, Floats, Ints
from headrace.planners.placement.subsets_kernels import splits

MOST_COMPARED = 1_000
"""Labels of a set that are compared with each other one by one; beyond, only equal ones are dropped."""

Item = tuple[int, int, int]
"""(set, part, site) of a join; (-1, offer, -1) of an offer."""


@dataclass(frozen=True)
class Try:
    cost: float
    items: tuple[Item, ...]
    """Joins and offers of the plan, inputs first."""
    sources: tuple[tuple[int, int], ...]
    """Per join, the sites of its inputs; (-1, -1) for what is not one."""
    top: tuple[int, int]
    """Set and site of the result's maker."""


@dataclass(frozen=True)
class Given:
    """A stream that is there: a base stream (`offer` -1) or one of another query."""

    whole: int
    site: int
    offer: int = -1
    cost: float = 0.0
    takes: Mapping[int, float] = field(default_factory=dict)
    """Site -> what it loads there."""


@dataclass(frozen=True)
class Case:
    """One query: sets are bit masks of its streams, sites are positions."""

    rate: Floats
    distance: Floats
    out: Floats
    """What the result costs to the sink, by site."""
    allowed: Flags
    room: Floats
    """What a site may still read, with the tolerance; inf: no limit."""
    given: tuple[Given, ...]

    @property
    def full(self) -> int:
        return len(self.rate) - 1

    @property
    def streams(self) -> int:
        return self.full.bit_length()

    def load(self, whole: int, part: int) -> float:
        return float(self.rate[part] + self.rate[whole ^ part])

    def fitting(self, whole: int, part: int) -> Ints:
        """Sites where this join fits if nothing else runs there."""
        return np.flatnonzero(self.allowed & (self.room >= self.load(whole, part)))

    def way(self, whole: int, sources: Ints, targets: Ints) -> Floats:
        """What a set costs between sites; no path stays no path even for nothing."""
        distance = self.distance[np.ix_(sources, targets)]
        found: Floats = np.where(np.isfinite(distance), self.rate[whole] * distance, np.inf)
        return found


@dataclass(frozen=True)
class _Pool:
    """The labels of one set."""

    cost: Floats
    site: Ints
    taken: Floats
    """Label, limited site -> what it takes there."""
    made: Ints
    """Label -> (part, its label, label of the rest), or (0, number of what is given, 0)."""

    def __len__(self) -> int:
        return len(self.cost)

    def at(self, which: Ints | Flags) -> _Pool:
        return _Pool(self.cost[which], self.site[which], self.taken[which], self.made[which])


class Labels:
    """`work` bounds how many pairs of labels are tried at sites; beyond, the answer is None, not complete."""

    def __init__(self, case: Case, width: int, work: float, bound: float = np.inf) -> None:
        self._case, self._width, self._work = case, width, work
        self._bound = bound * (1 + 1e-12)
        self.complete = True
        """Whether no label was dropped that might have mattered."""
        self._limited = np.flatnonzero(np.isfinite(case.room))
        self._column = {int(site): k for k, site in enumerate(self._limited)}
        self._room = case.room[self._limited]
        self._sites = np.arange(len(case.out))
        self._parts: dict[int, list[int]] = {}
        for whole, part in splits(case.streams):
            self._parts.setdefault(whole, []).append(part)
        self._pools: dict[int, _Pool] = {}
        self._onward = self._completions(self._cheapest())

    def found(self) -> Try | None:
        """The cheapest of the labels of all streams; None: there is none, or it was too much work."""
        for whole in range(1, self._case.full + 1):
            pools = [self._given(whole), *(self._joined(whole, part) for part in self._parts.get(whole, ()))]
            if self._work < 0:
                self.complete = False
                return None
            self._pools[whole] = self._kept(whole, _concatenated(pools))
        last = self._pools[self._case.full]
        if not len(last):
            return None
        total = last.cost + self._case.out[last.site]
        best = int(np.argmin(total))
        return self._try(best, float(total[best])) if total[best] < np.inf else None

    def _cheapest(self) -> Floats:
        """Set, site -> the least it costs to have the set there, if each join had its site for itself."""
        case = self._case
        here = np.full((case.full + 1, len(self._sites)), np.inf)
        for whole in range(1, case.full + 1):
            made = np.full(len(self._sites), np.inf)
            for one in case.given:
                if one.whole == whole:
                    made[one.site] = min(made[one.site], one.cost)
            for part in self._parts.get(whole, ()):
                at = case.fitting(whole, part)
                made[at] = np.minimum(made[at], here[part, at] + here[whole ^ part, at])
            starts = np.flatnonzero(made < np.inf)
            if len(starts):
                here[whole] = (made[starts, None] + case.way(whole, starts, self._sites)).min(axis=0)
        return here

    def _completions(self, here: Floats) -> Floats:
        """Set, site -> the least that is still to be paid once the set is made there."""
        case = self._case
        read = np.full_like(here, np.inf)
        onward = np.full_like(here, np.inf)
        for whole in range(case.full, 0, -1):
            if whole == case.full:
                onward[whole] = case.out
            else:
                onward[whole] = (case.way(whole, self._sites, self._sites) + read[whole]).min(axis=1)
            for part in self._parts.get(whole, ()):
                at = case.fitting(whole, part)
                for one, other in ((part, whole ^ part), (whole ^ part, part)):
                    read[one, at] = np.minimum(read[one, at], here[other, at] + onward[whole, at])
        return onward

    def _given(self, whole: int) -> _Pool:
        chosen = [(i, one) for i, one in enumerate(self._case.given) if one.whole == whole]
        taken = np.zeros((len(chosen), len(self._limited)))
        for k, (_, one) in enumerate(chosen):
            for site, load in one.takes.items():
                if site in self._column:
                    taken[k, self._column[site]] += load
        return _Pool(
            np.array([one.cost for _, one in chosen], dtype=np.float64),
            np.array([one.site for _, one in chosen], dtype=np.int64),
            taken,
            np.array([(0, i, 0) for i, _ in chosen], dtype=np.int64).reshape(-1, 3),
        ).at(np.flatnonzero((taken <= self._room).all(axis=1)))

    def _joined(self, whole: int, part: int) -> _Pool:
        """Each label of a part with each of the rest, at each site where that fits."""
        case, a, b = self._case, self._pools[part], self._pools[whole ^ part]
        at = case.fitting(whole, part)
        self._work -= len(a) * len(b) * (len(at) + len(self._limited))
        if self._work < 0 or not len(a) or not len(b):
            return _none(len(self._limited))
        cost = (a.cost[:, None] + case.way(part, a.site, at))[:, None, :]
        cost = cost + (b.cost[:, None] + case.way(whole ^ part, b.site, at))[None, :, :]
        fits = cost + self._onward[whole, at] <= self._bound
        fits &= cost < np.inf
        fits &= np.all(a.taken[:, None, None, :] + b.taken[None, :, None, :] <= self._room, axis=3)
        i, j, k = np.nonzero(fits)
        taken = a.taken[i] + b.taken[j]
        column = np.array([self._column.get(int(site), -1) for site in at], dtype=np.int64)[k]
        rows = np.flatnonzero(column >= 0)
        taken[rows, column[rows]] += case.load(whole, part)
        made = np.stack([np.full_like(i, part), i, j], axis=1)
        pool = _Pool(cost[i, j, k], at[k], taken, made)
        return self._narrowed(whole, pool.at(np.flatnonzero((taken <= self._room).all(axis=1))), 4)

    def _kept(self, whole: int, pool: _Pool) -> _Pool:
        pool = pool.at(np.argsort(pool.cost, kind="stable"))
        if len(pool) > MOST_COMPARED:
            key = np.column_stack([pool.site, pool.taken])
            pool = pool.at(np.sort(np.unique(key, axis=0, return_index=True)[1]))
        if len(pool) <= MOST_COMPARED and whole != self._case.full:
            pool = pool.at(~self._beaten(whole, pool))
        return self._narrowed(whole, pool)

    def _beaten(self, whole: int, pool: _Pool) -> Flags:
        """Those that an earlier one, sent to their site, is as good as."""
        found = np.zeros(len(pool), dtype=np.bool_)
        for j in range(1, len(pool)):
            before = np.flatnonzero(~found[:j])
            way = self._case.way(whole, pool.site[before], pool.site[j : j + 1])[:, 0]
            cheaper = before[pool.cost[before] + way <= pool.cost[j]]
            found[j] = bool((pool.taken[cheaper] <= pool.taken[j]).all(axis=1).any())
        return found

    def _narrowed(self, whole: int, pool: _Pool, times: int = 1) -> _Pool:
        width = self._width * times
        if len(pool) <= width:
            return pool
        self.complete = False
        by_cost = np.argsort(pool.cost + self._onward[whole, pool.site], kind="stable")
        by_room = np.argsort(pool.taken @ self._room, kind="stable")
        chosen = np.union1d(by_cost[: width // 2], by_room[: width - width // 2])
        return pool.at(chosen)

    def _try(self, best: int, cost: float) -> Try:
        items: list[Item] = []
        sources: list[tuple[int, int]] = []

        def visit(whole: int, label: int) -> int:
            pool = self._pools[whole]
            part, one, other = (int(x) for x in pool.made[label])
            site = int(pool.site[label])
            if part:
                sides = visit(part, one), visit(whole ^ part, other)
                items.append((whole, part, site))
                sources.append(sides)
            elif self._case.given[one].offer >= 0:
                items.append((-1, self._case.given[one].offer, -1))
                sources.append((-1, -1))
            return site

        top = self._case.full, visit(self._case.full, best)
        return Try(cost, tuple(items), tuple(sources), top)


def _none(limited: int) -> _Pool:
    return _Pool(np.zeros(0), np.zeros(0, np.int64), np.zeros((0, limited)), np.zeros((0, 3), np.int64))


def _concatenated(pools: Sequence[_Pool]) -> _Pool:
    return _Pool(
        np.concatenate([one.cost for one in pools]),
        np.concatenate([one.site for one in pools]),
        np.concatenate([one.taken for one in pools]),
        np.concatenate([one.made for one in pools]),
    )


Shape = tuple[tuple[int, int], ...]
"""A tree without sites: (set, part) of its joins, inputs first."""


def packed(case: Case, shapes: Iterable[Shape]) -> Try | None:
    """The cheapest that is found by putting the joins of these trees one by one, then moving single joins."""
    found = [one for shape in shapes for one in _Packing(case, shape).tries()]
    return min(found, key=lambda one: one.cost, default=None)


def easiest(case: Case) -> Iterator[Shape]:
    """The tree whose largest join is least, and the one that reads least in all."""
    for largest in (True, False):
        best: dict[int, tuple[float, int]] = {one.whole: (0.0, 0) for one in _free(case).values()}
        for whole, part in splits(case.streams):
            a, b, load = best[part][0], best[whole ^ part][0], case.load(whole, part)
            this = max(a, b, load) if largest else a + b + load
            if this < best.get(whole, (np.inf, 0))[0]:
                best[whole] = this, part
        yield _shape({whole: part for whole, (_, part) in best.items()}, case.full)


def _shape(part: Mapping[int, int], whole: int) -> Shape:
    if not part[whole]:
        return ()
    one, other = part[whole], whole ^ part[whole]
    return (*_shape(part, one), *_shape(part, other), (whole, one))


def _free(case: Case) -> dict[int, Given]:
    """Set -> what is given of it and takes no room, the cheapest to the sink."""
    best: dict[int, Given] = {}
    for one in case.given:
        known = best.get(one.whole)
        if not one.takes and (known is None or case.out[one.site] < case.out[known.site]):
            best[one.whole] = one
    return best


class _Packing:
    """The joins of one tree, each at a site."""

    def __init__(self, case: Case, shape: Shape) -> None:
        self._case, self._shape = case, shape
        self._leaf = _free(case)
        self._reader = {side: whole for whole, part in shape for side in (part, whole ^ part)}
        self._site: dict[int, int] = {}
        self._room = case.room.copy()

    def tries(self) -> Iterator[Try]:
        by_size = sorted(self._shape, key=lambda join: -self._case.load(*join))
        for order, tight in ((self._shape, False), (by_size, False), (by_size, True)):
            self._site, self._room = {}, self._case.room.copy()
            if all(self._put(join, tight) for join in order):
                while any(self._put(join, False) for join in self._shape):
                    pass
                one = self._try()
                if one.cost < np.inf:
                    yield one

    def _put(self, join: tuple[int, int], tight: bool) -> bool:
        """Put a join where it is cheapest, or where it leaves least room; whether that is another site."""
        whole, load = join[0], self._case.load(*join)
        before = self._site.pop(whole, None)
        if before is not None:
            self._room[before] += load
        cost = self._around(*join)
        fits = self._case.allowed & (self._room >= load) & (cost < np.inf)
        if not fits.any() and before is None:
            return False
        best = int(np.argmin(np.where(fits, self._room if tight else cost, np.inf)))
        if tight and not self._room[best] < np.inf:
            best = int(np.argmin(np.where(fits, cost, np.inf)))
        if before is not None and not (fits[best] and cost[best] < cost[before] * (1 - 1e-12)):
            best = before
        self._site[whole] = best
        self._room[best] -= load
        return best != before

    def _around(self, whole: int, part: int) -> Floats:
        """What the edges of a join cost, by its site, as far as the other ends are known."""
        every = np.arange(len(self._case.out))
        total = np.zeros(len(every))
        for side in (part, whole ^ part):
            at = self._at(side)
            if at is not None:
                total = total + self._case.way(side, np.array([at]), every)[0]
        if whole == self._case.full:
            return total + self._case.out
        reader = self._site.get(self._reader[whole])
        if reader is not None:
            total = total + self._case.way(whole, every, np.array([reader]))[:, 0]
        return total

    def _at(self, whole: int) -> int | None:
        if any(join[0] == whole for join in self._shape):
            return self._site.get(whole)
        return self._leaf[whole].site

    def _try(self) -> Try:
        case, full = self._case, self._case.full
        items: list[Item] = []
        sources: list[tuple[int, int]] = []
        for whole, one in self._leaf.items():
            if one.offer >= 0 and self._reads(whole):
                items.append((-1, one.offer, -1))
                sources.append((-1, -1))
        top = self._site[full] if self._shape else self._leaf[full].site
        cost = float(case.out[top])
        for whole, part in self._shape:
            sides = [self._at(part), self._at(whole ^ part)]
            a, b = (int(side) for side in sides if side is not None)
            for side, at in ((part, a), (whole ^ part, b)):
                cost += float(case.way(side, np.array([at]), np.array([self._site[whole]]))[0, 0])
            items.append((whole, part, self._site[whole]))
            sources.append((a, b))
        cost += sum(self._leaf[whole].cost for whole in self._leaf if self._reads(whole))
        return Try(cost, tuple(items), tuple(sources), (full, top))

    def _reads(self, whole: int) -> bool:
        made = any(join[0] == whole for join in self._shape)
        return not made and (whole in self._reader or whole == self._case.full)
