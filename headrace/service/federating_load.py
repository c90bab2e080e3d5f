"""What a split that runs, or would run, takes: priced as the planner prices it, whoever chose it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.catalog.model import Project
from headrace.plan.federated import Engine, FederatedJob, FederatedMember
from headrace.plan.text import plan_lines
from headrace.planners.federation.problem import Plan, Sizes, Split
from headrace.planners.federation.recount import Recount
from headrace.planners.federation.sizes import leaf_sizes, sizes_of
from headrace.runtime.federated.memory import BYTES
from headrace.service.calibration_file import federation_costs_of
from headrace.service.federated_records import live
from headrace.service.federating_problem import Rates, Seen, problem_of

ROOM = 0.75 * BYTES
"""Of a job's database, for what is kept: statements need some, too."""
Relation = tuple[str, str]
"""What it is, and its rows per second."""
Kept = tuple[float, float]
"""Rows, and bytes of each."""
NONE: Kept = (0.0, 0.0)
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
    kept: dict[Relation, Kept] = {}
    for member in live(job):
        kept = together(kept, kept_of(project, job.site, member))
    return int(bytes_of(kept))


def kept_of(project: Project, site: str, member: FederatedMember) -> dict[Relation, Kept]:
    """What the window tables hold for one query."""
    _, plan, sizes = split_cost(project, site, member)
    # An operator is known by what it does: its name is that of its own query's plan.
    details = {line.id: line.detail for line in plan_lines(member.plan)}
    found: dict[Relation, Kept] = {}
    for (name, rate), kept in _travelling(plan, sizes, member.engines).items():
        found = together(found, {(details.get(name.split("/")[0], name), rate): kept})
    return found


def together(some: Mapping[Relation, Kept], others: Mapping[Relation, Kept]) -> dict[Relation, Kept]:
    """What both read is kept once."""
    return {key: _most(some.get(key, NONE), others.get(key, NONE)) for key in {**some, **others}}


def bytes_of(kept: Mapping[Relation, Kept]) -> float:
    return sum(rows * width for rows, width in kept.values())


def readers_of_too_much(plan: Plan, engines: Sequence[Engine]) -> list[int]:
    """The operators, by number, that would have to be on Spark first: where what is kept does not fit the
    database, those on DuckDB that read most of it. None where it fits."""
    kept = _travelling(plan, sizes_of(plan), engines)
    if bytes_of(kept) <= ROOM:
        return []
    largest, _ = max(kept, key=lambda key: kept[key][0] * kept[key][1])
    leaves = {window.name: window.stream for window in plan.windows}
    return [
        number
        for number, one in enumerate(plan.operators)
        if engines[number] is Engine.DUCKDB and largest in [leaves.get(name, name) for name in one.inputs]
    ]


def _travelling(plan: Plan, sizes: Sequence[Sizes], engines: Sequence[Engine]) -> dict[Relation, Kept]:
    """Each relation that goes into DuckDB. Rows that travel a second time have no width there, and may be
    kept for longer."""
    known = dict(leaf_sizes(plan)) | {one.name: size for one, size in zip(plan.operators, sizes, strict=True)}
    at = {one.name: engine for one, engine in zip(plan.operators, engines, strict=True)}
    leaves = {window.name: window.stream for window in plan.windows}
    found: dict[Relation, Kept] = {}
    for operator in plan.operators:
        for name in operator.inputs:
            if at[operator.name] is Engine.DUCKDB and at.get(name, Engine.SPARK) is Engine.SPARK:
                size = known[name]
                key = (leaves.get(name, name), f"{size.rate:.6g}")
                found[key] = _most(found.get(key, NONE), (size.rows, size.width))
    return found


def _most(one: Kept, other: Kept) -> Kept:
    return max(one[0], other[0]), max(one[1], other[1])
