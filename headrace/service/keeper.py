"""Keeps the deployment of a project: plans it, checks it, writes it down, and removes what it no longer has.

Used by the one process that holds the run lock. Whatever it does is written down first and done then, so that
after a kill at any moment the next run finds either the old deployment or the new one, and carries on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from headrace.catalog.model import Project
from headrace.errors import HeadraceError, StateUnusable, UserError
from headrace.plan.channels import ChannelPlan, pruned
from headrace.plan.federated import Engine, FederatedJob
from headrace.plan.placed import PlacedPlan
from headrace.service.channel_layout import channels_folder, check_channels, remove_channels
from headrace.service.deployment import Planner, Situation, Wanted, reconcile
from headrace.service.federated_records import bounded, federated_id, giving, job_of, live, record_of, without
from headrace.service.folders import check_orphans, check_unused, finish_removal, remove_folders, remove_state
from headrace.service.layout import job_folder, jobs_folder, query_context, writes_files
from headrace.service.moments import Clock, timestamp
from headrace.service.moving import at_homes, deployed_jobs
from headrace.service.project import check_sites, query_of, selected, with_edits
from headrace.service.refusals import plans_of, refuse_endless, refuse_results
from headrace.service.spread_records import (
    at_their_sites,
    channels_of,
    channels_text,
    gone_makers,
)
from headrace.state.records import Change, Deployment, Doomed, Edits
from headrace.state.store import Store

_CLOSED = frozenset({"draining", "finished", "failed"})
"""A tree that was last seen so may have closed its streams; a new query had better not join it."""
_WAIT_SECONDS = 5.0
"""Until changes that could not be taken are tried again."""

Engines = tuple[Engine, ...]


@dataclass(frozen=True, slots=True)
class Lives:
    """The site of every job that was moved, how one that is no more is forgotten, and how one gets its site
    from another."""

    homes: Callable[[], Mapping[str, str]] = dict
    forget: Callable[[str], None] = lambda _: None
    settle: Callable[[str, str], None] = lambda job, site: None


OnPlan = Callable[[Project, PlacedPlan], None]
"""Called with what will run, before it is written down: makes the data that it reads."""


def _names_in(folder: Path) -> frozenset[str]:
    return frozenset(path.name for path in folder.iterdir()) if folder.is_dir() else frozenset()


def closed_trees(store: Store, deployment: Deployment) -> frozenset[str]:
    """Trees that a new query does not join."""
    seen = {record.query for record in store.all() if record.observed in _CLOSED}
    return frozenset(row.tree for row in deployment.queries if row.tree and row.query in seen)


class Keeper:
    def __init__(
        self,
        project: Project,
        store: Store,
        clock: Clock,
        planner: Planner,
        on_plan: OnPlan,
        lives: Lives | None = None,
    ) -> None:
        self._store, self._clock, self._planner, self._on_plan = store, clock, planner, on_plan
        self._lives = lives or Lives()
        self.project = project
        self.deployment: Deployment = store.deployment()
        self.waits = ""
        """Why changes that were asked for could not be taken just now."""
        self._again: datetime | None = None

    # -- before a run -------------------------------------------------------------------------------

    def prepare(self, only: Collection[str], *, fresh: bool, drain: bool) -> Wanted:
        """Plan a run. Refuses what cannot go well, then writes the deployment, then clears the folders that
        it starts over. Raises UserError."""
        given = self.project
        while True:
            edits = self._store.edits()
            check_sites(given, edits)
            self.project = with_edits(given, edits)
            self.remove(self._ready)
            wanted = self._wanted(edits, only, fresh=fresh)
            if drain:
                refuse_endless(self.project, plans_of(wanted.placed))
            self._check(wanted)
            if self._write(wanted, edits):
                self.remove_ready()
                return wanted

    def _wanted(self, edits: Edits, only: Collection[str], *, fresh: bool) -> Wanted:
        names = frozenset(query.name for query in selected(self.project, tuple(only)))
        situation = Situation(
            self.project,
            self.deployment,
            edits,
            names,
            names if fresh else frozenset(),
            closed_trees(self._store, self.deployment),
            self._folders(),
            self._channels(),
            self._homes(),
        )
        return self._placed(reconcile(situation, self._planner))

    def _placed(self, wanted: Wanted) -> Wanted:
        """Every job where it lives."""
        homes, project = self._homes(), self.project
        return replace(
            wanted,
            placed=at_homes(wanted.placed, homes, project.sites),
            channels=at_their_sites(wanted.channels, homes, project),
        )

    def _homes(self) -> dict[str, str]:
        """Of what is deployed: a query that comes again under an old name starts where it is asked to, also
        if a kill has kept its home from being forgotten."""
        jobs = deployed_jobs(self.deployment)
        return {job: site for job, site in self._lives.homes().items() if job in jobs}

    def _folders(self) -> frozenset[str]:
        return _names_in(jobs_folder(self.project))

    def _channels(self) -> frozenset[str]:
        return _names_in(channels_folder(self.project))

    @property
    def channels(self) -> ChannelPlan:
        """The jobs and channels of queries that are spread over sites."""
        return channels_of(self.deployment)

    def _check(self, wanted: Wanted) -> None:
        """Nothing foreign is in the way, and no results without what belongs to them."""
        refuse_results(self.project, plans_of(wanted.placed))
        running = {*(job.id for job in wanted.placed.jobs), *(tree.id for tree in wanted.placed.trees)}
        check_channels(self.project, pruned(wanted.channels, running))
        over = {one.name for one in wanted.deployment.doomed if one.results}
        for row in wanted.deployment.queries:
            if row.query not in plans_of(wanted.placed) or row.query in over:
                continue
            query = self.project.queries[row.query]
            context = query_context(self.project, row.query, query.site)
            if not writes_files(query):
                continue
            # Of a query that is handed over, the job that gives its earliest windows: the other may be new.
            split = giving(map(job_of, wanted.deployment.federated), row.query)
            place = split[0].id if split else row.tree
            if place is None:
                finish_removal(context, results=True)
                check_orphans(context)
            elif row.query in wanted.new:
                check_unused(context)
            else:
                check_orphans(context, job_folder(self.project, place))

    def _write(self, wanted: Wanted, edits: Edits) -> bool:
        self._on_plan(self.project, wanted.placed)
        done = self._store.deploy(wanted.deployment, edits, wanted.applied, wanted.forget)
        if done:
            self.deployment = wanted.deployment
            # A query that comes again under an old name starts where it is asked to, and a site that comes
            # again gets nothing of what has gone elsewhere.
            jobs, sites = deployed_jobs(wanted.deployment), self.project.sites
            for job, site in self._lives.homes().items():
                if job not in jobs or site not in sites:
                    self._lives.forget(job)
        return done

    # -- while a run goes on ------------------------------------------------------------------------

    def take(
        self,
        running: Iterable[str],
        closed: Collection[str],
        down: Collection[str] = (),
        may: Callable[[Wanted], bool] = lambda _: True,
    ) -> Wanted | None:
        """Plan and write down the changes that commands have asked for; None: there are none, or they were
        refused, or they changed meanwhile, or `may` says not now, and are taken next time. `down` are sites
        that do not answer. What cannot be done now for a reason that is no query's stays pending: `waits`
        says why, and it is tried again a little later."""
        if self._again is not None and self._clock() < self._again:
            return None
        self.waits, self._again = "", None
        edits = self._without_bad(self._store.edits())
        if not edits.pending:
            return None
        project = with_edits(self.project, edits)
        names = frozenset(running) & set(project.queries)
        situation = Situation(
            project,
            self.deployment,
            edits,
            names,
            closed=frozenset(closed),
            folders=self._folders(),
            channels=self._channels(),
            homes=self._homes(),
            down=frozenset(down),
        )
        before, self.project = self.project, project
        try:
            wanted = self._placed(reconcile(situation, self._planner))
            if may(wanted) and self._write(wanted, edits):
                return wanted
        except (HeadraceError, OSError) as error:
            self._not_now(error, edits)
        self.project = before
        return None

    def _not_now(self, error: HeadraceError | OSError, edits: Edits) -> None:
        """A run does not end because of a query that somebody wanted to add: it is refused, unless only the
        state file is to blame. A drop is not refused: its query is out of the project, and would not come
        back."""
        added = [change for change in edits.pending if change.kind == "add"]
        reason = error.render() if isinstance(error, HeadraceError) else str(error)
        if added and not isinstance(error, StateUnusable):
            with suppress(StateUnusable):
                self._refuse(added, reason)
                return
        self.waits = reason
        self._again = self._clock() + timedelta(seconds=_WAIT_SECONDS)

    def _without_bad(self, edits: Edits) -> Edits:
        """Refuse the queries that cannot run here. The command has checked them, but against the file as it
        was then, and folders change."""
        bad = []
        for change in edits.pending:
            if change.kind == "add":
                reason = self._wrong(change, edits)
                if reason:
                    self._refuse([change], reason)
                    bad.append(change)
        return self._store.edits() if bad else edits

    def _wrong(self, change: Change, edits: Edits) -> str:
        query = next(query_of(added, self.project) for added in edits.added if added.name == change.query)
        project = with_edits(self.project, edits)
        try:
            plan = self._planner.plan_query(project, query).plan
            refuse_results(project, {query.name: plan})
            if writes_files(query):
                check_unused(query_context(project, query.name, query.site))
        except UserError as error:
            return error.render()
        except KeyError as error:
            return f"{error} is not in the project file that this run was started with"
        return ""

    def _refuse(self, changes: Iterable[Change], reason: str, deployment: Deployment | None = None) -> None:
        self._store.refuse([c.id for c in changes], reason, timestamp(self._clock), deployment)

    def take_back(self, changes: Collection[Change], reason: str) -> None:
        """Refuse queries that were deployed, because their tree or job does not start with them."""
        names = {change.query for change in changes}
        rows = tuple(row for row in self.deployment.queries if row.query not in names)
        left = tuple(row for row in self.deployment.queries if row.query in names)
        used = {row.tree for row in rows}
        trees = tuple(tree for tree in self.deployment.trees if tree.id in used)
        gone = [Doomed(tree.id) for tree in self.deployment.trees if tree.id not in used]
        doomed = {one.name: one for one in self.deployment.doomed}
        split = [without(job_of(record), names) for record in self.deployment.federated]
        gone += [Doomed(job.id) for job in split if not live(job)]
        doomed |= {one.name: one for one in (*gone, *(Doomed(r.query, tree=r.tree) for r in left))}
        kept_split = tuple(record_of(job) for job in split if live(job))
        channels = pruned(self.channels, {*(row.query for row in rows), *(tree.id for tree in trees)})
        doomed |= {maker: Doomed(maker) for maker in gone_makers(self.channels, channels)}
        kept_channels = channels_text(channels)
        deployment = Deployment(trees, rows, tuple(doomed.values()), kept_split, kept_channels)
        self._refuse(changes, reason, deployment)
        self.deployment = deployment
        kept = {name: query for name, query in self.project.queries.items() if name not in names}
        self.project = self.project.model_copy(update={"queries": kept})

    # -- one split takes over from another ----------------------------------------------------------

    def hand_over(
        self, old: FederatedJob, engines: Mapping[str, Engines], at: int, instead: FederatedJob | None = None
    ) -> tuple[FederatedJob, FederatedJob] | None:
        """Write down that these queries are given by another job from that window end on: what the old job is
        now, and the new one. `instead` was to be the new one, and was never started. None: a command came
        in between."""
        bound = bounded(old, set(engines), at)
        moved = (m for m in bound.members if m.query in engines)
        members = tuple(replace(m, engines=engines[m.query], after=at, until=None) for m in moved)
        taken = {*self.deployment.ids, *self.project.queries, *self._folders()}
        # What was moved stays there, whatever its queries say; `old` may be as it was before that.
        home = self._homes().get(old.id)
        job = FederatedJob("", home or old.site, members)
        job = replace(job, id=federated_id(job, taken))
        rows = tuple(
            replace(row, federated=job.id) if row.query in engines else row for row in self.deployment.queries
        )
        others = [r for r in self.deployment.federated if instead is None or r.id != instead.id]
        kept = tuple(record_of(bound) if record.id == old.id else record for record in others)
        deployment = replace(self.deployment, queries=rows, federated=(*kept, record_of(job)))
        if home is not None:
            # Before it is deployed: after a kill between, the home of nobody is forgotten.
            self._lives.settle(job.id, home)
        return (bound, job) if self._redeploy(deployment) else None

    def retire(self, job: FederatedJob) -> bool:
        """Forget a job whose windows are all given, and by whom the later ones are given is known."""
        kept = tuple(record for record in self.deployment.federated if record.id != job.id)
        doomed = (*self.deployment.doomed, Doomed(job.id))
        return self._redeploy(replace(self.deployment, federated=kept, doomed=doomed))

    def _redeploy(self, deployment: Deployment) -> bool:
        done = self._store.deploy(deployment, self._store.edits())
        if done:
            self.deployment = deployment
        return done

    # -- folders that belong to nothing -------------------------------------------------------------

    def remove_ready(self) -> None:
        """What belongs to nothing. What runs must be of the deployment."""
        self.remove(self._ready)
        kept = {stream.id for stream in self.channels.streams}
        remove_channels(self.project, self._channels() - kept)

    def _ready(self, one: Doomed) -> bool:
        """Whether nothing holds it back. What has a place again must be gone before that is started."""
        again = self.deployment.place(one.name) is not None
        return one.results or again or one.tree not in self.deployment.ids

    def remove(self, ready: Callable[[Doomed], bool]) -> None:
        going = [one for one in self.deployment.doomed if ready(one)]
        if not going:
            return
        for one in going:
            self._clear(one)
        self._store.removed([one.name for one in going])
        kept = tuple(one for one in self.deployment.doomed if one not in going)
        self.deployment = replace(self.deployment, doomed=kept)

    def _clear(self, one: Doomed) -> None:
        query = self.project.queries.get(one.name)
        if one.results and query is not None:
            context = query_context(self.project, query.name, query.site)
            remove_folders(context, results=writes_files(query))
        else:
            remove_state(job_folder(self.project, one.name))
