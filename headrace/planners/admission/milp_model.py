"""The optimisation model (III.8) with (IV.9), as printed, over a reduced problem.

Variables, by host h (and m) and stream s or operator o: d[h,s] delivers, x[h,m,s] sends, y[h,s] has, z[h,o]
runs, p[h,s] the potential. One more, t, stands for the maximum in O4. Streams nobody asks for have delta = 0
and so d = 0 by (III.4): these d are left out. The fixed part of the plan enters as resources taken, as CPU in
O4, and as y = 1 where a fixed operator reads a stream of S(q).

A resource row is divided by its limit: a solver's tolerance then means the same share of every limit. All
other amounts, t and what is used too much, are shares as well: a solver leaves out coefficients that are very
small beside the others of a row, as that of a raw amount would be in a problem written in bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headrace.planners.admission.linear import Draft, Floats, Ints, LinearModel, Term
from headrace.planners.admission.objective import Lambdas
from headrace.planners.admission.problem import Host, Plan, Stream, cpu_of, memory_of
from headrace.planners.admission.reduction import Scope

SECOND = 1e-4
"""What the usual costs weigh where the excess over limits is minimised: enough to shun useless flows."""
NOTHING = 1e-9
"""Share of a limit that is no room: what adding and taking away leaves."""
NEGLIGIBLE = 1e-6
"""Share of a limit that is no excess."""
FAR = 1e3
"""As many times what is left of a resource mean no more than that it does not fit."""
FURTHEST = 1e12
"""The same where limits may be exceeded: the most, in limits, that an excess is told as."""
HALF = 0.5
"""A solver's whole numbers are whole up to its tolerance."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What to ask of a reduced problem."""

    lambdas: Lambdas
    must: bool = True
    """All wanted streams or nothing. Else as many of them as fit, which is what the paper prints."""
    relaxed: bool = False
    """Limits may be exceeded; the excess, as shares of the limits, is minimised."""
    hosts: frozenset[Host] | None = None
    """Only these may change (fast model only)."""
    margin: float = 0.0
    """Share of every limit to stay clear of."""


@dataclass(frozen=True, slots=True)
class Excess:
    """How much more of a resource a plan would take than there is."""

    resource: str
    where: tuple[Host, ...]
    """A host; two for a link."""
    amount: float


