"""Give one problem, as data, to one planner: what `headrace solve <planner> <file>` does.

A planner is an entry of PLANNERS; each reads its own form of problem and gives its own form of answer. Both
forms are public (docs/solve.md): a field may be added, none changes its meaning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import UserError
from headrace.ids import did_you_mean
from headrace.service.problem_file import ProblemFile, read_file
from headrace.service.solve_admission import OPTIONS as ADMISSION_OPTIONS
from headrace.service.solve_admission import (
    AdmissionAnswer,
    AdmittedData,
    HostData,
    admission_planners,
    solve_admission,
)
from headrace.service.solve_admission_adapted import AdaptedData, StepData
from headrace.service.solve_admission_names import Name
from headrace.service.solve_distribution import OPTIONS as DISTRIBUTION_OPTIONS
from headrace.service.solve_distribution import (
    DistributionAnswer,
    distribution_optimisers,
    solve_distribution,
)
from headrace.service.solve_federation import OPTIONS as FEDERATION_OPTIONS
from headrace.service.solve_federation import FederationAnswer, federation_planners, solve_federation
from headrace.service.solve_files import check_out, write_whole
from headrace.service.solve_placement import OPTIONS as PLACEMENT_OPTIONS
from headrace.service.solve_placement import (
    PlacementAnswer,
    QueryData,
    TreeNode,
    placement_planners,
    solve_placement,
)
from headrace.service.solve_request import Request, check_request, optimiser_named, read_deadline
from headrace.service.solve_sharing import OPTIONS as SHARING_OPTIONS
from headrace.service.solve_sharing import (
    NodeData,
    SharingAnswer,
    TreeData,
    fraction_text,
    read_sharing,
    sharing_answer,
    sharing_optimisers,
    solve_sharing,
)

__all__ = [
    "AdaptedData",
    "AdmissionAnswer",
    "AdmittedData",
    "DistributionAnswer",
    "FederationAnswer",
    "HostData",
    "Name",
    "NodeData",
    "PlacementAnswer",
    "QueryData",
    "Request",
    "SharingAnswer",
    "StepData",
    "TreeData",
    "TreeNode",
    "check_out",
    "fraction_text",
    "list_optimisers",
    "optimiser_named",
    "read_deadline",
    "read_sharing",
    "sharing_answer",
    "solve_file",
    "write_answer",
]

Answer = SharingAnswer | PlacementAnswer | AdmissionAnswer | DistributionAnswer | FederationAnswer


@dataclass(frozen=True, slots=True)
class Planner:
    about: str
    optimisers: Callable[[], Mapping[str, str]]
    """Name and one line of each; the first is the default."""
    solve: Callable[[ProblemFile, Request], Answer]
    options: Collection[str]
    """Names of what a request may ask of it."""


def planner_named(name: str) -> Planner:
    found = {known.lower(): planner for known, planner in PLANNERS.items()}.get(name.lower())
    if found is None:
        raise UserError(f'planner "{name}" does not exist', hint=did_you_mean(name, PLANNERS, "planners"))
    return found


def list_optimisers(planner: str) -> dict[str, str]:
    return dict(planner_named(planner).optimisers())


def solve_file(planner: str, path: str, request: Request) -> Answer:
    """The answer to the problem in a file (`-`: standard input). Raises UserError for all that is wrong."""
    chosen = planner_named(planner)
    check_request(request, planner.lower(), chosen.options)
    return chosen.solve(read_file(path), request)


def write_answer(path: Path, answer: Answer) -> None:
    """The answer as JSON."""
    write_whole(path, json.dumps(answer, indent=2, allow_nan=False) + "\n")


PLANNERS: Mapping[str, Planner] = {
    "sharing": Planner(
        "which window queries share a tree, and on which node",
        sharing_optimisers,
        solve_sharing,
        SHARING_OPTIONS,
    ),
    "placement": Planner(
        "in which order streams are joined, and at which sites",
        placement_planners,
        solve_placement,
        PLACEMENT_OPTIONS,
    ),
    "admission": Planner(
        "whether the next query fits, and on which hosts",
        admission_planners,
        solve_admission,
        ADMISSION_OPTIONS,
    ),
    "distribution": Planner(
        "which site runs which operator, and what to move while it runs",
        distribution_optimisers,
        solve_distribution,
        DISTRIBUTION_OPTIONS,
    ),
    "federation": Planner(
        "which operators of a query run on Spark, and which in DuckDB",
        federation_planners,
        solve_federation,
        FEDERATION_OPTIONS,
    ),
}
