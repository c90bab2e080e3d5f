"""What the bookkeeping says against what the plan says, and that going back goes back all the way."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.planners.admission.check import usage, violations
from headrace.planners.admission.problem import AdmissionProblem, Plan, operator
from headrace.planners.admission.state import DELIVERY, HOME, State
from headrace.planners.admission.workload import Setup, paper_problem

A, B, C = (frozenset({name}) for name in ("s0", "s1", "s2"))


def small(**how: float) -> AdmissionProblem:
    return paper_problem(5, Setup(hosts=4, streams=6, queries=5, **how))  # type: ignore[arg-type]


def random_step(state: State, rng: np.random.Generator) -> None:
    """Anything that may be done now."""
    hosts = range(len(state.cpu))
    streams = sorted((s for s in state.have if state.have[s]), key=sorted)
    stream = streams[int(rng.integers(len(streams)))]
    held = sorted(state.have[stream])
    host = held[int(rng.integers(len(held)))]
    kind = int(rng.integers(4))
    others = [h for h in hosts if h not in state.have[stream]]
    partners = [s for s in streams if host in state.have[s] and not s & stream and len(s | stream) <= 4]
    if kind == 0 and others:
        state.send(host, others[int(rng.integers(len(others)))], stream)
    elif kind == 1 and partners:
        one = operator(stream, partners[int(rng.integers(len(partners)))])
        if host not in state.have[one.output]:
            state.place(host, one)
    elif kind == 2:
        state.undeliver(stream) if stream in state.deliveries else state.deliver(stream, host)
    else:
        state.drop_unused(host, stream)


def picture(state: State) -> tuple[object, ...]:
    """All that can be seen of a state, numbers apart."""
    have = {(s, h): source for s, holders in state.have.items() for h, source in holders.items()}
    users = {key: frozenset(users) for key, users in state.users.items() if users}
    around = {name: frozenset(streams) for name, streams in state.around.items() if streams}
    held = {host: frozenset(streams) for host, streams in state.held.items() if streams}
    return have, users, around, held, {s: dict(m) for s, m in state.made.items()}, state.plan()


def totals(state: State) -> list[float]:
    arrays = (state.cpu, state.memory, state.into, state.out)
    return [*np.concatenate(arrays).tolist(), state.total_cpu, state.total_flow]


@pytest.mark.parametrize("seed", range(20))
def test_use_is_that_of_the_plan(seed: int) -> None:
    problem, rng = small(), np.random.default_rng(seed)
    state = State(problem)
    for _ in range(60):
        random_step(state, rng)
        used = usage(problem, state.plan())
        for kind, kept in (("cpu", state.cpu), ("in", state.into), ("out", state.out)):
            assert kept.tolist() == pytest.approx(used[kind], abs=1e-9)
    assert state.total_cpu == pytest.approx(state.cpu.sum())
    assert state.total_flow == pytest.approx(state.into.sum())
    without_source = [
        v for v in violations(problem, Plan(*_runs(state))) if "never has" in v or "without" in v
    ]
    assert without_source == []


def _runs(state: State) -> tuple[frozenset, frozenset]:  # type: ignore[type-arg]
    return state.plan().placements, state.plan().flows


@pytest.mark.parametrize("seed", range(20))
def test_undo_goes_back_to_the_mark(seed: int) -> None:
    problem, rng = small(), np.random.default_rng(seed)
    state = State(problem)
    for _ in range(15):
        random_step(state, rng)
    mark, before, numbers = state.mark(), picture(state), totals(state)
    for _ in range(40):
        random_step(state, rng)
    state.undo_to(mark)
    assert picture(state) == before
    assert totals(state) == pytest.approx(numbers, abs=1e-9)


def test_what_nobody_needs_goes_with_all_it_needed() -> None:
    problem = small()
    state = State(problem)
    home, other = problem.streams["s0"].host, problem.streams["s1"].host
    away = next(h for h in range(4) if h not in (home, other))
    fresh = picture(state)
    state.send(home, away, A)
    state.send(other, away, B)
    state.place(away, operator(A, B))
    state.deliver(A | B, away)
    state.drop_unused(away, A | B)
    assert (A | B) in state.made
    assert state.users[away, A | B] == {DELIVERY}
    state.undeliver(A | B)
    state.drop_unused(away, A | B)
    assert picture(state) == fresh
    assert state.have[A][home] is HOME
    assert totals(state) == pytest.approx([0.0] * 18)


def test_links_are_watched_where_they_can_bind() -> None:
    wide, narrow = State(small()), State(small(link=15.0))
    assert wide.links is None
    home = narrow.problem.streams["s0"].host
    other = (home + 1) % 4
    assert narrow.can_send(home, other, 10.0)
    narrow.send(home, other, A)
    assert not narrow.can_send(home, other, 10.0)
    assert narrow.can_send(other, home, 10.0)
    assert wide.link_room(home, other) == float("inf")


def test_supersets_are_those_that_run() -> None:
    problem = small()
    state = State(problem)
    home = problem.streams["s0"].host
    for stream in (B, C):
        if home not in state.have[stream]:
            state.send(problem.streams[min(stream)].host, home, stream)
    state.place(home, operator(A, B))
    state.place(home, operator(A | B, C))
    assert state.supersets(A | B) == [A | B, A | B | C]
    assert state.supersets(A | C) == [A | B | C]
    assert state.supersets(frozenset({"s0", "s4"})) == []
