"""What a query does and why, as plain data: the same facts for the terminal, `--json` and the picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from headrace.catalog.model import Project
from headrace.plan.expr import Expr
from headrace.plan.logical import LogicalPlan, streams_of, tables_of
from headrace.plan.placed import Job, PlacedPlan, TreeJob, TreeMember
from headrace.plan.shared import SharedPlan, Tree, format_rows, format_shared, format_tree
from headrace.plan.steps import diff
from headrace.plan.text import format_aggregate, format_expr, format_plan, plan_lines
from headrace.service.binding import bind
from headrace.service.distributing_data import DistributionData, distribution_data
from headrace.service.federation_data import FederationData, members_as_jobs, split_of, split_steps
from headrace.service.layout import results_folder
from headrace.service.placing import place_joins
from headrace.service.placing_data import PlacementData, placement_data, query_lines
from headrace.service.placing_problem import network_of
from headrace.service.planning import from_nothing
from headrace.service.project import query_named
from headrace.service.shared_parts import Parts, parts_of
from headrace.service.sharing import saving_of, share
from headrace.service.solve import fraction_text
from headrace.service.spread_data import SpreadData, spread_data
from headrace.service.spreading import advice


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
    federation: NotRequired[FederationData]
    """How it is split between engines, or why not: only where the project wants it."""
    not_split: NotRequired[str]


class MemberData(TypedDict):
    query: str
    range: int
    slide: int
    """Microseconds, as the range is."""
    window: str
    aggregates: list[str]
    where: list[str]
    """Conditions that the tree's rows do not meet anyway."""
    keys: list[str]
    rolled_up: bool
    """Whether it groups by fewer keys than the tree's fragments."""
    sink: str
    results: str
    text: str
    """Its whole plan."""


class SharedTreeData(TypedDict):
    """A tree of the project. Rates are per second; costs are predicted CPU, in cores."""

    tree: str
    site: str
    stream: str
    rows: str
    keys: list[str]
    spread: list[str]
    """Keys that say in which bucket a row is; empty: all are in one."""
    queries: list[MemberData]
    edge_rate: str
    edge_rate_float: float
    edge_rate_low: NotRequired[str]
    exact: bool
    cost: float
    unshared_cost: float
    """With a tree each."""
    plain_cost: float
    """As Spark's own windows, a job each."""
    alone: str
    text: str


class SharingData(TypedDict):
    optimiser: str
    trees: list[SharedTreeData]
    unshared: dict[str, str]
    """Queries that can be in no tree, and why."""
    cost: float
    unshared_cost: float
    plain_cost: float
    text: str
    notes: list[str]


class QuerySharing(TypedDict):
    """What one query shares. `tree` None: it can be in no tree, for this reason."""

    tree: SharedTreeData | None
    shares_with: list[str]
    saves: float
    """Cores that the query saves by being in the tree."""
    partials: int
    """Partial columns it needs."""
    partials_shared: int
    partials_with: list[str]
    """Who else uses them."""
    reason: str
    lines: list[str]


class Explanation(JobData):
    sql: str
    sharing: QuerySharing
    before: list[LineData]
    before_text: str


class PlanData(TypedDict):
    project: str
    steps: list[str]
    """Trees first, then jobs that are split between engines, then the others."""
    jobs: list[JobData]
    """Of the queries that are in no tree; `federation` says which of them are split."""
    sharing: SharingData
    placement: NotRequired[PlacementData]
    """Where streams are best joined; only where there are several sites and joins."""
    spread: NotRequired[SpreadData]
    """The jobs that this is cut into; only where the project wants it (`planner.spread`)."""
    distribution: NotRequired[DistributionData]
    """Which site each job gets, and why; only where the project wants it (`planner.distribution`)."""


def explain_query(project: Project, name: str) -> Explanation:
    """One query: as written, as it runs, what it shares, what it reads and where its answer goes."""
    query = query_named(project, name)
    bound = bind(project, query)
    planned = from_nothing(project, share(project, skip_wrong=True))
    everything = planned.placed
    return Explanation(
        **job_data(project, _runs_as(everything, name), everything),
        sql=query.sql,
        sharing=query_sharing(project, planned.shared, everything, name),
        before=lines_data(bound),
        before_text=format_plan(bound),
    )


