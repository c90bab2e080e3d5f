"""The loop over the queries, and what it catches: planners that are wrong about their costs or trees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from headrace.errors import InternalError, UserError
from headrace.planners.placement import solve as loop
from headrace.planners.placement.deployed import Deployed
from headrace.planners.placement.network import Prepared
from headrace.planners.placement.problem import (
    BaseStream,
    Join,
    Leaf,
    Network,
    Options,
    Placed,
    PlacementProblem,
    Query,
    Reused,
)
from headrace.planners.placement.solve import DEFAULT_PLANNER, PLANNERS, new_joins, solve

LINE = PlacementProblem(
    network=Network(("a", "b", "c"), ((0, 1, 1.0), (1, 2, 2.0))),
    streams={"A": BaseStream("A", 0, 10.0), "B": BaseStream("B", 1, 4.0)},
    selectivities={frozenset("AB"): 0.1},
    queries=(Query("x", ("A", "B"), 2), Query("y", ("B", "A"), 2), Query("z", ("A",), 1)),
)
AT_SINK = Join(Leaf("A", 0), Leaf("B", 1), 2)

Spoil = Callable[[Placed], Placed]


class AtTheSink:
    """Sends every stream to the sink: A over 3, B over 2. The second query reads what the first has there."""

    def __init__(self, spoil: Spoil, problem: PlacementProblem, prepared: Prepared, options: Options) -> None:
        self._spoil = spoil

    def place(self, query: Query, deployed: Deployed) -> Placed:
        offers = deployed.offers(query)
        if len(query.streams) == 1:
            return Placed(query.id, Leaf("A", 0), 10.0, 1)
        if offers:
            return Placed(query.id, offers[0].as_leaf(), 0.0, 1)
        return self._spoil(Placed(query.id, AT_SINK, 38.0, 1, seconds=99.0))


def _use(monkeypatch: pytest.MonkeyPatch, spoil: Spoil = lambda placed: placed) -> None:
    monkeypatch.setattr(loop, "_loaded", lambda path: lambda *args: AtTheSink(spoil, *args))
    monkeypatch.setattr(loop, "warm", lambda name, clock: 0.25)


class Clock:
    """A second later at every look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def test_one_query_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch)
    seen: list[tuple[int, int]] = []
    plan = solve(LINE, "npc", Options(), Clock(), lambda done, of: seen.append((done, of)))
    assert [placed.cost for placed in plan.queries] == [38.0, 0.0, 10.0]
    assert (plan.planner, plan.total_cost) == ("npc", 48.0)
    second = plan.queries[1].tree
    assert isinstance(second, Reused)
    assert (second.query, second.site) == ("x", 2)
    assert [new_joins(placed.tree) for placed in plan.queries] == [1, 0, 0]
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_times_are_those_of_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch)
    plan = solve(LINE, "npc", Options(), Clock())
    assert [placed.seconds for placed in plan.queries] == [1.0, 1.0, 1.0]
    assert (plan.seconds, plan.prepare_seconds, plan.compile_seconds) == (7.0, 2.0, 0.25)


def test_without_reuse_nothing_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch)
    plan = solve(replace(LINE, reuse=False), "npc", Options(), Clock())
    assert [placed.cost for placed in plan.queries] == [38.0, 38.0, 10.0]


@pytest.mark.parametrize(
    ("cost", "fine"),
    [(38.0 * (1 + 1e-12), True), (38.0 * (1 + 1e-8), False), (0.0, False), (float("nan"), False)],
)
def test_a_wrong_cost_is_named(monkeypatch: pytest.MonkeyPatch, cost: float, fine: bool) -> None:
    _use(monkeypatch, lambda placed: replace(placed, cost=cost))
    if fine:
        assert solve(LINE, "npc", Options(), Clock()).queries[0].cost == 38.0
        return
    with pytest.raises(InternalError, match=r"npc says that x adds .*, but it adds 38"):
        solve(LINE, "npc", Options(), Clock())


def test_a_deployment_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, lambda placed: replace(placed, tree=Leaf("A", 0)))
    with pytest.raises(InternalError, match="npc gives no deployment: x does not join exactly its streams"):
        solve(LINE, "npc", Options(), Clock())
    _use(monkeypatch)
    forbidden = replace(LINE, forbidden=frozenset({2}))
    with pytest.raises(InternalError, match="npc gives no deployment: x joins at site 2"):
        solve(forbidden, "npc", Options(), Clock())


def test_a_query_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, lambda placed: replace(placed, query="y"))
    with pytest.raises(InternalError, match="npc does not deploy every query once"):
        solve(LINE, "npc", Options(), Clock())


def test_cpu_is_for_exact_only(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = replace(LINE, cpu={1: 5.0})
    asked: list[str] = []

    def loaded(path: str) -> object:
        asked.append(path)
        return lambda *args: AtTheSink(lambda placed: placed, *args)

    monkeypatch.setattr(loop, "_loaded", loaded)
    monkeypatch.setattr(loop, "warm", lambda name, clock: 0.0)
    solve(limited, DEFAULT_PLANNER, Options(), Clock())
    assert asked == ["limits.Limited"]
    for name in set(PLANNERS) - {DEFAULT_PLANNER}:
        with pytest.raises(UserError, match=f"{name} keeps no limits of cpu"):
            solve(limited, name, Options(), Clock())


def test_a_lost_stream_is_the_users_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch)
    cut = replace(LINE, network=Network(("a", "b", "c"), ((1, 2, 2.0),)))
    with pytest.raises(UserError, match='query "x" cannot be deployed: stream "A" cannot reach its sink'):
        solve(cut, "npc", Options(), Clock())


def test_a_planner_is_warmed_once() -> None:
    clock = Clock()
    assert loop.warm("plan-then-deploy", clock) >= 0
    assert loop.warm("plan-then-deploy", clock) == 0.0


def test_the_default_comes_first() -> None:
    assert next(iter(PLANNERS)) == DEFAULT_PLANNER
