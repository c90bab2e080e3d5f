"""The federation problem in its public form, solved, and given back with an engine for each operator."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypedDict

from headrace.service.problem_file import ProblemFile
from headrace.service.solve_federation_file import read_federation
from headrace.service.solve_request import Request, optimiser_named

if TYPE_CHECKING:
    from headrace.planners.federation.problem import Federated, Loser, Part, Pruning

OPTIONS = ("ignore_feasibility", "engine", "decompose", "runners")
"""Of `headrace solve federation`."""
_PRUNING: Mapping[str, Pruning] = {"pareto": "pareto", "paper": "paper", "exhaustive": "none"}


class FederatedOperatorData(TypedDict):
    id: str
    kind: str
    inputs: list[str]
    engine: str
    part: int
    """Its place in `parts`."""
    rate: float
    rows: float
    slides: float
    width: float


class FederatedPartData(TypedDict):
    engine: str
    operators: list[str]
    u: float
    transfer_in: float
    work: float
    statement: float
    transfer_out: float


class LoserData(TypedDict):
    engines: list[str]
    """In the order of `operators`."""
    bottleneck: float
    utilisation: float
    feasible: bool
    why: str


class FederationAnswer(TypedDict):
    problem: Literal["federation"]
    planner: str
    optimiser: str
    operators: list[FederatedOperatorData]
    parts: list[FederatedPartData]
    bottleneck: float
    utilisation: float
    feasible: bool
    losers: list[LoserData]
    plans_examined: int
    plans_examined_again: int
    partial_plans: int
    joins_examined: int
    phase_one_seconds: float
    phase_two_seconds: float
    seconds: float


def federation_planners() -> Mapping[str, str]:
    return {
        "pareto": "ours: the paper's search, without partial plans that another beats in every way",
        "paper": "the paper's: one partial plan rooted on Spark survives per operator",
        "exhaustive": "every engine for every operator; for small plans only",
    }


def solve_federation(file: ProblemFile, request: Request) -> FederationAnswer:
    # Imported late: a wrong file needs none of it.
    from headrace.planners.federation.phase_one import NoPlan
    from headrace.planners.federation.problem import Options
    from headrace.planners.federation.solve import solve

    planner = optimiser_named(request.optimiser, federation_planners())
    asked = {name: value for name, value in request.given().items() if name != "ignore_feasibility"}
    options = Options(not request.ignore_feasibility, pruning=_PRUNING[planner], **asked)
    problem = read_federation(file)
    try:
        solved = solve(problem, options, time.perf_counter)
    except NoPlan as error:
        raise file.wrong(error.at, error.message, error.hint) from None
    return federation_answer(planner, solved)


def federation_answer(planner: str, solved: Federated) -> FederationAnswer:
    """What was found in its public form."""
    return FederationAnswer(
        problem="federation",
        planner=planner,
        optimiser=planner,
        operators=_operators(solved),
        parts=[_part(part) for part in solved.split.parts],
        bottleneck=solved.split.bottleneck,
        utilisation=solved.split.utilisation,
        feasible=solved.split.feasible,
        losers=[_loser(loser) for loser in solved.losers],
        plans_examined=solved.examined,
        plans_examined_again=solved.examined_again,
        partial_plans=solved.kept,
        joins_examined=solved.joins_examined,
        phase_one_seconds=solved.phase_one_seconds,
        phase_two_seconds=solved.phase_two_seconds,
        seconds=solved.phase_one_seconds + solved.phase_two_seconds,
    )


def _operators(solved: Federated) -> list[FederatedOperatorData]:
    part_of = {name: i for i, part in enumerate(solved.split.parts) for name in part.operators}
    rows = zip(solved.plan.operators, solved.split.engines, solved.sizes, strict=True)
    return [
        FederatedOperatorData(
            id=operator.name,
            kind=operator.kind.value,
            inputs=list(operator.inputs),
            engine=engine.value,
            part=part_of[operator.name],
            rate=sizes.rate,
            rows=sizes.rows,
            slides=sizes.slides,
            width=sizes.width,
        )
        for operator, engine, sizes in rows
    ]


def _part(part: Part) -> FederatedPartData:
    return FederatedPartData(
        engine=part.engine.value,
        operators=list(part.operators),
        u=part.u,
        transfer_in=part.transfer_in,
        work=part.work,
        statement=part.statement,
        transfer_out=part.transfer_out,
    )


def _loser(loser: Loser) -> LoserData:
    split = loser.split
    return LoserData(
        engines=[engine.value for engine in split.engines],
        bottleneck=split.bottleneck,
        utilisation=split.utilisation,
        feasible=split.feasible,
        why=loser.why,
    )