def explain_placement(project: Project, name: str) -> list[str]:
    """Where the streams of a query are best joined, among all queries; nothing where there is one site, or no
    query joins streams."""
    if network_of(project).size < 2:
        return []
    found = place_joins(project, from_nothing(project, share(project, skip_wrong=True)).placed)
    return [] if found is None else query_lines(placement_data(project, found), name)


def _runs_as(everything: PlacedPlan, name: str) -> Job:
    for tree in everything.trees:
        for member in tree.members:
            if member.query == name:
                return Job(tree.id, name, tree.site, member.plan)
    return next(job for job in (*members_as_jobs(everything), *everything.jobs) if job.query == name)


def explain_plan(project: Project, only: Sequence[str] = (), planner: str | None = None) -> PlanData:
    """The whole plan: the steps that `run` takes from nothing, every tree and job, and, by this placement
    planner, where streams are best joined."""
    planned = from_nothing(project, share(project, only))
    shared, everything = planned.shared, planned.placed
    data = PlanData(
        project=project.name,
        steps=[
            *map(_tree_step, everything.trees),
            *split_steps(everything),
            *map(str, diff(PlacedPlan(()), PlacedPlan(everything.jobs))),
        ],
        jobs=[job_data(project, job, everything) for job in (*members_as_jobs(everything), *everything.jobs)],
        sharing=sharing_data(project, shared, everything),
    )
    found = place_joins(project, everything, planner)
    if found is not None:
        data["placement"] = placement_data(project, found)
    if project.planner.spread:
        data["spread"] = spread_data(project, everything)
    if planned.distribution is not None:
        data["distribution"] = distribution_data(project, planned.distribution)
    return data


def _tree_step(tree: TreeJob) -> str:
    count = len(tree.members)
    return f"start {tree.id} on {tree.site} for {count} {'query' if count == 1 else 'queries'}"


def sharing_data(project: Project, plan: SharedPlan, everything: PlacedPlan) -> SharingData:
    trees = _by_id(plan, everything)
    return SharingData(
        optimiser=project.planner.optimiser,
        trees=[tree_data(project, name, tree) for name, tree in trees.items()],
        unshared={query.query: query.reason for query in plan.unshared},
        cost=plan.cost,
        unshared_cost=plan.unshared_cost,
        plain_cost=plan.plain_cost,
        text=format_shared(plan, [tree.id for tree in everything.trees]),
        notes=advice(project, trees),
    )


def _by_id(plan: SharedPlan, everything: PlacedPlan) -> Mapping[str, Tree]:
    """`placed` keeps the order of the trees."""
    return {job.id: tree for job, tree in zip(everything.trees, plan.trees, strict=True)}


def query_sharing(project: Project, plan: SharedPlan, everything: PlacedPlan, name: str) -> QuerySharing:
    for job, tree in zip(everything.trees, plan.trees, strict=True):
        if name in tree.queries:
            return _in_tree(project, job, tree, name)
    reason = next(query.reason for query in plan.unshared if query.query == name)
    return QuerySharing(
        tree=None,
        shares_with=[],
        saves=0.0,
        partials=0,
        partials_shared=0,
        partials_with=[],
        reason=reason,
        lines=[f"not shared: {reason}", _alone(everything, name)],
    )


def _alone(everything: PlacedPlan, name: str) -> str:
    for job in everything.federated:
        others = [member.query for member in job.members if member.query != name]
        if len(others) < len(job.members):
            shared = f" with {_some(others, 8)}: rows that several of them want travel once" if others else ""
            return f"it runs in {job.id}{shared}"
    return "it runs as a job of its own"


def _in_tree(project: Project, job: TreeJob, tree: Tree, name: str) -> QuerySharing:
    parts = parts_of(job, name)
    saves = saving_of(project, tree, name)
    return QuerySharing(
        tree=tree_data(project, job.id, tree),
        shares_with=[query for query in tree.queries if query != name],
        saves=saves,
        partials=parts.own,
        partials_shared=parts.shared,
        partials_with=list(parts.others),
        reason=tree.alone,
        lines=_sharing_lines(job.id, tree, job.member(name), parts, saves),
    )


