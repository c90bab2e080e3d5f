"""The distribution problem in its public form, solved, and given back with a table that anyone can check."""

from __future__ import annotations

import time
from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from headrace.errors import UserError
from headrace.service.problem_file import ProblemFile
from headrace.service.solve_distribution_file import Given, Rebalance, read_distribution
from headrace.service.solve_request import Request, optimiser_named

if TYPE_CHECKING:
    from headrace.planners.distribution.costs import CostTable
    from headrace.planners.distribution.problem import Problem
    from headrace.planners.distribution.rules import History, Move
    from headrace.planners.distribution.usage import SiteUsage, Usage

OPTIONS: tuple[str, ...] = ()
"""Of `headrace solve distribution`: all there is to set is in the problem."""


class SiteData(TypedDict):
    id: str
    operators: list[str]
    load: float
    cpu_used: float
    memory_used: float
    network_used: float
    connections: int
    cost: NotRequired[float]
    """By the cost model; only of sites that answer, and only in a rebalance."""
    cost_before: NotRequired[float]


class ConnectionsData(TypedDict):
    total: int
    between: int
    streams: int
    results: int
    channels: int
    max_per_site: int


MoveData = TypedDict(
    "MoveData",
    {"operators": list[str], "from": str, "to": str, "gain": float, "cost": float, "why": str},
)


class HistoryData(TypedDict):
    baseline: dict[str, float]
    moved: dict[str, float]
    uneven_since: float | None


class ComparedData(TypedDict):
    connections: int
    max_per_site: int
    max_load: float


class DistributionAnswer(TypedDict):
    problem: Literal["distribution"]
    question: Literal["distribute", "rebalance"]
    planner: str
    optimiser: str
    table: dict[str, str]
    sites: list[SiteData]
    connections: ConnectionsData
    max_load: float
    beyond: list[str]
    """Limits that are passed, in words."""
    overloaded: list[str]
    seconds: float
    regions: NotRequired[dict[str, str]]
    compared: NotRequired[dict[str, ComparedData]]
    model: NotRequired[str]
    moves: NotRequired[list[MoveData]]
    why: NotRequired[str]
    costs: NotRequired[dict[str, dict[str, float]]]
    """Site -> operator -> its share of the cost of the site, before any move (Equation 5)."""
    history: NotRequired[HistoryData]


def distribution_optimisers() -> Mapping[str, str]:
    from headrace.planners.distribution.solve import PATTERNS, POLICY_NAMES

    return {**PATTERNS, **POLICY_NAMES}


def solve_distribution(file: ProblemFile, request: Request) -> DistributionAnswer:
    """A policy is asked where `--with` names one or the problem has a `rebalance`; otherwise a pattern."""
    from headrace.planners.distribution.solve import POLICY_NAMES

    named = None
    if request.optimiser is not None and request.optimiser.lower() != "ours":
        named = optimiser_named(request.optimiser, distribution_optimisers())
    given = read_distribution(file)
    if not given.problem.alive:
        hint = "Bring one up, or take its `alive: false` back."
        raise file.wrong(("sites",), "no site is alive, so there is nowhere to run anything", hint)
    if named in POLICY_NAMES or (named is None and given.rebalance is not None):
        return _rebalanced(file, given, named)
    if given.rebalance is not None:
        hint = f"The policies: {', '.join(POLICY_NAMES)}. Take `rebalance` out to distribute anew."
        raise UserError(f"{named} is a pattern, and this problem asks for a rebalance", hint=hint)
    if named == "tiers":
        _refuse_orphans(file, given.problem)
    return _distributed(given.problem, named)


def _refuse_orphans(file: ProblemFile, problem: Problem) -> None:
    """Raises UserError at the place of an operator that no query has."""
    wanted = frozenset[str]().union(*problem.members.values())
    for number, one in enumerate(problem.operators):
        if one.id not in wanted:
            message = f'operator "{one.id}" belongs to no query, so it goes to no region'
            raise file.wrong(("operators", number, "id"), message, "Name it as an output of a query.")


def _distributed(problem: Problem, pattern: str | None) -> DistributionAnswer:
    from headrace.planners.distribution.solve import DEFAULT_PATTERN, distribute

    started = time.perf_counter()
    found = distribute(problem, pattern or DEFAULT_PATTERN)
    seconds = time.perf_counter() - started
    answer = _answer(problem, "distribute", found.pattern, found.table, found.usage, seconds)
    if found.regions:
        answer["regions"] = dict(found.regions)
    answer["compared"] = {
        name: _compared(distribute(problem, name).usage) for name in ("grouping", "round-robin")
    }
    return answer


