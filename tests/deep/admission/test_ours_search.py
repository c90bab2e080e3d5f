"""The programme over (set of streams, host) against prices found by relaxing until nothing changes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from headrace.planners.admission.check import violations
from headrace.planners.admission.ours_search import IMPOSSIBLE, Prices, Table, carry_out, splits
from headrace.planners.admission.problem import AdmissionProblem, Host, Stream, cpu_of, operator
from headrace.planners.admission.state import State
from tests.unit.planners.admission.tiny import tiny

Had = dict[tuple[Stream, Host], float]


def some_prices(rng: np.random.Generator, hosts: int) -> Prices:
    cpu, into, out = (rng.uniform(0.1, 3.0, size=hosts) for _ in range(3))
    return Prices(cpu, into, out, carry=lambda stream: 1.0, worth=lambda stream: 0.0)


def relaxed(problem: AdmissionProblem, state: State, prices: Prices, target: Stream) -> Had:
    """The price of having every part everywhere, each step alone within the limits. Bellman and Ford's way:
    all steps from all prices, again and again."""
    hosts = range(len(problem.hosts))
    names = sorted(target)
    parts = [frozenset(p) for size in range(1, len(names) + 1) for p in combinations(names, size)]
    had = {(s, h): 0.0 if h in state.have.get(s, {}) else np.inf for s in parts for h in hosts}
    for _ in range(2 * len(parts) * len(hosts)):
        for stream in parts:
            for host in hosts:
                joins = _joins(problem, state, prices, had, stream, host)
                had[stream, host] = min(
                    had[stream, host], joins, *_sent(problem, state, prices, had, stream, host)
                )
    return had


def _joins(
    problem: AdmissionProblem, state: State, prices: Prices, had: Had, stream: Stream, host: Host
) -> float:
    best = np.inf
    for part in (p for p, h in had if h == host and p < stream):
        one = operator(part, stream - part)
        if state.fits(host, one):
            cpu = cpu_of(problem, one) * prices.cpu[host]
            best = min(best, had[part, host] + had[stream - part, host] + cpu)
    return float(best)


def _sent(
    problem: AdmissionProblem, state: State, prices: Prices, had: Had, stream: Stream, host: Host
) -> list[float]:
    rate = problem.rate(stream)
    return [
        had[stream, sender] + rate * (prices.out[sender] + prices.into[host])
        for sender in range(len(problem.hosts))
        if sender != host and state.can_send(sender, host, rate)
    ]


@pytest.mark.parametrize("links", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_prices_are_the_least(seed: int, links: bool) -> None:
    problem = tiny(seed, links=links)
    rng = np.random.default_rng(seed)
    prices = some_prices(rng, len(problem.hosts))
    state, admitted = State(problem), []
    for query in problem.queries:
        table = Table(state, prices, query.streams)
        expected = relaxed(problem, state, prices, query.streams)
        for mask, stream in enumerate(table.sets[1:], start=1):
            wanted = [expected[stream, host] for host in range(len(problem.hosts))]
            assert table.least[mask].tolist() == pytest.approx(wanted)
        mark, before = state.mark(), priced(state, prices)
        host, price = table.delivery()
        if price < IMPOSSIBLE and carry_out(table, host):
            assert priced(state, prices) - before == pytest.approx(table.least[-1][host])
            if query.streams not in state.deliveries and state.can_deliver(host, query.streams):
                state.deliver(query.streams, host)
                admitted.append(query.id)
                assert violations(problem, state.plan(), admitted) == []
                continue
        state.undo_to(mark)


def priced(state: State, prices: Prices) -> float:
    """All that runs, at these prices; deliveries apart."""
    plan, problem = state.plan(), state.problem
    work = sum(cpu_of(problem, one) * prices.cpu[host] for host, one in plan.placements)
    ways = sum(problem.rate(s) * (prices.out[a] + prices.into[b]) for a, b, s in plan.flows)
    return float(work + ways)


def test_a_soft_table_passes_limits_and_pays() -> None:
    problem = tiny(3)
    prices = some_prices(np.random.default_rng(0), len(problem.hosts))
    query = problem.queries[0]
    hard, soft = (
        Table(State(problem), prices, query.streams),
        Table(State(problem), prices, query.streams, 1.0),
    )
    free = Table(State(problem), prices, query.streams, 0.0)
    assert np.all(soft.least <= hard.least + 1e-9)
    assert np.all(free.least <= soft.least + 1e-9)
    assert np.all(np.isfinite(soft.least[1:]))


def test_every_cut_once() -> None:
    cuts = {split.mask: len(split.left) for split in splits(4)}
    assert cuts == {m: 2 ** (bin(m).count("1") - 1) - 1 for m in range(1, 16) if bin(m).count("1") > 1}
    assert all(np.all(s.left & s.right == 0) and np.all(s.left | s.right == s.mask) for s in splits(4))


def test_what_is_lost_of_a_host_is_paid() -> None:
    """30 of 10 fill a host of 300; once 10.1 is there only 28 more fit, and another 10.1 loses nothing."""
    none = np.zeros(3)
    prices = Prices(np.ones(3), none, none, lambda s: 1.0, lambda s: 0.0, unit=10.0)
    rooms = np.array([300.0, 289.9, 290.0])
    extra = prices.cpu_price(np.array(10.1), rooms) - 10.1
    assert extra[0] == extra[2] > 4.0
    assert extra[1] < 0.0
    assert prices.cpu_price(np.array(20.0), rooms).tolist() == pytest.approx([20.0] * 3)
