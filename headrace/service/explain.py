"""What a query does and why, as plain data: the same facts for the terminal, `--json` and the picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from headrace.catalog.model import Project
from headrace.plan.logical import LogicalPlan, streams_of, tables_of
from headrace.plan.placed import Job, PlacedPlan
from headrace.plan.shared import Member, SharedPlan, Tree, format_rows, format_shared, format_tree
from headrace.plan.steps import diff
from headrace.plan.text import format_aggregate, format_expr, format_plan, plan_lines
from headrace.service.layout import results_folder
from headrace.service.planning import bind, plan_project, plan_query
from headrace.service.project import query_named
from headrace.service.sharing import expected_rate, saving_of, share
from headrace.service.solve import fraction_text

NOT_RUN = "`headrace run` does not run trees yet: it runs one job per query, as listed."


class LineData(TypedDict):
    id: str
    operator: str
    inputs: list[str]
    detail: str
    columns: list[str]


class JobData(TypedDict):
    job: str
    query: str
    site: str
    fingerprint: str
    streams: list[str]
    tables: list[str]
    sink: str
    results: str
    plan: list[LineData]
    text: str


class MemberData(TypedDict):
    query: str
    range: int
    slide: int
    """Microseconds, as the range is."""
    window: str
    aggregates: list[str]


class SharedTreeData(TypedDict):
    """A tree of the project. Rates and costs are per second."""

    tree: str
    site: str
    stream: str
    rows: str
    keys: list[str]
    queries: list[MemberData]
    edge_rate: str
    edge_rate_float: float
    edge_rate_low: NotRequired[str]
    exact: bool
    cost: float
    unshared_cost: float
    alone: str
    text: str


class SharingData(TypedDict):
    optimiser: str
    trees: list[SharedTreeData]
    unshared: dict[str, str]
    """Queries that can be in no tree, and why."""
    cost: float
    unshared_cost: float
    text: str
    note: str


class QuerySharing(TypedDict):
    """What one query shares. `tree` None: it can be in no tree, for this reason."""

    tree: SharedTreeData | None
    shares_with: list[str]
    saves: float
    """Operations per second that the query saves by being in the tree."""
    reason: str
    note: str


class Explanation(JobData):
    sql: str
    sharing: QuerySharing
    before: list[LineData]
    before_text: str


class PlanData(TypedDict):
    project: str
    steps: list[str]
    jobs: list[JobData]
    sharing: SharingData


def explain_query(project: Project, name: str) -> Explanation:
    """One query: as written, after rewriting, what it reads and where its answer goes."""
    query = query_named(project, name)
    bound = bind(project, query)
    job = plan_query(project, query)
    return Explanation(
        **job_data(project, job),
        sql=query.sql,
        sharing=query_sharing(project, share(project, skip_wrong=True), name),
        before=lines_data(bound),
        before_text=format_plan(bound),
    )


def explain_plan(project: Project, only: Sequence[str] = ()) -> PlanData:
    """The whole plan: the steps that `run` takes from nothing, and every job."""
    placed = plan_project(project, only)
    return PlanData(
        project=project.name,
        steps=[str(step) for step in diff(PlacedPlan(()), placed)],
        jobs=[job_data(project, job) for job in placed.jobs],
        sharing=sharing_data(project, share(project, only)),
    )


def sharing_data(project: Project, plan: SharedPlan) -> SharingData:
    return SharingData(
        optimiser=project.planner.optimiser,
        trees=[tree_data(f"t{number}", tree) for number, tree in enumerate(plan.trees)],
        unshared={query.query: query.reason for query in plan.unshared},
        cost=plan.cost,
        unshared_cost=plan.unshared_cost,
        text=format_shared(plan),
        note=NOT_RUN,
    )


def query_sharing(project: Project, plan: SharedPlan, name: str) -> QuerySharing:
    tree = plan.tree_of(name)
    if tree is None:
        reason = next(query.reason for query in plan.unshared if query.query == name)
        return QuerySharing(tree=None, shares_with=[], saves=0.0, reason=reason, note=NOT_RUN)
    rate = expected_rate(project.streams[tree.rows.stream])
    return QuerySharing(
        tree=tree_data(f"t{plan.trees.index(tree)}", tree),
        shares_with=[query for query in tree.queries if query != name],
        saves=saving_of(rate, tree, name),
        reason=tree.alone,
        note=NOT_RUN,
    )


def tree_data(name: str, tree: Tree) -> SharedTreeData:
    data = SharedTreeData(
        tree=name,
        site=tree.site,
        stream=tree.rows.stream,
        rows=format_rows(tree.rows.input),
        keys=[format_expr(key) for key in tree.rows.keys],
        queries=[_member_data(member) for member in tree.members],
        edge_rate=fraction_text(tree.edge_rate),
        edge_rate_float=float(tree.edge_rate),
        exact=tree.edge_rate == tree.edge_rate_low,
        cost=tree.cost,
        unshared_cost=tree.unshared_cost,
        alone=tree.alone,
        text=format_tree(name, tree),
    )
    if not data["exact"]:
        data["edge_rate_low"] = fraction_text(tree.edge_rate_low)
    return data


def _member_data(member: Member) -> MemberData:
    return MemberData(
        query=member.query,
        range=member.spec.range,
        slide=member.spec.slide,
        window=str(member.spec),
        aggregates=list(dict.fromkeys(format_aggregate(call) for _, call in member.calls)),
    )


def job_data(project: Project, job: Job) -> JobData:
    query = project.queries[job.query]
    files = query.sink.kind.value in ("parquet", "json", "csv")
    return JobData(
        job=job.id,
        query=job.query,
        site=job.site,
        fingerprint=job.fingerprint,
        streams=list(streams_of(job.plan)),
        tables=list(tables_of(job.plan)),
        sink=query.sink.kind.value,
        results=str(results_folder(project, query)) if files else "",
        plan=lines_data(job.plan),
        text=format_plan(job.plan),
    )


def lines_data(plan: LogicalPlan) -> list[LineData]:
    return [
        LineData(
            id=line.id,
            operator=line.operator,
            inputs=list(line.inputs),
            detail=line.detail,
            columns=list(line.columns),
        )
        for line in plan_lines(plan)
    ]
