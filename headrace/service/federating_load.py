"""What a split that runs, or would run, takes: priced as the planner prices it, whoever chose it."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.catalog.model import Project
from headrace.plan.federated import Engine, FederatedJob, FederatedMember
from headrace.planners.federation.problem import Plan, Sizes, Split
from headrace.planners.federation.recount import Recount
from headrace.planners.federation.sizes import leaf_sizes, sizes_of
from headrace.service.calibration_file import federation_costs_of
from headrace.service.federated_records import live
from headrace.service.federating_problem import Rates, Seen, problem_of

Kinds = dict[str, float]
"""Cores, by what they are spent on: spark, duckdb, statement, transfer."""


def split_cost(
    project: Project,
    site: str,
    member: FederatedMember,
    rates: Rates | None = None,
    seen: Seen | None = None,
) -> tuple[Split, Plan, tuple[Sizes, ...]]:
    """The costs of the engines that a member has."""
    costs, _ = federation_costs_of(project, site)
    plan = problem_of(project, site, member.plan, costs, rates, seen=seen)
    sizes = sizes_of(plan)
    return Recount(plan, sizes).split(member.engines), plan, sizes


def job_kinds(project: Project, job: FederatedJob) -> Kinds:
    """Of all its queries. What several of them want is charged to each: it travels once, so this is more than
    the job takes."""
    total: Kinds = {"spark": 0.0, "duckdb": 0.0, "statement": 0.0, "transfer": 0.0}
    for member in live(job):
        split, _, _ = split_cost(project, job.site, member)
        for part in split.parts:
            total["spark" if part.engine is Engine.SPARK else "duckdb"] += part.work
            total["statement"] += part.statement
            total["transfer"] += part.transfer_in + part.transfer_out
    return total


def kept_bytes(project: Project, job: FederatedJob) -> int:
    """What the window tables hold: the rows that travel, for as long as a window needs them. A relation that
    several queries read is kept once, for the longest."""
    kept: dict[tuple[str, float], float] = {}
    for member in live(job):
        _, plan, sizes = split_cost(project, job.site, member)
        for name, found in _travelling(plan, sizes, member.engines).items():
            kept[name] = max(kept.get(name, 0.0), found)
    return int(sum(kept.values()))


def _travelling(
    plan: Plan, sizes: Sequence[Sizes], engines: Sequence[Engine]
) -> dict[tuple[str, float], float]:
    """Bytes of each relation that goes into DuckDB, by its stream and width, which tell equal ones."""
    known = dict(leaf_sizes(plan)) | {one.name: size for one, size in zip(plan.operators, sizes, strict=True)}
    at = {one.name: engine for one, engine in zip(plan.operators, engines, strict=True)}
    found: dict[tuple[str, float], float] = {}
    for operator in plan.operators:
        for name in operator.inputs:
            if at[operator.name] is Engine.DUCKDB and at.get(name, Engine.SPARK) is Engine.SPARK:
                size = known[name]
                key = (f"{size.rate:.6g}", size.width)
                found[key] = max(found.get(key, 0.0), size.rows * size.width)
    return found
