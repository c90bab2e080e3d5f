"""Which queries are split between Spark and DuckDB, and how: by the planner, or as the project file says.

A query is split where it names an engine, or where it is in no tree and `planner.federation` is on. Those of
one site that read the same streams are one job, so that rows which several of them want travel once.

One that ends up on Spark alone is a split job, too, where it may be split later: the planner chose, and its
windows can be handed over. It is the only query of that job: there is nothing to share, and a query that is
handed over leaves what it did behind, for as long as the job goes on for others. Elsewhere, Spark alone is an
ordinary job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.catalog.model import Project, Query
from headrace.cost.federation import FederationCosts
from headrace.errors import UserError
from headrace.plan.federated import Engine, FederatedJob, FederatedMember, operators
from headrace.plan.logical import LogicalPlan, streams_of
from headrace.plan.placed import Job
from headrace.service.calibration_file import federation_costs_of
from headrace.service.federated_records import federated_id
from headrace.service.federating_load import (
    ROOM,
    Kept,
    Relation,
    bytes_of,
    kept_of,
    readers_of_too_much,
    together,
)
from headrace.service.federating_problem import Rates, Seen, node_ids, not_federated, problem_of
from headrace.units import counted

if TYPE_CHECKING:
    from headrace.planners.federation.problem import Allowed, Federated

RUNNERS = 3
_ALLOWED: dict[str, Allowed] = {"auto": "both", "spark": "spark", "duckdb": "duckdb"}


@dataclass(frozen=True, slots=True)
class Choice:
    """A query's split, and what the planner knows of it."""

    query: str
    site: str
    plan: LogicalPlan
    asked: str
    """auto, spark, duckdb, or `engines`: a list in the project file."""
    answer: Federated
    too_much: tuple[str, ...] = ()
    """Operators that are on Spark because what they read would not fit DuckDB's memory."""

    @property
    def engines(self) -> tuple[Engine, ...]:
        return self.answer.split.engines

    @property
    def on_spark(self) -> bool:
        return Engine.DUCKDB not in self.engines

    def may_change(self, project: Project) -> bool:
        """Whether another split can take over while it runs. A query that is spread over sites is cut
        there instead, which only ordinary jobs are."""
        spread = project.planner.spread and self.on_spark
        return self.asked == "auto" and self.plan.window is not None and not spread


def asked(project: Project, query: Query) -> str | None:
    """What the project file wants of a query's engines; None: a job on Spark, without a look at DuckDB."""
    if query.engines is not None:
        return "engines"
    if query.engine is not None:
        return query.engine
    return None if project.planner.federation == "off" else project.planner.federation


def choose(
    project: Project,
    query: Query,
    plan: LogicalPlan,
    *,
    site: str | None = None,
    rates: Rates | None = None,
    seen: Seen | None = None,
    costs: FederationCosts | None = None,
) -> Choice | str:
    """The split of a query that is in no tree, or why it has none; `site`, `rates` and `seen` take the place
    of what the project file says or lets expect. Raises UserError for a list of engines that does not fit the
    query's operators."""
    wanted = asked(project, query)
    reason = not_federated(plan)
    fixed = _fixed(query, plan)
    if wanted is None or reason:
        return reason or "federation is off in the project file"
    # Imported here: a project without federation does without the planner.
    from headrace.planners.federation.problem import Options
    from headrace.planners.federation.solve import solve

    place = site or query.site
    prices = costs or federation_costs_of(project, place)[0]
    options = Options(engine=_ALLOWED.get(wanted, "both"), runners=RUNNERS)
    problem = problem_of(project, place, plan, prices, rates, fixed, seen)
    pinned = [one.engine for one in problem.operators]
    while True:
        # Part of a deployment: what comes out must not depend on the clock.
        answer = solve(problem, options, lambda: 0.0)
        over = readers_of_too_much(problem, answer.split.engines) if wanted == "auto" else []
        if not over:
            break
        pinned = [Engine.SPARK if n in over else engine for n, engine in enumerate(pinned)]
        problem = problem_of(project, place, plan, prices, rates, tuple(pinned), seen)
    named = [one.name for one, engine in zip(problem.operators, pinned, strict=True) if engine is not None]
    too_much = tuple(named) if wanted == "auto" else ()
    return Choice(query.name, place, plan, wanted, answer, too_much)


def _fixed(query: Query, plan: LogicalPlan) -> tuple[Engine, ...] | None:
    if query.engines is None:
        return None
    free = operators(plan)
    if len(free) != len(query.engines):
        ids = node_ids(plan)
        listed = ", ".join(f"{ids[node]} {type(node).__name__}" for node in free) or "none"
        raise UserError(
            f'query "{query.name}" has {counted(len(free), "operator")} with a choice of engine, '
            f"and {counted(len(query.engines), 'engine')} in its list",
            detail=f"Its operators: {listed}.",
            hint="headrace explain shows them in their order.",
            span=query.engines_place,
        )
    return tuple(Engine(name) for name in query.engines)


def check_engines(project: Project, jobs: Iterable[Job]) -> None:
    """Raises UserError for a list of engines that does not fit its query's operators."""
    for job in jobs:
        _fixed(project.queries[job.query], job.plan)


def choices_of(project: Project, jobs: Iterable[Job]) -> dict[str, Choice]:
    """The splits of jobs that the project wants split, by query; those without a choice are left out."""
    found = {}
    for job in jobs:
        query = project.queries[job.query]
        if asked(project, query) is not None:
            choice = choose(project, query, job.plan)
            if isinstance(choice, Choice):
                found[job.query] = choice
    return found


def split_jobs(
    project: Project, jobs: Sequence[Job], used: set[str]
) -> tuple[tuple[Job, ...], tuple[FederatedJob, ...]]:
    """The jobs that stay as they are, and the ones that are made of the others. `used` holds ids that are
    taken, and then also the new ones."""
    found = choices_of(project, jobs)
    choices = {name: one for name, one in found.items() if not one.on_spark or one.may_change(project)}
    plain = tuple(job for job in jobs if job.query not in choices)
    groups: dict[tuple[str, frozenset[str], str], list[FederatedMember]] = {}
    for name, choice in choices.items():
        # One that does not show its windows cannot leave a job that goes on without it.
        alone = name if choice.on_spark or choice.plan.window is None else ""
        key = (choice.site, frozenset(streams_of(choice.plan)), alone)
        groups.setdefault(key, []).append(FederatedMember(name, choice.plan, choice.engines))
    made: list[FederatedJob] = []
    for (site, _, _), members in groups.items():
        for one in _in_databases(project, site, members):
            made.append(replace(one, id=federated_id(one, used)))
    return plain, tuple(made)


def _in_databases(project: Project, site: str, members: Sequence[FederatedMember]) -> Iterable[FederatedJob]:
    """One job for all of them, or, where that would keep more than a database holds, several."""
    group: list[FederatedMember] = []
    kept: dict[Relation, Kept] = {}
    for member in members:
        own = kept_of(project, site, member)
        if group and bytes_of(together(kept, own)) > ROOM:
            yield FederatedJob("", site, tuple(group))
            group, kept = [], {}
        group.append(member)
        kept = together(kept, own)
    if group:
        yield FederatedJob("", site, tuple(group))
