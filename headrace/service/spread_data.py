"""What `run` spreads over sites, as plain data and as lines: jobs, the streams they make, who reads these."""

from __future__ import annotations

from typing import TypedDict

from headrace.catalog.model import Project
from headrace.plan.channels import ChannelJob, ChannelPlan
from headrace.plan.logical import streams_of
from headrace.plan.placed import PlacedPlan, TreeJob
from headrace.service.admitting import spread_from_nothing
from headrace.service.cutting import staying
from headrace.service.placing_part import staying_together
from headrace.units import counted


class SpreadJobData(TypedDict):
    job: str
    site: str
    reads: list[str]
    """Streams, derived ones by their ids."""
    makes: str | None
    """A derived stream; None: it answers."""
    queries: list[str]
    readers: list[str]
    """Of what it makes: jobs and trees."""


class SpreadData(TypedDict):
    jobs: list[SpreadJobData]
    """Makers before their readers."""
    whole: dict[str, str]
    """Queries that read from other sites, and are not spread; why."""
    admitted: list[str]
    """Which are where admission has placed them, and not where that is cheapest; why."""


def spread_data(project: Project, everything: PlacedPlan) -> SpreadData:
    found = spread_from_nothing(project, everything)
    plan = found.plan
    return SpreadData(
        jobs=[*(_job(plan, job) for job in plan.jobs), *map(_tree, plan.trees)],
        whole=_whole(project, everything),
        admitted=list(found.notes),
    )


def _tree(tree: TreeJob) -> SpreadJobData:
    return SpreadJobData(
        job=tree.id,
        site=tree.site,
        reads=list(streams_of(tree.shape.rows)),
        makes=None,
        queries=[member.query for member in tree.members],
        readers=[],
    )


def _job(plan: ChannelPlan, job: ChannelJob) -> SpreadJobData:
    readers = [] if job.writes is None else [one.id for one in plan.readers(job.writes)]
    return SpreadJobData(
        job=job.id,
        site=job.site,
        reads=list(streams_of(job.plan)),
        makes=job.writes,
        queries=[] if job.query is None else [job.query],
        readers=readers,
    )


def _whole(project: Project, everything: PlacedPlan) -> dict[str, str]:
    split = [
        (one.query, one.plan, job.site, staying_together(job))
        for job in everything.federated
        for one in job.members
    ]
    alone = [(job.query, job.plan, job.site, staying(project, job)) for job in everything.jobs]
    return {
        query: reason
        for query, plan, site, reason in (*split, *alone)
        if reason and any(project.streams[name].site != site for name in streams_of(plan))
    }


def spread_lines(data: SpreadData) -> list[str]:
    makers = [job for job in data["jobs"] if job["makes"] is not None]
    sites = {job["site"] for job in data["jobs"]}
    if not makers:
        lines = ["spread: nothing travels between sites"]
    else:
        jobs, places = counted(len(data["jobs"]), "job"), counted(len(sites), "site")
        lines = [f"spread: {jobs} on {places}, {counted(len(makers), 'channel')}"]
    lines += [f"  {_line(job)}" for job in data["jobs"]]
    lines += [f"  {query} is not spread: {reason}" for query, reason in data["whole"].items()]
    return lines + [f"  {note}" for note in data["admitted"]]


def _line(job: SpreadJobData) -> str:
    head = f"{job['job']} on {job['site']} reads {', '.join(job['reads'])}"
    if job["makes"] is not None:
        return f"{head}, makes {job['makes']} for {', '.join(job['readers'])}"
    return head if job["queries"] == [job["job"]] else f"{head}, for {', '.join(job['queries'])}"
