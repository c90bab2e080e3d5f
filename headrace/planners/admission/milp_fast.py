"""The same model without x[h,m,s] and potentials: far smaller, with the same optimum where links never bind.

Per host and stream: r (receives it) and c (how many copies it sends) replace the flows. Per stream s:
  (a)  a host has s only if it receives it, makes it or is its home;       (III.5a)
  (b)  c[h] <= (H - 1) y[h]: only who has s sends it;                      (III.5c)
  (c)  the sum of c is at least the sum of r: every arrival was sent;
  (d)  if any host receives s, some source (its home, or a host that makes it) sends a copy: k[h] <= c[h],
       k[h] <= source[h], r[m] <= sum of k for every m.
Bandwidth counts r at receivers and c at senders; O2 is the sum of rate * c.

Equal to the printed model when no link can carry too much (`Scope.tight_links`).
*Printed to fast.* r[m] = 1 if anything arrives, c[h] = the number of hosts that h sends s to. (a) to (c) are
plain. (d): go from a receiver to its sender, and on while that one only receives. Potentials rise by 1
each step, so this ends, at a host that has s and does not receive it: a source, and it sends. Bandwidth used
and objective stay the same or fall.
*Fast to printed.* Let Q be the sources of s, R the receivers outside Q. Take R by descending c and give each
a sender among Q and those already served that has copies left. It is always possible: let e be the copies
left with Q and the served. At first e >= 1 by (d) (if R is empty there is nothing to do). Serving m changes e
by c[m] - 1, so e stays >= 1 as long as c[m] >= 1. Once all that remain have c = 0, e = sum of c - the number
served >= |R| - the number served by (c), which is the number that remain. Every receiver has one sender that
was served before it: a forest, so potentials exist (its heights). Nobody sends more copies than c, receives
more than r, or sends to itself. Across streams there is no cycle, since an operator's output is a larger set
than its inputs. So a plan with explicit flows of at least the same value exists, and `Fast.plan` builds it.

Three more families of rows change no optimum and make proofs short. `_exists` follows from the rest for whole
numbers. `_single` and `_read_once` hold in some optimum: streams inside a new query's, and inside no other
that is delivered or read, can only serve that query. What a plan without useless parts does for it is a tree
whose nodes are disjoint or nested sets: each such stream is made once, read once, sent once.

Where some link could bind, the fast model leaves (III.6a) out: a relaxation. If the flows built from its
optimum happen to fit the links, that plan is optimal for the printed model too; if not, `Fast.plan` gives
None.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np

from headrace.errors import InternalError
from headrace.planners.admission.linear import Floats, Ints
from headrace.planners.admission.milp_model import HALF, Skeleton, Wish, homes_of
from headrace.planners.admission.problem import Host, Plan, Stream
from headrace.planners.admission.reduction import Scope

Flow = tuple[Host, Host, Stream]


class Fast(Skeleton):
    """In-flags and copy counts instead of flows."""

    def __init__(self, scope: Scope, wish: Wish, over: Callable[[], bool] | None = None) -> None:
        super().__init__(scope, wish, over)
        most = float(max(self.hosts - 1, 0))
        network = self.weight * wish.lambdas.network * self.rates
        streams = len(self.rates)
        self.r = self.draft.variables(self.hosts, streams)
        self.c = self.draft.variables(self.hosts, streams, cost=network, upper=most)
        self.k = self.draft.variables(self.hosts, streams, whole=False)
        self.some = self.draft.variables(streams, whole=False)
        """Does a source send a copy? The sum of k, cut at 1, said once a stream."""
        for stream in range(streams):
            self.available(stream, self.r[:, stream])
            self._sources_send(stream)
        self.draft.at_most(0.0, (self.c.ravel(), 1.0), (self.y.ravel(), -most))
        self.draft.at_most(0.0, (self.r.T, 1.0), (self.c.T, -1.0))
        rates = np.broadcast_to(self.rates, self.r.shape)
        self.limit("in", (self.r, rates))
        self.limit("out", (self.c, rates), self.delivered())
        self._single()
        self._exists()
        self._pin()

    def plan(self, values: Floats) -> Plan | None:
        """The loose part of the plan a solution stands for; None when its flows do not fit the links."""
        placed = self.placed(values)
        links = _Links(self.scope)
        flows: list[Flow] = []
        for number, stream in enumerate(self.scope.streams):
            sources = homes_of(self.scope, stream) | {h for h, o in placed.placements if o.output == stream}
            copies = {h: round(float(values[self.c[h, number]])) for h in range(self.hosts)}
            receivers = {h for h in range(self.hosts) if values[self.r[h, number]] > HALF} - sources
            if not links.serve(stream, sources, receivers, copies, flows):
                if not links.tight.any():
                    raise InternalError("the fast model's copies do not reach all receivers")
                return None
        return Plan(placed.placements, frozenset(flows), placed.deliveries)

    def _sources_send(self, stream: int) -> None:
        """(d)"""
        some = np.repeat(self.some[stream], self.hosts)
        self.draft.at_most(0.0, (self.r[:, stream], 1.0), (some, -1.0))
        self.draft.at_most(0.0, (self.some[[stream]], 1.0), (self.k[:, stream].reshape(1, -1), -1.0))
        self.draft.at_most(0.0, (self.k[:, stream], 1.0), (self.c[:, stream], -1.0))
        self.draft.at_most(self.at_home(stream), (self.k[:, stream], 1.0), *self.made(stream, -1.0))

    def _single(self) -> None:
        """Streams that only one query can have a use for are made at most once, read at most once, and so
        are sent by their maker to their reader or not at all: a relay on the way only takes more bandwidth.
        The query's own stream is delivered by its maker, for the same reason."""
        taken = self.scope.taken["cpu"].reshape(-1, 1)
        for number, stream in enumerate(self.scope.streams):
            makers = self.makers.get(stream)
            if not makers or not self._has_one_use(stream):
                continue
            made, load = self.z[:, makers], taken + self.cpu[makers]
            self.draft.at_most(1.0, (made.reshape(1, -1), 1.0))
            # One host runs one of them, and then has at least this load: tighter than a row a host.
            self.draft.at_most(0.0, (made.reshape(1, -1), load.reshape(1, -1)), (self.t, -self.load))
            self.draft.at_most(0.0, (self.c[:, number], 1.0), (made, -1.0))
            self.draft.at_most(1.0, (self.r[:, number].reshape(1, -1), 1.0))
            if stream in self.scope.wanted:
                delivered = self.d[:, self.asked.index(stream)]
                self.draft.exactly(0.0, (made, 1.0), (delivered, -1.0))
                self.pins |= dict.fromkeys(self.r[:, number].tolist() + self.c[:, number].tolist(), 0.0)

    def _has_one_use(self, stream: Stream) -> bool:
        uses = [wanted for wanted in self.scope.wanted if stream <= wanted]
        others = (*self.scope.kept, *(needed for _, needed in self.scope.needs))
        return len(uses) == 1 and not any(stream <= other for other in others)

    def _exists(self) -> None:
        """Implied by the rest for whole numbers, and much tighter for fractions, where 1/H of an operator on
        every host would else pass for one: a delivered stream is made somewhere (e), by some operator (f),
        whose inputs are made somewhere."""
        composites = [i for i, stream in enumerate(self.scope.streams) if len(stream) > 1]
        e = dict(zip(composites, self.draft.variables(len(composites), whole=False), strict=True))
        f = self.draft.variables(len(self.scope.operators), whole=False)
        for column, stream in enumerate(self.asked):
            if self.number[stream] in e:
                one = e[self.number[stream]].reshape(1)
                self.draft.at_most(0.0, (self.d[:, column].reshape(1, -1), 1.0), (one, -1.0))
        self.floors |= {int(e[self.number[s]]): 1.0 for _, s in self.scope.needs if len(s) > 1}
        for number in composites:
            makers = self.makers[self.scope.streams[number]]
            self.draft.at_most(0.0, (e[number].reshape(1), 1.0), (f[makers].reshape(1, -1), -1.0))
        if len(f):
            self.draft.at_most(0.0, (f, 1.0), (self.z.T, -1.0))
        for i, one in enumerate(self.scope.operators):
            for side in (one.left, one.right):
                if self.number[side] in e:
                    self.draft.at_most(0.0, (f[[i]], 1.0), (e[self.number[side]].reshape(1), -1.0))
        for wanted in self.scope.wanted:
            self._read_once(wanted, e, f)

    def _read_once(self, wanted: Stream, e: dict[int, Ints], f: Ints) -> None:
        """Operators that only one query can have a use for form a tree, in which a stream is read once: where
        there are several that read it, the sum of them takes the place of each."""
        own = [
            i
            for stream, makers in self.makers.items()
            if stream <= wanted and self._has_one_use(stream)
            for i in makers
        ]
        mine = set(own)
        if own:
            self.draft.exactly(0.0, (f[own], 1.0), (self.z.T[own], -1.0))
        for number, stream in enumerate(self.scope.streams):
            readers = [i for i in self.readers.get(stream, ()) if i in mine]
            if len(readers) > 1:
                self.draft.at_most(0.0, (self.z[:, readers], 1.0), (self.y[:, number], -1.0))
                if number in e:
                    self.draft.at_most(0.0, (f[readers].reshape(1, -1), 1.0), (e[number].reshape(1), -1.0))

    def _pin(self) -> None:
        """A home never needs its stream sent; hosts that may not change keep all they do."""
        for stream, home in self.scope.homes.items():
            self.pins[int(self.r[home, self.number[stream]])] = 0.0
        if self.wish.hosts is None:
            return
        sent = Counter((h, s) for h, _, s in self.scope.loose.flows)
        got = {(m, s) for _, m, s in self.scope.loose.flows}
        for host in set(range(self.hosts)) - self.wish.hosts:
            for number, stream in enumerate(self.scope.streams):
                self.pins[int(self.r[host, number])] = float((host, stream) in got)
                self.pins[int(self.c[host, number])] = float(sent[host, stream])
            for number, one in enumerate(self.scope.operators):
                self.pins[int(self.z[host, number])] = float((host, one) in self.scope.loose.placements)
            for number, stream in enumerate(self.asked):
                self.pins[int(self.d[host, number])] = float(self.scope.loose.deliveries.get(stream) == host)


class _Links:
    """Gives every receiver a sender, mindful of links that are nearly full and of flows that exist."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.tight = scope.tight_links
        self.left = scope.link_room.copy()
        self.before: dict[tuple[Host, Stream], set[Host]] = defaultdict(set)
        for sender, receiver, stream in scope.loose.flows:
            self.before[receiver, stream].add(sender)

    def serve(
        self,
        stream: Stream,
        sources: set[Host],
        receivers: set[Host],
        copies: dict[Host, int],
        flows: list[Flow],
    ) -> bool:
        rate = self.scope.problem.rate(stream)
        spare = {host: copies[host] for host in sources if copies[host]}
        for receiver in sorted(receivers, key=lambda host: (-copies[host], host)):
            senders = [h for h in spare if not self.tight[h, receiver] or self.left[h, receiver] >= rate]
            if not senders:
                return False
            sender = min(senders, key=lambda h: (h not in self.before[receiver, stream], -spare[h], h))
            flows.append((sender, receiver, stream))
            self.left[sender, receiver] -= rate
            spare[sender] -= 1
            if not spare[sender]:
                del spare[sender]
            if copies[receiver]:
                spare[receiver] = copies[receiver]
        return True
