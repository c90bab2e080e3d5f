"""SODA's miniW: operators of all queries move to other hosts, or swap theirs, one or two at a time.

A move takes everything with it: inputs are received at the new host, and all who read the output get it from
there. Moves are tried on the state and taken back when they do not pay: when making room, if the limits are
passed by as much as before; when balancing, if the value does not fall or a limit is passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from headrace.planners.admission.problem import Host, Operator, Stream, cpu_of
from headrace.planners.admission.soda_placing import Placing, passed
from headrace.planners.admission.state import DELIVERY, Floats

ROUNDS = 12
"""Moves or swaps done to make room for one query."""
OPERATORS = 12
"""Of the host that has too much to do, tried in one round."""
PARTNERS = 6
"""Hosts with which one of them may be swapped."""
BALANCING = 8
"""Moves or swaps done after an epoch."""
LEAST = 1e-12


class Swaps:
    def __init__(self, placing: Placing) -> None:
        self._placing, self._state = placing, placing.state
        self.why = ""

    def make_room(self, new: Sequence[Operator], target: Stream) -> bool:
        """Place operators where they pass limits least, then bring all hosts within them. False: it did not
        work; the caller takes back what was done."""
        for one in new:
            price, over = self._placing.prices(one, delivered=one.output == target)
            self._placing.put(int(np.lexsort((price, over))[0]), one)
        self._state.deliver(target, self._placing.maker(target))
        for _ in range(ROUNDS):
            over = self._over()
            host = int(over.argmax())
            if over[host] <= 0.0:
                return True
            self.why = f"no place for its operators; host {self._state.problem.hosts[host].id} has too little"
            if not self._step(host, lambda: float(self._over().sum())):
                return False
        return not (self._over() > 0.0).any()

    def improve(self) -> None:
        """Balance the load between the host that has most to do and the others."""
        for _ in range(BALANCING):
            host = int((self._state.cpu * self._placing.share).argmax())
            if not self._step(host, self._value):
                return

    def _value(self) -> float:
        return float("inf") if (self._over() > 0.0).any() else self._placing.value()

    def _over(self) -> Floats:
        """By how much every host passes its limits, links at the sender."""
        state = self._state
        over = passed(state.cpu, state.cpu_limit) + passed(state.memory, state.memory_limit)
        over = over + passed(state.into, state.into_limit) + passed(state.out, state.out_limit)
        if state.links is not None:
            over = over + passed(state.links, np.broadcast_to(state.link_limit, state.links.shape)).sum(
                axis=1
            )
        return over

    def _step(self, host: Host, worth: Callable[[], float]) -> bool:
        """The best of the moves and swaps that relieve a host, if it pays."""
        state, mark = self._state, self._state.mark()
        now = best = worth()
        chosen: tuple[Change, ...] = ()
        for changes in self._changes(host):
            for one, to in changes:
                relocate(self._placing, one, to)
            value = worth()
            state.undo_to(mark)
            if value < best - LEAST:
                best, chosen = value, changes
        for one, to in chosen:
            relocate(self._placing, one, to)
        return best < now - LEAST

    def _changes(self, host: Host) -> Iterator[tuple[Change, ...]]:
        """Single moves to the hosts with most to spare, and swaps for a smaller operator there."""
        state = self._state
        others = np.argsort(state.cpu * self._placing.share, kind="stable").tolist()
        others = [other for other in others if other != host][:PARTNERS]
        mine = self._largest(host)[:OPERATORS]
        for one in mine:
            for other in others:
                yield ((one, other),)
                for back in self._largest(other)[:PARTNERS]:
                    if cpu_of(state.problem, back) < cpu_of(state.problem, one):
                        yield (one, other), (back, host)

    def _largest(self, host: Host) -> list[Operator]:
        problem = self._state.problem
        return sorted(
            self._state.running[host],
            key=lambda one: (-cpu_of(problem, one), sorted(one.left), sorted(one.right)),
        )


Change = tuple[Operator, Host]


def relocate(placing: Placing, one: Operator, to: Host) -> None:
    """Run an operator elsewhere and keep its readers supplied, limits or not."""
    state, host, stream = placing.state, placing.maker(one.output), one.output
    if host == to:
        return
    users = state.users[host, stream]
    receivers = sorted(user for user in users if isinstance(user, int) and user != DELIVERY)
    read_here = any(isinstance(user, Operator) for user in users)
    delivered = DELIVERY in users
    for receiver in receivers:
        state.unsend(host, receiver, stream)
    if delivered:
        state.undeliver(stream)
    state.unplace(host, one)
    placing.put(to, one)
    for part in (one.left, one.right):
        state.drop_unused(host, part)
    for receiver in [host] if read_here else []:
        state.send(to, receiver, stream)
    for receiver in receivers:
        if receiver != to:
            state.send(to, receiver, stream)
    if delivered:
        state.deliver(stream, to)