def _sharing_lines(name: str, tree: Tree, member: TreeMember, parts: Parts, saves: float) -> list[str]:
    """What is shared with whom, from the scan up."""
    if tree.alone:
        return [
            f"tree {name} on {tree.site}, with no other query: {tree.alone}",
            f"cost: {tree.cost:.3g} cores; as Spark's own window {tree.plain_cost:.3g}",
        ]
    others = [query for query in tree.queries if query != member.query]
    return [
        f"tree {name} on {tree.site}, with {_some(others, 8)}",
        f"scan: one read of {format_rows(tree.shape.rows)} for {len(tree.members)} queries",
        f"fragments: by ({_texts(tree.shape.keys)}), {float(tree.edge_rate):.6g} a second",
        *member_lines(tree, member),
        f"partial columns: {_partial_line(parts)}",
        f"cost: the tree {tree.cost:.3g} cores, instead of {tree.unshared_cost:.3g} with a tree each and "
        f"{tree.plain_cost:.3g} as Spark's own windows",
        f"in the tree this query {'saves' if saves >= 0 else 'costs'} {abs(saves):.3g} cores"
        + ("" if saves >= 0 else " more than in a tree of its own"),
    ]


def member_lines(tree: Tree, member: TreeMember) -> list[str]:
    """In what a member differs from its tree."""
    where, lines = tree.shape.where(member), []
    if where:
        lines.append(f"own filter: {_texts(where, ' AND ')}, in partial columns of its own class of rows")
    if tree.rolled_up(member):
        own = ", ".join(sorted(map(format_expr, member.keys)))
        lines.append(f"keys: rolled up from ({_texts(tree.shape.keys)}) to ({own})")
    return lines


def _partial_line(parts: Parts) -> str:
    if not parts.shared:
        return f"{parts.own}, used by no other query"
    return f"{parts.shared} of {parts.own} also serve {_some(parts.others, 4)}"


def _some(names: Sequence[str], most: int) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _texts(exprs: Sequence[Expr], between: str = ", ") -> str:
    return between.join(map(format_expr, exprs))


def tree_data(project: Project, name: str, tree: Tree) -> SharedTreeData:
    data = SharedTreeData(
        tree=name,
        site=tree.site,
        stream=tree.stream,
        rows=format_rows(tree.shape.rows),
        keys=[format_expr(key) for key in tree.shape.keys],
        spread=[format_expr(key) for key in tree.shape.spread],
        queries=[_member_data(project, tree, member) for member in tree.members],
        edge_rate=fraction_text(tree.edge_rate),
        edge_rate_float=float(tree.edge_rate),
        exact=tree.edge_rate == tree.edge_rate_low,
        cost=tree.cost,
        unshared_cost=tree.unshared_cost,
        plain_cost=tree.plain_cost,
        alone=tree.alone,
        text=format_tree(name, tree),
    )
    if not data["exact"]:
        data["edge_rate_low"] = fraction_text(tree.edge_rate_low)
    return data


def _member_data(project: Project, tree: Tree, member: TreeMember) -> MemberData:
    spec, calls = member.window.spec, member.aggregate.aggregates
    sink, results = _sink(project, member.query)
    return MemberData(
        query=member.query,
        range=spec.range,
        slide=spec.slide,
        window=str(spec),
        aggregates=list(dict.fromkeys(format_aggregate(call) for _, call in calls)),
        where=[format_expr(condition) for condition in tree.shape.where(member) or ()],
        keys=sorted(map(format_expr, member.keys)),
        rolled_up=tree.rolled_up(member),
        sink=sink,
        results=results,
        text=format_plan(member.plan),
    )


def _sink(project: Project, name: str) -> tuple[str, str]:
    """Its kind, and the folder of a file sink."""
    query = project.queries[name]
    files = query.sink.kind.value in ("parquet", "json", "csv")
    return query.sink.kind.value, str(results_folder(project, query)) if files else ""


def job_data(project: Project, job: Job, everything: PlacedPlan | None = None) -> JobData:
    """`everything` says where it is split; None: nothing is."""
    sink, results = _sink(project, job.query)
    data = JobData(
        job=job.id,
        query=job.query,
        site=job.site,
        fingerprint=job.fingerprint,
        streams=list(streams_of(job.plan)),
        tables=list(tables_of(job.plan)),
        sink=sink,
        results=results,
        plan=lines_data(job.plan),
        text=format_plan(job.plan),
    )
    split = None if everything is None else split_of(project, job, everything)
    if isinstance(split, str):
        data["not_split"] = split
    elif split is not None:
        data["federation"] = split
    return data


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
