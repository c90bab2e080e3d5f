"""The cheapest way to make one stream, given what runs: a dynamic programme over (set of streams, host).

cheapest(S, h), the least price of having S at host h, is nothing where h has it; else the least of
- joining two parts of S at h: the price of having both there, and of the operator's CPU;
- receiving S from the host where having it and sending it is least.
Parts are disjoint, so their prices add up, and the result is exact for the given prices as long as no two
steps compete for the last room of one host. Where they do, carrying the steps out fails.

For k streams, H hosts: O(3^k H), all hosts in one numpy operation. Where links can bind: O(3^k H + 2^k H^2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from math import isinf

import numpy as np
from numpy.typing import NDArray

from headrace.planners.admission.problem import Host, Stream, operator
from headrace.planners.admission.state import Floats, State

Ints = NDArray[np.int64]
IMPOSSIBLE = 1e15
"""A price from which on there is no way."""
BOUNDLESS = 1e12
"""CPU from which on a host has all it wants."""
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Prices:
    """What a unit of each resource of each host is worth now."""

    cpu: Floats
    into: Floats
    out: Floats
    carry: Callable[[Stream], float]
    """A factor on the price of a copy: below one for streams that others will use there too."""
    worth: Callable[[Stream], float]
    """What having a stream made will save later."""
    unit: float = 0.0
    """The least CPU of an operator that reads a base stream: less room than this is lost."""
    lost: float = 0.5
    """How much of the CPU that is lost is charged to the operator that makes it so."""

    def at(self, hosts: Ints) -> Prices:
        """The same for some hosts only."""
        return replace(self, cpu=self.cpu[hosts], into=self.into[hosts], out=self.out[hosts])

    def cpu_price(self, cpu: Floats, room: Floats) -> Floats:
        """Of operators that take `cpu` at hosts with `room`; what cannot be used any more is paid too.

        Ten of 10.1 fill a host of 110 worse than five of 20 do: once a host's room is no multiple of the unit
        the rest is lost anyway, so that such operators are best kept together."""
        if not self.unit or isinf(BOUNDLESS / self.unit):
            return cpu * self.cpu
        room = np.minimum(room, BOUNDLESS)
        lost = np.floor(room / self.unit) - np.floor((room - cpu) / self.unit)
        return (cpu + self.lost * (self.unit * lost - cpu)) * self.cpu


@dataclass(frozen=True)
class Barred:
    """What a plan has to do without."""

    copies: set[tuple[Stream, Host, Host]] = field(default_factory=set)
    """Of what, from where, to where. Without effect where links never bind."""
    joins: set[tuple[Stream, Host]] = field(default_factory=set)
    """What is not to be made, and where."""

    @property
    def count(self) -> int:
        return len(self.copies) + len(self.joins)


NOTHING = Barred()


@dataclass(frozen=True)
class Split:
    """All ways to cut one subset (a bit mask) in two."""

    mask: int
    left: Ints
    right: Ints


@cache
def splits(size: int) -> tuple[Split, ...]:
    """Of every subset with at least two members, smaller masks first."""
    found = []
    for mask in range(1, 1 << size):
        left = [part for part in range(1, mask) if part & mask == part and part & mask & -mask]
        if left:
            parts = np.array(left)
            found.append(Split(mask, parts, mask ^ parts))
    return tuple(found)


class Table:
    """The programme for one stream, filled in. Rows: sets of streams as bit masks; columns: the hosts."""

    def __init__(
        self,
        state: State,
        prices: Prices,
        target: Stream,
        soft: float | None = None,
        hosts: Ints | None = None,
        barred: Barred = NOTHING,
    ) -> None:
        """`soft`: limits may be passed, and each unit too much costs this many times its price. `hosts`: only
        these take part."""
        self.state, self.soft, self.barred = state, soft, barred
        self.hosts = np.arange(len(state.cpu)) if hosts is None else hosts
        self.prices = prices if hosts is None else prices.at(hosts)
        names = sorted(target)
        self.sets = [frozenset(n for i, n in enumerate(names) if m >> i & 1) for m in range(1 << len(names))]
        self.rates = np.array([np.inf] + [self._rate(s) for s in self.sets[1:]])
        shape = (len(self.sets), len(self.hosts))
        self.least = np.full(shape, np.inf)
        self.cut = np.zeros(shape, dtype=np.int64)
        """The left part of the join at a host."""
        self.sender = np.full(shape, -1, dtype=np.int64)
        """The column of who sends, or -1: made or had here."""
        self._look(hosts)
        for i in range(len(names)):
            self._settle(1 << i)
        for split in splits(len(names)):
            if self.rates[split.mask] < np.inf:
                self._join(split)
                self._settle(split.mask)

    def _look(self, hosts: Ints | None) -> None:
        """How much room there is."""
        state = self.state
        rooms = (
            state.cpu_limit - state.cpu,
            state.memory_limit - state.memory,
            state.into_limit - state.into,
            state.out_limit - state.out,
        )
        self.cpu_room, self.memory_room, self.into_room, self.out_room = (
            rooms if hosts is None else (room[hosts] for room in rooms)
        )
        self.link_room = None if state.links is None else state.link_limit - state.links
        self.column: dict[Host, int] | None = None
        if hosts is not None:
            self.column = {host: i for i, host in enumerate(hosts.tolist())}
            if self.link_room is not None:
                self.link_room = self.link_room[np.ix_(hosts, hosts)]

    def _columns(self, stream: Stream) -> list[int]:
        """Of hosts that have a stream."""
        holders = self.state.have.get(stream, {})
        if self.column is None:
            return list(holders)
        return [self.column[host] for host in holders if host in self.column]

    def _rate(self, stream: Stream) -> float:
        problem = self.state.problem
        if len(stream) > 1 and stream not in problem.rates:
            return float("inf")
        return problem.rate(stream)

    def _join(self, split: Split) -> None:
        problem = self.state.problem
        read = self.rates[split.left] + self.rates[split.right]
        known = np.isfinite(read)
        if not known.any():
            return
        left, right, read = split.left[known], split.right[known], read[known]
        cpu = (problem.operator_cost * read)[:, None]
        with np.errstate(invalid="ignore"):
            price = self.least[left] + self.least[right] + self.prices.cpu_price(cpu, self.cpu_room)
        price = self._limit(price, cpu - self.cpu_room, self.prices.cpu)
        if problem.memory_cost:
            over = np.maximum((problem.memory_cost * read)[:, None] - self.memory_room, 0.0)
            price = self._limit(price, over * problem.operator_cost / problem.memory_cost, self.prices.cpu)
        best = price.argmin(axis=0)
        stream = self.sets[split.mask]
        saved = 0.0 if stream in self.state.made else self.prices.worth(stream)
        self.least[split.mask] = price[best, np.arange(price.shape[1])] - saved
        self.cut[split.mask] = left[best]
        if self.barred.joins:
            there = [(stream, host) in self.barred.joins for host in self.hosts.tolist()]
            self.least[split.mask, there] = np.inf

    def _limit(self, price: Floats, over: Floats, each: Floats) -> Floats:
        if self.soft is None:
            return np.where(over > 0.0, np.inf, price)
        return price + self.soft * np.maximum(over, 0.0) * each

    def _settle(self, mask: int) -> None:
        """Where it is had already it is free; everywhere else it may be received."""
        stream = self.sets[mask]
        self.least[mask, self._columns(stream)] = 0.0
        share = self.rates[mask] * self.prices.carry(stream)
        # Only a narrow link makes a second hop worth its price.
        while self._spread(mask, share) and self.link_room is not None:
            pass

    def _spread(self, mask: int, share: float) -> bool:
        """One hop from wherever it is; whether that made it cheaper anywhere."""
        rate, least = self.rates[mask], self.least[mask]
        offer = least + share * self.prices.out
        offer = self._limit(offer, np.minimum(rate - self.out_room, rate), self.prices.out)
        got, sender = self._best_offer(offer, mask)
        got = got + share * self.prices.into
        got = self._limit(got, np.minimum(rate - self.into_room, rate), self.prices.into)
        better = got < least
        least[better] = got[better]
        self.sender[mask][better] = sender[better]
        return bool(better.any())

    def _best_offer(self, offer: Floats, mask: int) -> tuple[Floats, Ints]:
        """For each receiver."""
        if self.link_room is None:
            best = int(offer.argmin())
            return np.full(len(offer), offer[best]), np.full(len(offer), best)
        reach = np.where(self.rates[mask] <= self.link_room, offer[:, None], np.inf)
        for stream, a, b in self.barred.copies:
            if stream == self.sets[mask]:
                reach[self.hosts == a, self.hosts == b] = np.inf
        senders = reach.argmin(axis=0)
        return reach[senders, np.arange(len(offer))], senders

    def delivery(self) -> tuple[int, float]:
        """The column of the host that delivers at the least price, and that price."""
        rate = self.rates[-1]
        price = self._limit(
            self.least[-1] + rate * self.prices.out, np.minimum(rate - self.out_room, rate), self.prices.out
        )
        best = int(price.argmin())
        return best, float(price[best])


def carry_out(table: Table, column: int) -> bool:
    """Do what the programme chose for having the whole stream at a host. False: two steps wanted the same
    room; the caller takes back what was done. Of a soft table everything is done, limits or not."""
    return _have(table, len(table.sets) - 1, column)


def _have(table: Table, mask: int, column: int) -> bool:
    """Parts first."""
    if int(table.hosts[column]) in table.state.have[table.sets[mask]]:
        return True
    sender = int(table.sender[mask, column])
    if sender >= 0:
        return _have(table, mask, sender) and _receive(table, sender, column, table.sets[mask])
    left = int(table.cut[mask, column])
    right = mask ^ left
    return _have(table, left, column) and _have(table, right, column) and _place(table, left, right, column)


def _receive(table: Table, sender: int, column: int, stream: Stream) -> bool:
    state, source, host = table.state, int(table.hosts[sender]), int(table.hosts[column])
    if table.soft is None and not state.can_send(source, host, state.problem.rate(stream)):
        return False
    state.send(source, host, stream)
    return True


def _place(table: Table, left: int, right: int, column: int) -> bool:
    one, host = operator(table.sets[left], table.sets[right]), int(table.hosts[column])
    if table.soft is None and not table.state.fits(host, one):
        return False
    table.state.place(host, one)
    return True
