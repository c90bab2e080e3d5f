"""Queries that are spread over sites: their jobs and channels as the state file keeps them, and what becomes
of these as queries come and go.

- What was cut stays as it was, whatever the planner would choose today, and whether `planner.spread` is still
  on: what a job makes depends on all who read it.
- Queries that get a place now are cut among themselves, with makers of their own. A channel that others read
  has lost its beginning, and an answer without it would be another.
- A job that makes a stream goes with the last of its readers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import cast

from headrace.catalog.model import Project
from headrace.plan.channels import ChannelPlan, joined, moved, pruned
from headrace.plan.data import from_data, to_data
from headrace.plan.federated import FederatedMember
from headrace.plan.logical import streams_of
from headrace.plan.placed import Job, PlacedPlan, TreeMember
from headrace.service.cutting import fed_tree, feeds_of
from headrace.state.records import Deployment

NOTHING = ChannelPlan((), ())
_NO_QUERIES = PlacedPlan(())


def channels_of(deployment: Deployment) -> ChannelPlan:
    text = deployment.channels
    return cast(ChannelPlan, from_data(json.loads(text))) if text else NOTHING


def channels_text(plan: ChannelPlan) -> str:
    return json.dumps(to_data(plan)) if plan != NOTHING else ""


@dataclass(frozen=True, slots=True)
class Spread:
    """What of a run is spread over sites; `placed` has all its queries whole, for what is known of them."""

    plan: ChannelPlan = NOTHING
    placed: PlacedPlan = _NO_QUERIES

    def whole(self, query: str) -> Job | TreeMember | FederatedMember:
        parts: list[Job | TreeMember | FederatedMember] = [*self.placed.jobs]
        parts += [member for tree in self.placed.trees for member in tree.members]
        parts += [member for job in self.placed.federated for member in job.members]
        return next(part for part in parts if part.query == query)

    def is_fed(self, tree: str) -> bool:
        return any(one.id == tree for one in self.plan.trees)


def running(placed: PlacedPlan, channels: ChannelPlan) -> ChannelPlan:
    """What of these channels belongs to the queries of a plan, each end where its query is."""
    sites = {job.id: job.site for job in placed.jobs} | {tree.id: tree.site for tree in placed.trees}
    own = pruned(channels, sites)
    return replace(
        own,
        jobs=tuple(replace(job, site=sites[job.id]) if job.id in sites else job for job in own.jobs),
        trees=tuple(replace(tree, site=sites[tree.id]) for tree in own.trees),
    )


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is cut of queries that get a place."""

    plan: ChannelPlan
    notes: tuple[str, ...] = ()
    """Which of them are placed by admission, and why."""
    no_room: str = ""
    """Why nothing better was found for what does not fit."""


Spreader = Callable[[Project, Spread, PlacedPlan, Collection[str]], Fitted]
"""(project, what stands, queries that get a place, ids that are taken): what of these queries is cut, into
which jobs and channels."""


def refed(plan: ChannelPlan, placed: PlacedPlan) -> ChannelPlan:
    """With the trees as they are now: members come and go."""
    now = {tree.id: tree for tree in placed.trees}
    trees = (fed_tree(now[t.id], feeds_of(plan, t)) if t.id in now else t for t in plan.trees)
    return replace(plan, trees=tuple(trees))


def with_new(project: Project, kept: ChannelPlan, new: PlacedPlan, make: Callable[[], Fitted]) -> Fitted:
    """The same with queries that have just got their places; `make` cuts them."""
    if not project.planner.spread or not (new.jobs or new.trees):
        return Fitted(kept)
    found = make()
    return replace(found, plan=joined(kept, found.plan))


def ids_of(plan: ChannelPlan) -> set[str]:
    """Of jobs and streams."""
    return {job.id for job in plan.jobs} | {stream.id for stream in plan.streams}


def gone_makers(before: ChannelPlan, after: ChannelPlan) -> list[str]:
    left = {job.id for job in after.jobs}
    return [job.id for job in before.makers if job.id not in left]


def at_their_sites(plan: ChannelPlan, homes: Mapping[str, str], project: Project) -> ChannelPlan:
    """Every maker where its last move has left it. One whose site is no more is where its rows come from, or
    anywhere: it may be kept for a query that is not in the project any more."""
    made = {one.id: streams_of(one.plan)[0] for one in plan.streams}
    sites = {}
    for job in plan.makers:
        stream = project.streams.get(made[job.writes or ""])
        able = (homes.get(job.id), job.site, stream and stream.site, *project.sites)
        sites[job.id] = next(site for site in able if site in project.sites)
    return moved(plan, sites)
