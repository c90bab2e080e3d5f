"""After a run: what it should have taken for what it did, beside what it took.

Rows and micro-batches were counted while it ran, so the costs of the site give CPU seconds for them, however
fast the input came. Memory is that of the plan at the project's rates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from headrace.catalog.model import Project
from headrace.cost.fit import cost
from headrace.cost.windows import predict
from headrace.plan.federated import FederatedJob
from headrace.plan.logical import streams_of
from headrace.plan.placed import Job, PlacedPlan, TreeJob
from headrace.service.calibration_file import costs_of
from headrace.service.estimates import expected_rate
from headrace.service.federating_load import job_kinds
from headrace.service.measured import Done, Usage
from headrace.service.predict import job_work, predicted, spark_work, tree_load
from headrace.units import format_size


class JobComparison(TypedDict):
    job: str
    predicted_cpu_seconds: float
    measured_cpu_seconds: float | None
    """Its share of what was measured, by the time its batches took."""


class SiteComparison(TypedDict):
    site: str
    predicted_cpu_seconds: float
    """With the start of Spark."""
    measured_cpu_seconds: float | None
    """None: a remote site, whose processes cannot be seen."""
    predicted_memory: int
    measured_memory: int | None
    """Of all sites in this process together."""
    jobs: list[JobComparison]


def compared(
    project: Project, placed: PlacedPlan, done: Mapping[str, Done], usage: Usage, *, master: str | None = None
) -> list[SiteComparison]:
    """Predicted beside measured, for every site that did something. `done` is by the id of a job or tree;
    `master` is the Spark that all ran on instead of their sites."""
    jobs = {job.id: job for job in _all(placed) if job.id in done}
    remote = {
        job.site: (master or project.sites[job.site].endpoint).startswith("sc://") for job in jobs.values()
    }
    busy = {job_id: done[job_id].seconds for job_id, job in jobs.items() if not remote[job.site]}
    total = sum(busy.values())
    seen = {job_id: one / total * usage.cpu_seconds for job_id, one in busy.items()} if total else {}
    memory = {site["site"]: site["memory"] for site in predicted(project, placed)["sites"]}
    found = []
    for site, is_remote in remote.items():
        own = [_job(project, job, done[job.id], seen) for job in jobs.values() if job.site == site]
        measured = [one["measured_cpu_seconds"] for one in own if one["measured_cpu_seconds"] is not None]
        start = costs_of(project, site)[0].engine
        found.append(
            SiteComparison(
                site=site,
                predicted_cpu_seconds=round(start + sum(one["predicted_cpu_seconds"] for one in own), 2),
                measured_cpu_seconds=round(sum(measured), 2) if measured else None,
                predicted_memory=memory[site],
                measured_memory=None if is_remote else usage.memory,
                jobs=own,
            )
        )
    return found


Unit = TreeJob | Job | FederatedJob


def _all(placed: PlacedPlan) -> Sequence[Unit]:
    return [*placed.trees, *placed.jobs, *placed.federated]


def _job(project: Project, job: Unit, done: Done, seen: Mapping[str, float]) -> JobComparison:
    took = _took(project, job, done)
    measured = seen.get(job.id)
    return JobComparison(
        job=job.id,
        predicted_cpu_seconds=round(took, 2),
        measured_cpu_seconds=None if measured is None else round(measured, 2),
    )


def _took(project: Project, job: Unit, done: Done) -> float:
    if isinstance(job, TreeJob):
        return _by_tree(project, job, done)
    return _by_job(project, job, done) if isinstance(job, Job) else _by_split(project, job, done)


def _by_split(project: Project, job: FederatedJob, done: Done) -> float:
    costs, _ = costs_of(project, job.site)
    streams = {name for member in job.members for name in streams_of(member.plan)}
    seconds = done.rows / sum(expected_rate(project.streams[name]) for name in streams)
    if job.on_spark and seconds and done.batches:
        work = spark_work(project, job, done.batches / seconds)
        return costs.plain_job + seconds * cost(work, costs.to_dict())
    return (
        costs.plain_job + done.batches * costs.plain_batch + seconds * sum(job_kinds(project, job).values())
    )


def _by_tree(project: Project, tree: TreeJob, done: Done) -> float:
    """The rows tell how much event time went by, and so many batches were made of it."""
    costs, _ = costs_of(project, tree.site)
    seconds = done.rows / expected_rate(project.streams[streams_of(tree.shape.rows)[0]])
    if not seconds or not done.batches:
        return costs.job + done.batches * costs.batch
    load = replace(tree_load(project, tree, costs), batches_per_second=done.batches / seconds)
    return costs.job + seconds * predict(load, costs).cpu


def _by_job(project: Project, job: Job, done: Done) -> float:
    costs, _ = costs_of(project, job.site)
    seconds = done.rows / sum(expected_rate(project.streams[name]) for name in streams_of(job.plan))
    if not seconds or not done.batches:
        return costs.plain_job + done.batches * costs.plain_batch
    return costs.plain_job + seconds * cost(
        job_work(project, job.plan, done.batches / seconds), costs.to_dict()
    )


def comparison_lines(sites: Sequence[SiteComparison]) -> list[str]:
    """One line a site."""
    text = []
    for site in sites:
        seen, held = site["measured_cpu_seconds"], site["measured_memory"]
        cpu = "not seen" if seen is None else f"{seen:.1f}"
        memory = "not seen" if held is None else format_size(held)
        text.append(
            f"{site['site']}: {site['predicted_cpu_seconds']:.1f} CPU-s predicted, {cpu} measured; "
            f"memory {format_size(site['predicted_memory'])} predicted, {memory} measured at most"
        )
    return text