def _rebalanced(file: ProblemFile, given: Given, named: str | None) -> DistributionAnswer:
    from headrace.planners.distribution.costs import MODELS
    from headrace.planners.distribution.redistribute import redistribute
    from headrace.planners.distribution.rules import History, Rules
    from headrace.planners.distribution.solve import DEFAULT_MODEL, DEFAULT_POLICY
    from headrace.planners.distribution.usage import usage

    problem = given.problem
    asked = given.rebalance or Rebalance(DEFAULT_POLICY, DEFAULT_MODEL, Rules(), History(), 0.0)
    if not problem.table:
        raise file.wrong((), "there is no table: nothing runs yet that could be moved", "Give `table`.")
    for one in problem.operators:
        if one.id not in problem.table:
            raise file.wrong(("table",), f'operator "{one.id}" runs nowhere yet', "Say its site in `table`.")
    started = time.perf_counter()
    decision = redistribute(
        problem, named or asked.policy, MODELS[asked.model], asked.rules, asked.history, asked.now
    )
    seconds = time.perf_counter() - started
    used = usage(problem, decision.table)
    answer = _answer(problem, "rebalance", decision.policy, decision.table, used, seconds)
    for site in answer["sites"]:
        if site["id"] in decision.after.sites:
            site["cost"] = decision.after.sites[site["id"]].cost
            site["cost_before"] = decision.before.sites[site["id"]].cost
    answer["model"] = asked.model
    answer["moves"] = [move_data(move) for move in decision.moves]
    answer["why"] = decision.why
    answer["costs"] = _shares(decision.before)
    answer["history"] = history_data(decision.history)
    return answer


def _answer(
    problem: Problem,
    question: Literal["distribute", "rebalance"],
    name: str,
    table: Mapping[str, str],
    used: Usage,
    seconds: float,
) -> DistributionAnswer:
    from headrace.planners.distribution.usage import faults, overloaded

    return DistributionAnswer(
        problem="distribution",
        question=question,
        planner=name,
        optimiser=name,
        table={one.id: table[one.id] for one in problem.operators},
        sites=[_site(one) for one in used.sites.values()],
        connections=_connections(used),
        max_load=used.max_load,
        beyond=list(faults(problem, table)),
        overloaded=list(overloaded(used)),
        seconds=seconds,
    )


def _site(one: SiteUsage) -> SiteData:
    return SiteData(
        id=one.site.id,
        operators=one.operators,
        load=one.load,
        cpu_used=one.cpu,
        memory_used=one.memory,
        network_used=one.network,
        connections=one.connections,
    )


def _connections(used: Usage) -> ConnectionsData:
    found = used.connections
    return ConnectionsData(
        total=found.total,
        between=found.between,
        streams=found.streams,
        results=found.results,
        channels=found.channels,
        max_per_site=used.max_connections,
    )


def _compared(used: Usage) -> ComparedData:
    return ComparedData(
        connections=used.connections.total, max_per_site=used.max_connections, max_load=used.max_load
    )


def _shares(costs: CostTable) -> dict[str, dict[str, float]]:
    return {site: {name: one.share(name) for name in one.operators} for site, one in costs.sites.items()}


def move_data(move: Move) -> MoveData:
    return {
        "operators": list(move.operators),
        "from": move.source,
        "to": move.target,
        "gain": move.gain,
        "cost": move.cost,
        "why": move.why,
    }


def history_data(history: History) -> HistoryData:
    """As `rebalance.history` is read again."""
    return HistoryData(
        baseline=dict(history.baseline), moved=dict(history.moved), uneven_since=history.uneven_since
    )


def problem_data(problem: Problem) -> dict[str, object]:
    """The problem as a file has it; what has its default value is left out."""
    sites = [
        _without(
            {
                "id": one.id,
                "cpu": one.cpu,
                "memory": one.memory,
                "network": one.network,
                "connections": one.connections,
                "alive": one.alive,
                "region": one.region,
                "cpu_other": one.cpu_other,
                "memory_other": one.memory_other,
            }
        )
        for one in problem.sites
    ]
    operators = [
        {
            "id": one.id,
            "kind": one.kind,
            "inputs": list(one.inputs),
            "cpu": one.cpu,
            "rate": one.rate,
            "state_bytes": one.state_bytes,
            "width": one.width,
            "movable": one.movable,
        }
        for one in problem.operators
    ]
    return {
        "sites": sites,
        "streams": [_without({"id": s.id, "rate": s.rate, "site": s.site}) for s in problem.streams],
        "operators": operators,
        "queries": [
            _without({"id": q.id, "outputs": list(q.outputs), "site": q.site}) for q in problem.queries
        ],
        "links": [
            {"from": link.source, "to": link.target, "bandwidth": link.bandwidth} for link in problem.links
        ],
        "connection_cpu": problem.connection_cpu,
        "row_cpu": problem.row_cpu,
        "table": dict(problem.table),
    }


def _without(data: dict[str, object]) -> dict[str, object]:
    """Without what says nothing: no site, no limit (which JSON has no number for)."""
    return {
        name: value
        for name, value in data.items()
        if value is not None and not (isinstance(value, float) and not isfinite(value))
    }
