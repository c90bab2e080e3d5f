"""Which hosts to look at for a query, when there are thousands: first clusters, then hosts in them.

A cluster is a group of hosts with wide links among each other, or neighbours in the list where all links are
equal. For a query these hosts are looked at: the clusters that have most of its streams, and of those with as
many the ones with most CPU left; of every part of the query that runs, the holders that can send most; and
the hosts with most CPU left anywhere, one of a cluster. What does not fit there is sought among all hosts.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from headrace.planners.admission.problem import Stream
from headrace.planners.admission.state import State

Ints = NDArray[np.int64]
SIZE = 32
"""Hosts of a cluster."""
CHOSEN = 2
"""Clusters that are looked at in full."""
SENDERS = 8
"""Holders of each part."""


class Clusters:
    def __init__(self, state: State) -> None:
        self._state = state
        self._of = _grouped(state)
        self._members = [np.flatnonzero(self._of == i) for i in range(int(self._of.max()) + 1)]

    def candidates(self, stream: Stream) -> Ints:
        state = self._state
        room = state.cpu_limit - state.cpu
        present = np.zeros(len(self._members))
        found: list[Ints] = []
        for part in self._running(stream):
            holders = np.fromiter(state.have[part], dtype=np.int64)
            present[np.unique(self._of[holders])] += 1
            spare = state.out_limit[holders] - state.out[holders]
            found.append(holders[np.argsort(-spare, kind="stable")[:SENDERS]])
        widest = np.array([members[room[members].argmax()] for members in self._members])
        chosen = np.lexsort((-room[widest], -present))[:CHOSEN]
        found += [self._members[i] for i in chosen]
        found.append(widest[np.argsort(-room[widest], kind="stable")[:SIZE]])
        return np.unique(np.concatenate(found))

    def _running(self, stream: Stream) -> list[Stream]:
        names = sorted(stream)
        parts = (frozenset(p) for size in range(1, len(names) + 1) for p in combinations(names, size))
        return [part for part in parts if self._state.have.get(part)]


def _grouped(state: State) -> Ints:
    """The cluster of each host."""
    hosts = len(state.cpu)
    if state.links is None or not state.link_limit.ndim:
        return np.arange(hosts) // SIZE
    of = np.full(hosts, -1)
    for number in range(-(-hosts // SIZE)):
        left = np.flatnonzero(of < 0)
        first = left[0]
        width = np.minimum(state.link_limit[first, left], state.link_limit[left, first])
        width[0] = np.inf
        of[left[np.argsort(-width, kind="stable")[:SIZE]]] = number
    return of
