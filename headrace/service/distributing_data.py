"""Which site a first run gives each job, and why, as plain data and as tables: part of `headrace plan`."""

from __future__ import annotations

from typing import TypedDict

from headrace.catalog.model import Project
from headrace.planners.distribution.usage import SiteUsage, passed
from headrace.service.distributing import Assigned, Distribution
from headrace.service.network_picture import Table
from headrace.units import counted, format_size

_QUERIES = 3
"""So many queries of a tree are named."""


class DistributedJob(TypedDict):
    job: str
    queries: list[str]
    site: str
    region: str
    why: str
    cpu: float
    """Cores, as predicted, with the price of micro-batches."""
    memory: float
    """Bytes, as predicted; 0: not known."""


class DistributedSite(TypedDict):
    site: str
    region: str
    jobs: int
    connections: int
    """Streams that its jobs read from elsewhere or that are read elsewhere, and results, as the paper counts
    them."""
    cpu: float
    cpu_limit: float
    load: float
    """1: full."""
    memory: float
    """Spark's own included."""
    memory_limit: float


class DistributionData(TypedDict):
    pattern: str
    jobs: list[DistributedJob]
    """Every job once."""
    sites: list[DistributedSite]
    connections: int
    """All of them, each once."""
    highest_load: float
    beyond: list[str]
    """Limits that are passed."""


def distribution_data(project: Project, found: Distribution) -> DistributionData:
    used = found.usage
    return DistributionData(
        pattern=project.planner.distribution,
        jobs=[_job(project, found, one) for one in found.jobs],
        sites=[_site(one) for one in used.sites.values()],
        connections=used.connections.total,
        highest_load=used.max_load,
        beyond=[text for _, text in passed(found.problem, used).values()],
    )


def _job(project: Project, found: Distribution, one: Assigned) -> DistributedJob:
    operator = found.problem.operator[one.job]
    return DistributedJob(
        job=one.job,
        queries=list(one.queries),
        site=one.site,
        region=project.sites[one.site].region,
        why=one.why,
        cpu=operator.cpu,
        memory=operator.state_bytes,
    )


def _site(one: SiteUsage) -> DistributedSite:
    return DistributedSite(
        site=one.site.id,
        region=one.site.region,
        jobs=len(one.operators),
        connections=one.connections,
        cpu=one.cpu,
        cpu_limit=one.site.cpu,
        load=one.load,
        memory=one.memory,
        memory_limit=one.site.memory,
    )


# -- for people -------------------------------------------------------------------------------------


def head_line(data: DistributionData) -> str:
    regions = len({one["region"] for one in data["sites"]})
    tiers = f" in {regions} regions" if regions > 1 else ""
    return (
        f"distribution by {data['pattern']}: {counted(len(data['jobs']), 'job')} "
        f"on {counted(len(data['sites']), 'site')}{tiers}, {counted(data['connections'], 'connection')}, "
        f"highest load {data['highest_load']:.0%}"
    )


def tables(data: DistributionData) -> list[Table]:
    jobs = tuple(
        (one["job"], _named(one), _place(data, one["site"], one["region"]), f"{one['cpu']:.2g}", one["why"])
        for one in data["jobs"]
    )
    sites = tuple(
        (
            _place(data, one["site"], one["region"]),
            str(one["jobs"]),
            str(one["connections"]),
            f"{one['cpu']:.2g} of {one['cpu_limit']:g}",
            f"{one['load']:.0%}",
            f"{format_size(int(one['memory']))} of {format_size(int(one['memory_limit']))}",
        )
        for one in data["sites"]
    )
    return [
        Table("jobs", ("job", "queries", "site", "cores", "why"), jobs),
        Table("sites", ("site", "jobs", "connections", "cores", "load", "memory"), sites),
    ]


def _named(one: DistributedJob) -> str:
    names = one["queries"]
    if names == [one["job"]]:
        return ""
    more = f" and {len(names) - _QUERIES} more" if len(names) > _QUERIES else ""
    return ", ".join(names[:_QUERIES]) + more


def _place(data: DistributionData, site: str, region: str) -> str:
    """A region is only worth telling where there are others."""
    several = len({one["region"] for one in data["sites"]}) > 1
    return f"{site} ({region})" if several else site
