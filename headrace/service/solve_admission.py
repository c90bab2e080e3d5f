"""The admission problem in its public form, solved, and given back with a plan that anyone can check."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from headrace.service.problem_file import ProblemFile
from headrace.service.solve_admission_adapted import AdaptedData, adapted_data
from headrace.service.solve_admission_file import Given, read_admission
from headrace.service.solve_admission_names import Name
from headrace.service.solve_request import Request, optimiser_named

if TYPE_CHECKING:
    from headrace.planners.admission.observed import Running
    from headrace.planners.admission.problem import AdmissionAnswer as Solved
    from headrace.planners.admission.problem import Decision, Host, HostLimits, Options, Plan, Removed, Stream

OPTIONS = ("seed", "deadline", "batch", "choosy")
"""Of `headrace solve admission`."""
MOST_FOR_CEILING = 2_000
"""With more queries than that, the bound that no plan can pass takes minutes."""


class AdmittedData(TypedDict):
    id: Name
    admitted: bool
    why: str
    """Of a refusal; empty for a query that is admitted."""
    milliseconds: float
    proven: bool
    moved: int
    removed: NotRequired[bool]
    """True: it was admitted, and left."""


class RemovalData(TypedDict):
    id: Name
    removed: bool
    why: str
    """Where there was nothing to remove."""
    milliseconds: float


class OperatorData(TypedDict):
    host: Name
    inputs: list[list[Name]]
    output: list[Name]
    cpu: float
    memory: NotRequired[float]


FlowData = TypedDict("FlowData", {"from": Name, "to": Name, "stream": list[Name], "rate": float})


class DeliveryData(TypedDict):
    stream: list[Name]
    host: Name


class RunningData(TypedDict):
    operators: list[OperatorData]
    flows: list[FlowData]
    deliveries: list[DeliveryData]


HostData = TypedDict(
    "HostData",
    {
        "id": Name,
        "cpu": float,
        "cpu_used": float,
        "in": float,
        "in_used": float,
        "out": float,
        "out_used": float,
        "memory": NotRequired[float],
        "memory_used": NotRequired[float],
    },
)
LinkData = TypedDict("LinkData", {"from": Name, "to": Name, "bandwidth": float, "used": float})


class AdmissionAnswer(TypedDict):
    problem: Literal["admission"]
    planner: str
    optimiser: str
    queries: list[AdmittedData]
    admitted: int
    refused: int
    plan: RunningData
    hosts: list[HostData]
    links: list[LinkData]
    """Those that carry something."""
    seconds: float
    offline_bound: NotRequired[float]
    notes: NotRequired[dict[str, str]]
    adapted: NotRequired[AdaptedData]
    """Of a plan that ran: what is done about what was observed."""
    removals: NotRequired[list[RemovalData]]
    """In order; where the problem has some."""


def admission_planners() -> Mapping[str, str]:
    from headrace.planners.admission.solve import PLANNERS

    return PLANNERS


def solve_admission(file: ProblemFile, request: Request) -> AdmissionAnswer:
    # Imported late: a wrong file needs none of it.
    from headrace.planners.admission.problem import Options, Weights
    from headrace.planners.admission.solve import (
        BOUND,
        ceiling,
        check_adapting,
        check_removing,
        check_weights,
        solve,
    )

    planner = optimiser_named(request.optimiser, admission_planners())
    given = read_admission(file)
    options = Options(**request.given(), weights=given.weights or Weights())
    if given.weights is not None:
        with file.placed(("weights",)):
            check_weights(planner, given.weights)
    if given.running is not None:
        with file.placed(("running",)):
            check_adapting(planner, options)
        return _adapted_answer(given, given.running, planner, options)
    if given.problem.removals:
        with file.placed(("queries", given.problem.removals[0].after)):
            check_removing(planner)
    solved = solve(given.problem, planner, options, time.perf_counter)
    answer = admission_answer(given, solved)
    if planner == BOUND and len(given.problem.queries) <= MOST_FOR_CEILING:
        answer["offline_bound"] = ceiling(given.problem)
    return answer


def admission_answer(given: Given, solved: Solved) -> AdmissionAnswer:
    """What a planner decided in its public form."""
    gone = {one.query for one in solved.removals if one.removed}
    telling = _Telling(given, gone)
    running = telling.plan(solved.plan)
    answer = AdmissionAnswer(
        problem="admission",
        planner=solved.planner,
        optimiser=solved.planner,
        queries=[telling.query(decision) for decision in solved.decisions],
        admitted=solved.admitted,
        refused=len(solved.decisions) - solved.admitted,
        plan=running,
        hosts=telling.hosts(running),
        links=telling.links(running),
        seconds=solved.seconds,
    )
    if solved.notes:
        answer["notes"] = dict(solved.notes)
    if solved.removals:
        answer["removals"] = [telling.removal(one) for one in solved.removals]
    return answer


def _adapted_answer(given: Given, running: Running, planner: str, options: Options) -> AdmissionAnswer:
    """With the rates and limits that were observed, since it is those that the plan has to hold with."""
    from headrace.planners.admission.solve import solve_running

    now, solved, done = solve_running(given.problem, running, planner, options, time.perf_counter)
    given = replace(given, problem=now)
    answer = admission_answer(given, solved)
    answer["adapted"] = adapted_data(done, given.queries, _Telling(given).names)
    return answer


class _Telling:
    """Plans in the words of the problem, and in its order: hosts and streams as they are listed there."""

    def __init__(self, given: Given, gone: Collection[str] = ()) -> None:
        """`gone`: queries that were admitted and have left."""
        self._gone = gone
        self._given, self._problem = given, given.problem
        self._order = {name: i for i, name in enumerate(given.streams)}
        self._memory = self._problem.memory_cost > 0

    def query(self, decision: Decision) -> AdmittedData:
        data = AdmittedData(
            id=self._given.queries[decision.query],
            admitted=bool(decision.admitted),
            why=decision.why,
            milliseconds=float(decision.seconds) * 1000,
            proven=bool(decision.proven),
            moved=int(decision.moved),
        )
        if decision.query in self._gone:
            data["removed"] = True
        return data

    def removal(self, one: Removed) -> RemovalData:
        return RemovalData(
            id=self._given.queries[one.query],
            removed=one.removed,
            why=one.why,
            milliseconds=one.seconds * 1000,
        )

    def plan(self, plan: Plan) -> RunningData:
        placed = sorted(plan.placements, key=lambda p: (p[0], sorted(self._keys(p[1].left, p[1].right))))
        sent = sorted(plan.flows, key=lambda one: (one[0], one[1], *self._keys(one[2])))
        given = sorted(plan.deliveries.items(), key=lambda one: (*self._keys(one[0]), one[1]))
        return RunningData(
            operators=[self._operator(host, one.left, one.right) for host, one in placed],
            flows=[
                {
                    "from": self._host(sender),
                    "to": self._host(receiver),
                    "stream": self.names(stream),
                    "rate": self._problem.rate(stream),
                }
                for sender, receiver, stream in sent
            ],
            deliveries=[DeliveryData(stream=self.names(s), host=self._host(host)) for s, host in given],
        )

    def hosts(self, running: RunningData) -> list[HostData]:
        """Sums over what is told, in its order, so that a reader gets the same to the last digit."""
        cpu, memory, into, out = (defaultdict[Name, float](float) for _ in range(4))
        for one in running["operators"]:
            cpu[one["host"]] += one["cpu"]
            memory[one["host"]] += one.get("memory", 0.0)
        for flow in running["flows"]:
            out[flow["from"]] += flow["rate"]
            into[flow["to"]] += flow["rate"]
        for given in running["deliveries"]:
            out[given["host"]] += self._problem.rate(frozenset(map(str, given["stream"])))
        return [
            self._limits(host, cpu[host.id], into[host.id], out[host.id], memory[host.id])
            for host in self._problem.hosts
        ]

    def links(self, running: RunningData) -> list[LinkData]:
        used: defaultdict[tuple[Name, Name], float] = defaultdict(float)
        for flow in running["flows"]:
            used[flow["from"], flow["to"]] += flow["rate"]
        position = {host.id: i for i, host in enumerate(self._problem.hosts)}
        return [
            {"from": a, "to": b, "bandwidth": self._problem.link(position[a], position[b]), "used": rate}
            for (a, b), rate in used.items()
        ]

    def _limits(self, host: HostLimits, cpu: float, into: float, out: float, memory: float) -> HostData:
        data: HostData = {
            "id": host.id,
            "cpu": host.cpu,
            "cpu_used": cpu,
            "in": host.incoming,
            "in_used": into,
            "out": host.outgoing,
            "out_used": out,
        }
        if isfinite(host.memory):
            data["memory"] = host.memory
        if self._memory or isfinite(host.memory):
            data["memory_used"] = memory
        return data

    def _operator(self, host: Host, left: Stream, right: Stream) -> OperatorData:
        from headrace.planners.admission.problem import Operator, cpu_of, memory_of

        first, second = sorted((left, right), key=self._keys)
        one = Operator(left, right)
        data = OperatorData(
            host=self._host(host),
            inputs=[self.names(first), self.names(second)],
            output=self.names(one.output),
            cpu=cpu_of(self._problem, one),
        )
        if self._memory:
            data["memory"] = memory_of(self._problem, one)
        return data

    def _host(self, host: Host) -> Name:
        return self._problem.hosts[host].id

    def names(self, stream: Collection[str]) -> list[Name]:
        return [self._given.streams[name] for name in sorted(stream, key=self._order.__getitem__)]

    def _keys(self, *streams: Stream) -> list[list[int]]:
        return [sorted(self._order[name] for name in stream) for stream in streams]
