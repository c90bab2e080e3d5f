"""What a query does and why, as plain data: the same facts for the terminal, `--json` and the picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from headrace.catalog.model import Project
from headrace.plan.logical import LogicalPlan, streams_of, tables_of
from headrace.plan.placed import Job, PlacedPlan
from headrace.plan.steps import diff
from headrace.plan.text import format_plan, plan_lines
from headrace.service.layout import results_folder
from headrace.service.planning import bind, plan_project, plan_query
from headrace.service.project import query_named


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


class Explanation(JobData):
    sql: str
    before: list[LineData]
    before_text: str


class PlanData(TypedDict):
    project: str
    steps: list[str]
    jobs: list[JobData]


def explain_query(project: Project, name: str) -> Explanation:
    """One query: as written, after rewriting, what it reads and where its answer goes."""
    query = query_named(project, name)
    bound = bind(project, query)
    job = plan_query(project, query)
    return Explanation(
        **job_data(project, job), sql=query.sql, before=lines_data(bound), before_text=format_plan(bound)
    )


def explain_plan(project: Project, only: Sequence[str] = ()) -> PlanData:
    """The whole plan: the steps that `run` takes from nothing, and every job."""
    placed = plan_project(project, only)
    return PlanData(
        project=project.name,
        steps=[str(step) for step in diff(PlacedPlan(()), placed)],
        jobs=[job_data(project, job) for job in placed.jobs],
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