class Skeleton:
    """d, y, z and t, and the constraints that do not speak of flows. Both models stand on it."""

    def __init__(self, scope: Scope, wish: Wish, over: Callable[[], bool] | None = None) -> None:
        """`over`: whether there is no time left. Then OutOfTime is raised."""
        self.scope, self.wish = scope, wish
        problem = scope.problem
        self.hosts = len(problem.hosts)
        self.number = {stream: i for i, stream in enumerate(scope.streams)}
        self.asked = (*scope.kept, *scope.wanted)
        self.rates: Floats = np.array([problem.rate(stream) for stream in scope.streams])
        self.cpu: Floats = np.array([cpu_of(problem, one) for one in scope.operators])
        self.weight = SECOND if wish.relaxed else 1.0
        self.makers: dict[Stream, list[int]] = {}
        self.readers: dict[Stream, list[int]] = {}
        for i, one in enumerate(scope.operators):
            self.makers.setdefault(one.output, []).append(i)
            self.readers.setdefault(one.left, []).append(i)
            self.readers.setdefault(one.right, []).append(i)
        self.draft = Draft(over)
        lambdas = wish.lambdas
        self.z = self.draft.variables(self.hosts, len(self.cpu), cost=self.weight * lambdas.cpu * self.cpu)
        self.y = self.draft.variables(self.hosts, len(scope.streams))
        # What is delivered already stays so: a constant in O1, which `value` adds. With it, a solver's
        # relative gap would widen with every admitted query.
        new = np.array([stream in scope.wanted for stream in self.asked], dtype=np.float64)
        self.d = self.draft.variables(self.hosts, len(new), cost=-self.weight * lambdas.admitted * new)
        taken = float(np.max(scope.taken["cpu"]))
        self.load = taken + float(self.cpu.max(initial=0.0)) or 1.0
        """The unit of t: no coefficient beside it in a row is larger."""
        self.t = self.draft.variables(
            1,
            cost=self.weight * lambdas.balance * self.load,
            upper=(taken + float(self.cpu.sum())) / self.load,
            whole=False,
        )
        self.excess: list[tuple[str, tuple[Host, ...], int, float, float]] = []
        """Resource, place, variable, and its unit: as a share of the limit and as an amount."""
        self.pins: dict[int, float] = {}
        self.floors = {int(self.y[h, self.number[s]]): 1.0 for h, s in scope.needs}
        self._demand()
        self._inputs()
        self._busiest()
        memory = np.array([memory_of(problem, one) for one in scope.operators])
        self.limit("cpu", (self.z, np.broadcast_to(self.cpu, self.z.shape)))
        self.limit("memory", (self.z, np.broadcast_to(memory, self.z.shape)))

    def limit(self, resource: str, *terms: Term) -> None:
        """A row a host: what the terms take of the resource is at most what is left of it."""
        room, limits = self.scope.room[resource], self.scope.limits[resource]
        where: list[tuple[Host, ...]] = [(host,) for host in range(self.hosts)]
        self.limit_rows(resource, where, room, limits, terms)

    def limit_rows(
        self,
        resource: str,
        where: list[tuple[Host, ...]],
        room: Floats,
        limits: Floats,
        terms: tuple[Term, ...],
    ) -> None:
        rows = np.flatnonzero(np.isfinite(limits))
        if not len(rows) or not any(columns.size for columns, _ in terms):
            return
        given = [
            (columns[rows], np.broadcast_to(v, columns.shape)[rows]) for columns, v in terms if columns.size
        ]
        most = max(float(values.max()) for _, values in given)
        limits = np.where(limits[rows] > 0, limits[rows], (most or 1.0) if self.wish.relaxed else 0.0)
        # Without a limit there is no room, and no share of it either.
        high = np.divide(room[rows], limits, out=np.zeros(len(rows)), where=limits > 0) - self.wish.margin
        high = np.where(high > NOTHING, high, 0.0)
        highest = np.full(len(rows), FURTHEST) if self.wish.relaxed else np.maximum(FAR * high, 1.0)
        shares = [(columns, _shares(values, limits, highest)) for columns, values in given]
        if self.wish.relaxed:
            largest = [values.reshape(len(rows), -1).max(axis=1) for _, values in shares]
            over = self._over(resource, [where[row] for row in rows], limits, np.max(largest, axis=0))
            shares.append(over)
        self.draft.at_most(high, *shares)

    def _over(
        self, resource: str, where: list[tuple[Host, ...]], limits: Floats, largest: Floats
    ) -> tuple[Ints, Floats]:
        """What each row uses too much, in units near its largest share."""
        units = np.clip(largest, 1.0, 1.0 / NEGLIGIBLE)
        over = self.draft.variables(len(limits), cost=units, upper=np.inf, whole=False)
        self.excess += [
            (resource, where[i], int(over[i]), float(units[i]), float(units[i] * limits[i]))
            for i in range(len(limits))
        ]
        return over, -units

    def available(self, stream: int, received: Ints) -> None:
        """(III.5a): a host has a stream only if it receives it, makes it or is its home."""
        self.draft.at_most(
            self.at_home(stream), (self.y[:, stream], 1.0), (received, -1.0), *self.made(stream, -1.0)
        )

    def made(self, stream: int, sign: float) -> list[Term]:
        """The operators whose output is a stream, a row a host; nothing when there is none."""
        makers = self.makers.get(self.scope.streams[stream])
        return [(self.z[:, makers], sign)] if makers else []

    def at_home(self, stream: int) -> Floats:
        flags: Floats = np.zeros(self.hosts)
        flags[list(homes_of(self.scope, self.scope.streams[stream]))] = 1.0
        return flags

    def delivered(self) -> Term:
        """What hosts send to clients."""
        rates = np.array([self.scope.problem.rate(stream) for stream in self.asked])
        return self.d, np.broadcast_to(rates, self.d.shape)

    @cached_property
    def model(self) -> LinearModel:
        return self.draft.model(self.pins, self.floors)

    def placed(self, values: Floats) -> Plan:
        """Operators and deliveries of a solution."""
        placements = [(int(h), self.scope.operators[o]) for h, o in np.argwhere(values[self.z] > HALF)]
        deliveries = {self.asked[s]: int(h) for h, s in np.argwhere(values[self.d] > HALF)}
        return Plan(frozenset(placements), frozenset(), deliveries)

    def excesses(self, values: Floats) -> list[Excess]:
        return [
            Excess(name, where, float(values[column]) * amount)
            for name, where, column, share, amount in self.excess
            if values[column] * share > NEGLIGIBLE
        ]

    def value(self, values: Floats) -> float:
        """(III.3) of the whole plan that a solution stands for, fixed part included."""
        scope, lambdas = self.scope, self.wish.lambdas
        rest = scope.fixed
        flows = sum(scope.problem.rate(stream) for _, _, stream in rest.flows)
        kept = len(rest.deliveries) + len(scope.kept)
        fixed = lambdas.admitted * kept - lambdas.network * flows
        return fixed - lambdas.cpu * float(scope.taken["cpu"].sum()) - float(self.model.cost @ values)

    def _demand(self) -> None:
        """(III.4a), (III.4b) and, for streams that are delivered already, (IV.9)."""
        columns = [self.number[stream] for stream in self.asked]
        if not columns:
            return
        self.draft.at_most(0.0, (self.d.ravel(), 1.0), (self.y[:, columns].ravel(), -1.0))
        kept = len(self.scope.kept)
        certain = len(self.asked) if self.wish.must else kept
        if certain:
            self.draft.exactly(1.0, (self.d.T[:certain], 1.0))
        if certain < len(self.asked):
            self.draft.at_most(1.0, (self.d.T[certain:], 1.0))

    def _inputs(self) -> None:
        """(III.5b)"""
        for side in ("left", "right"):
            read = [self.number[getattr(one, side)] for one in self.scope.operators]
            if read:
                self.draft.at_most(0.0, (self.z.ravel(), 1.0), (self.y[:, read].ravel(), -1.0))

    def _busiest(self) -> None:
        """t is at least the CPU of every host."""
        every = np.repeat(self.t, self.hosts)
        terms: list[Term] = [(every, -self.load)]
        if self.z.size:
            terms.append((self.z, np.broadcast_to(self.cpu, self.z.shape)))
        self.draft.at_most(-self.scope.taken["cpu"], *terms)


