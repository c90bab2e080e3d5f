"""Split queries as the state file keeps them, and what becomes of their members.

The members of a job never change: its checkpoint and window tables are for all of them. So one that leaves
stays in it as one that is `gone`, which gives no window from then on.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import replace

from headrace.plan.data import from_data, to_data
from headrace.plan.federated import Engine, FederatedJob, FederatedMember
from headrace.plan.placed import GONE
from headrace.state.records import FederatedRecord


def record_of(job: FederatedJob) -> FederatedRecord:
    return FederatedRecord(job.id, job.site, json.dumps([_to_data(member) for member in job.members]))


def members_of(record: FederatedRecord) -> tuple[FederatedMember, ...]:
    return tuple(
        FederatedMember(
            one["query"],
            from_data(one["plan"]),
            tuple(Engine(name) for name in one["engines"]),
            one["after"],
            one["until"],
            # Records of older versions have none.
            from_data(one["written"]) if one.get("written") else None,
        )
        for one in json.loads(record.members)
    )


def job_of(record: FederatedRecord) -> FederatedJob:
    return FederatedJob(record.id, record.site, members_of(record))


def _to_data(member: FederatedMember) -> dict[str, object]:
    return {
        "query": member.query,
        "plan": to_data(member.plan),
        "engines": [str(engine) for engine in member.engines],
        "after": member.after,
        "until": member.until,
        "written": None if member.written is None else to_data(member.written),
    }


def is_gone(member: FederatedMember) -> bool:
    return member.until == GONE


def live(job: FederatedJob) -> tuple[FederatedMember, ...]:
    """The members that still give windows."""
    return tuple(member for member in job.members if not is_gone(member))


def without(job: FederatedJob, queries: Collection[str]) -> FederatedJob:
    """These queries leave the job."""
    members = (replace(m, until=GONE) if m.query in queries else m for m in job.members)
    return replace(job, members=tuple(members))


def bounded(job: FederatedJob, queries: Collection[str], until: int) -> FederatedJob:
    """These queries give no window of the job that ends later."""
    members = (replace(m, until=until) if m.query in queries else m for m in job.members)
    return replace(job, members=tuple(members))


def how_split(job: FederatedJob) -> str:
    return "on Spark alone, to be chosen for again" if job.on_spark else "split between Spark and DuckDB"


def federated_id(job: FederatedJob, used: set[str]) -> str:
    """An id for a new job that is not in `used`, which then holds it."""
    first = f"fed-{job.fingerprint[:8]}"
    found, number = first, 2
    while found in used:
        found, number = f"{first}-{number}", number + 1
    used.add(found)
    return found


def giving(jobs: Iterable[FederatedJob], query: str) -> tuple[FederatedJob, ...]:
    """The jobs that the query is in and has not left, those of earlier windows first."""
    own = [(m.after, job) for job in jobs for m in live(job) if m.query == query]
    return tuple(job for _, job in sorted(own, key=lambda one: (one[0] is not None, one[0] or 0)))
