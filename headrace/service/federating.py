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

from headrace.catalog.model import Project, Query, RateSource, SinkKind
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
    from headrace.planners.federation.problem import Allowed, Federated, Plan, Split

RUNNERS = 3
_ALLOWED: dict[str, Allowed] = {"auto": "both", "spark": "spark", "duckdb": "duckdb"}


@dataclass(frozen=True, slots=True)
class JoinOrder:
    """What the planner found for the joins of a query, and for the order that is written."""

    written: LogicalPlan
    chosen_text: str
    written_text: str
    chosen_split: Split
    written_split: Split
    """Each with the best engines for that order."""
    examined: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A query's split, and what the planner knows of it."""

    query: str
    site: str
    plan: LogicalPlan
    """With its joins in the order that was chosen."""
    asked: str
    """auto, spark, duckdb, or `engines`: a list in the project file."""
    answer: Federated
    too_much: tuple[str, ...] = ()
    """Operators that are on Spark because what they read would not fit DuckDB's memory."""
    order: JoinOrder | None = None
    """In which order its joins of windows are made; None: there is no choice."""

    @property
    def engines(self) -> tuple[Engine, ...]:
        return self.answer.split.engines

    @property
    def on_spark(self) -> bool:
        return Engine.DUCKDB not in self.engines

    @property
    def member(self) -> FederatedMember:
        other = self.order is not None and self.order.written != self.plan
        written = self.order.written if self.order is not None and other else None
        return FederatedMember(self.query, self.plan, self.engines, written=written)

    def may_change(self, project: Project) -> bool:
        """Whether another split can take over while it runs. A query that is spread over sites is cut
        there instead, which only ordinary jobs are."""
        spread = project.planner.spread and self.on_spark
        return not spread and can_be_handed_over(project, project.queries[self.query], self.plan)


def asked(project: Project, query: Query) -> str | None:
    """What the project file wants of a query's engines; None: a job on Spark, without a look at DuckDB."""
    if query.engines is not None:
        return "engines"
    if query.engine is not None:
        return query.engine
    return None if project.planner.federation == "off" else project.planner.federation


def can_be_handed_over(project: Project, query: Query, plan: LogicalPlan) -> bool:
    """Whether two jobs can give the windows of a query, one after the other. The second reads its streams
    from their beginning, which a rate source does not keep; results in memory are those of one job."""
    sources = [project.streams[name].source for name in streams_of(plan)]
    lasting = query.sink.kind is not SinkKind.MEMORY and not any(isinstance(s, RateSource) for s in sources)
    return asked(project, query) == "auto" and plan.window is not None and lasting


def choose(
    project: Project,
    query: Query,
    plan: LogicalPlan,
    *,
    site: str | None = None,
    rates: Rates | None = None,
    seen: Seen | None = None,
    costs: FederationCosts | None = None,
    reorder: bool = True,
) -> Choice | str:
    """The split of a query that is in no tree, or why it has none; `site`, `rates` and `seen` take the place
    of what the project file says or lets expect. Where the planner chooses, joins of windows may come in
    another order, unless `reorder` says no: what runs keeps its order. Raises UserError for a list of engines
    that does not fit the query's operators."""
    wanted = asked(project, query)
    reason = not_federated(plan)
    fixed = _fixed(query, plan)
    if wanted is None or reason:
        return reason or "federation is off in the project file"
    place = site or query.site
    prices = costs or federation_costs_of(project, place)[0]
    choosing = _Choosing(project, query.name, place, wanted, prices, rates, seen)
    written = choosing.split(plan, fixed)
    found = choosing.ordered(written) if reorder and wanted == "auto" else written
    # An ordinary job runs what is written.
    return written if found.on_spark and not found.may_change(project) else found


@dataclass(frozen=True, slots=True)
class _Choosing:
    project: Project
    query: str
    site: str
    wanted: str
    prices: FederationCosts
    rates: Rates | None
    seen: Seen | None

    def split(self, plan: LogicalPlan, fixed: tuple[Engine, ...] | None = None) -> Choice:
        """The best engines for a plan."""
        # Imported here: a project without federation does without the planner.
        from headrace.planners.federation.problem import Options
        from headrace.planners.federation.solve import solve

        options = Options(engine=_ALLOWED.get(self.wanted, "both"), runners=RUNNERS)
        problem = self._problem(plan, fixed)
        pinned = [one.engine for one in problem.operators]
        while True:
            # Part of a deployment: what comes out must not depend on the clock.
            answer = solve(problem, options, lambda: 0.0)
            over = readers_of_too_much(problem, answer.split.engines) if self.wanted == "auto" else []
            if not over:
                break
            pinned = [Engine.SPARK if n in over else engine for n, engine in enumerate(pinned)]
            problem = self._problem(plan, tuple(pinned))
        named = [
            one.name for one, engine in zip(problem.operators, pinned, strict=True) if engine is not None
        ]
        too_much = tuple(named) if self.wanted == "auto" else ()
        return Choice(self.query, self.site, plan, self.wanted, answer, too_much)

    def _problem(self, plan: LogicalPlan, engines: tuple[Engine | None, ...] | None) -> Plan:
        return problem_of(self.project, self.site, plan, self.prices, self.rates, engines, self.seen)

    def ordered(self, written: Choice) -> Choice:
        """The query with its joins in the order of phase one, where that is better than what is written."""
        from headrace.service.federating_joins import joins_of, order_text
        from headrace.service.federating_order import best_order, is_cheaper

        joins = joins_of(written.plan)
        if isinstance(joins, str):
            return written
        found = best_order(self.project, self.site, joins, self.prices, self.rates)
        other = written if found.plan is written.plan else self.split(found.plan)
        best = other if is_cheaper(other.answer.split, written.answer.split) else written
        order = JoinOrder(
            written.plan,
            order_text(joins.written if best is written else found.order, joins.names),
            order_text(joins.written, joins.names),
            best.answer.split,
            written.answer.split,
            found.examined,
        )
        return replace(best, order=order)


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
        groups.setdefault(key, []).append(choice.member)
    made: list[FederatedJob] = []
    for (site, _, _), members in groups.items():
        in_databases = _in_databases(project, site, members)
        made += [replace(one, id=federated_id(one, used)) for one in in_databases]
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