class Printed(Skeleton):
    """The model as printed."""

    def __init__(self, scope: Scope, wish: Wish, over: Callable[[], bool] | None = None) -> None:
        super().__init__(scope, wish, over)
        count = self.hosts
        pairs = [(h, m) for h in range(count) for m in range(count) if h != m]
        self.pairs: Ints = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        network = self.weight * wish.lambdas.network * self.rates
        self.x = self.draft.variables(len(pairs), len(self.rates), cost=network)
        self.p = self.draft.variables(count, len(self.rates), upper=np.inf, whole=False)
        self._availability()
        self._bandwidth()
        self._downhill()

    def plan(self, values: Floats) -> Plan:
        """The loose part of the plan a solution stands for."""
        placed = self.placed(values)
        sent = [
            (*map(int, self.pairs[i]), self.scope.streams[s]) for i, s in np.argwhere(values[self.x] > HALF)
        ]
        return Plan(placed.placements, frozenset(sent), placed.deliveries)

    def _availability(self) -> None:
        """(III.5a) and (III.5c)"""
        into = np.array([np.flatnonzero(self.pairs[:, 1] == m) for m in range(self.hosts)], dtype=np.int64)
        for stream in range(len(self.rates)):
            self.available(stream, self.x[into, stream])
        if self.x.size:
            self.draft.at_most(0.0, (self.x.ravel(), 1.0), (self.y[self.pairs[:, 0]].ravel(), -1.0))

    def _bandwidth(self) -> None:
        """(III.6a), (III.6b), (III.6c)"""
        by_end = [
            np.array([np.flatnonzero(self.pairs[:, end] == h) for h in range(self.hosts)], dtype=np.int64)
            for end in (0, 1)
        ]
        out, into = (self.x[rows] for rows in by_end)
        self.limit("in", (into, np.broadcast_to(self.rates, into.shape)))
        self.limit("out", (out, np.broadcast_to(self.rates, out.shape)), self.delivered())
        senders, receivers = self.pairs.T
        where: list[tuple[Host, ...]] = [(int(h), int(m)) for h, m in self.pairs]
        limits = np.broadcast_to(self.scope.problem.link_bandwidth, (self.hosts, self.hosts)).astype(
            np.float64
        )
        room = self.scope.link_room[senders, receivers]
        carried = (self.x, np.broadcast_to(self.rates, self.x.shape))
        self.limit_rows("link", where, room, limits[senders, receivers], (carried,))

    def _downhill(self) -> None:
        """(III.7): p[h,s] >= p[m,s] + 1 - M (1 - x[h,m,s])"""
        if not self.x.size:
            return
        large = float(self.hosts + 2)
        senders, receivers = self.pairs.T
        self.draft.at_most(
            large - 1.0,
            (self.p[receivers].ravel(), 1.0),
            (self.p[senders].ravel(), -1.0),
            (self.x.ravel(), large),
        )


def _shares(values: Floats, limits: Floats, highest: Floats) -> Floats:
    """Of each row's limit. What takes far more than there is takes `highest`: for whole numbers that is as
    impossible, and a solver leaves out small coefficients beside very large ones."""
    beside = (-1, *[1] * (values.ndim - 1))
    shares = np.zeros(values.shape)
    with np.errstate(divide="ignore", over="ignore"):
        np.divide(values, limits.reshape(beside), out=shares, where=values > 0)
    return np.minimum(shares, highest.reshape(beside))


def homes_of(scope: Scope, stream: Stream) -> set[Host]:
    """The home of a base stream; of others, nothing."""
    return {scope.homes[stream]} if stream in scope.homes else set()
