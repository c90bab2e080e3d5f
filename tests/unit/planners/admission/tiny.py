"""Small random problems whose limits bind, and hand-made ones."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from headrace.planners.admission.problem import AdmissionProblem, Base, HostLimits, Query


def tiny(seed: int, *, links: bool = False, most: int = 3) -> AdmissionProblem:
    """Two to `most` hosts and base streams, one to three queries. `links`: narrow ones."""
    rng = np.random.default_rng(seed)
    count, bases, asked = (
        int(rng.integers(low, high)) for low, high in ((2, most + 1), (2, most + 1), (1, 4))
    )
    names = "abcdef"[:bases]
    streams = {name: Base(name, int(rng.integers(count)), float(rng.integers(1, 5))) for name in names}
    sets = [frozenset(some) for size in range(2, bases + 1) for some in combinations(names, size)]
    rates = {some: float(rng.integers(1, 7)) / 2 for some in sets}
    small = [some for some in sets if len(some) <= 3]
    queries = [Query(f"q{i}", small[int(rng.integers(len(small)))]) for i in range(asked)]
    hosts = [
        HostLimits(
            f"h{i}",
            float(rng.integers(3, 16)),
            float(rng.integers(1, 10)),
            float(rng.integers(1, 10)),
            float(rng.integers(3, 16)) if rng.random() < 0.3 else float("inf"),
        )
        for i in range(count)
    ]
    width = rng.integers(1, 6, size=(count, count)).astype(np.float64) if links else 100.0
    return AdmissionProblem(tuple(hosts), width, streams, rates, tuple(queries), memory_cost=1.0)


def ab_problem(*hosts: HostLimits, link: float = 100.0) -> AdmissionProblem:
    """Streams a at the first host and b at the second, 4 each; their join has rate 1 and takes 8 CPU."""
    streams = {"a": Base("a", 0, 4.0), "b": Base("b", 1, 4.0)}
    both = frozenset("ab")
    return AdmissionProblem(hosts, link, streams, {both: 1.0}, (Query("q", both),))


def relay_problem() -> AdmissionProblem:
    """Stream a is needed by two hosts, and its home may send it only once.

    Every other host i has its own partner stream, too fast to leave it, so q_i can only run there. The second
    copy of a must come from a host that received the first.
    """
    streams = {"a": Base("a", 0, 2.0)} | {f"p{i}": Base(f"p{i}", i, 5.0) for i in (1, 2)}
    wanted = [frozenset({"a", f"p{i}"}) for i in (1, 2)]
    hosts = [HostLimits("home", 0.0, 0.0, 3.0), *(HostLimits(f"h{i}", 7.0, 4.0, 4.0) for i in (1, 2))]
    queries = [Query(f"q{i}", streams_) for i, streams_ in enumerate(wanted, start=1)]
    return AdmissionProblem(tuple(hosts), 100.0, streams, dict.fromkeys(wanted, 1.0), tuple(queries))


def crowded_problem() -> AdmissionProblem:
    """The first query's join is cheapest at host 0. The second reads its output, and can only run at host 0,
    where there is CPU for one of the two: the first has to move."""
    streams = {"a": Base("a", 0, 4.0), "b": Base("b", 1, 2.0), "c": Base("c", 0, 6.0)}
    rates = {frozenset("ab"): 1.0, frozenset("abc"): 0.5}
    hosts = (HostLimits("left", 7.0, 3.0, 5.0), HostLimits("right", 6.0, 4.0, 4.0))
    queries = (Query("first", frozenset("ab")), Query("second", frozenset("abc")))
    return AdmissionProblem(hosts, 100.0, streams, rates, queries)


def eight_streams() -> AdmissionProblem:
    """One query for the most streams it may have, on four hosts with room for it."""
    names = "abcdefgh"
    streams = {name: Base(name, i % 4, 10.0) for i, name in enumerate(names)}
    sets = [frozenset(some) for size in range(2, 9) for some in combinations(names, size)]
    hosts = tuple(HostLimits(i, 300.0, 100.0, 100.0) for i in range(4))
    rates = {some: 0.1 * len(some) for some in sets}
    return AdmissionProblem(hosts, 1000.0, streams, rates, (Query("q", frozenset(names)),))
