"""Which trees and jobs should run: what is deployed, brought together with what the project says now.

- A deployed query that is there and unchanged keeps its place, whatever the planner would choose today.
- A member that is gone from the project leaves its tree; a tree without members is forgotten. The same goes
  for jobs that are split between engines.
- A query that was changed is refused, unless it is started over or has never been started.
- Queries that are spread over sites keep their jobs and channels (service/spread_records.py).
- A query that a command has added joins a tree that runs, from an instant on. All others that have no place
  are placed among themselves, in new trees and jobs, and read their input from its beginning.
- What is new and names no site gets one by `planner.distribution` (service/distributing.py), and keeps it.

Nothing is touched here: `reconcile` is a function from what is to what should be.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from headrace.catalog.model import Project
from headrace.errors import UserError
from headrace.plan.channels import ChannelPlan, pruned
from headrace.plan.data import from_data, to_data
from headrace.plan.federated import FederatedJob, FederatedMember
from headrace.plan.placed import Job, PlacedPlan, TreeJob, TreeMember, TreeShape
from headrace.service.distributing import Deciding, kept_site, with_sites
from headrace.service.federated_records import job_of, live, record_of, without
from headrace.service.fingerprints import changed_parts, query_fingerprint
from headrace.service.moving import at_homes
from headrace.service.situation import Planner, Situation, Wanted
from headrace.service.spread_records import (
    NOTHING,
    Fitted,
    Spread,
    at_their_sites,
    channels_of,
    channels_text,
    gone_makers,
    ids_of,
    refed,
    with_new,
)
from headrace.state.records import (
    Change,
    DeployedQuery,
    Deployment,
    Doomed,
    FederatedRecord,
    TreeRecord,
)

__all__ = ["Planner", "Situation", "Wanted", "reconcile", "shape_text"]


def reconcile(now: Situation, planner: Planner) -> Wanted:
    """Raises UserError for a query that was changed, and where one does not bind."""
    return _Reconciling(now, planner).wanted()


def shape_text(shape: TreeShape) -> str:
    return json.dumps(to_data(shape))


@dataclass(slots=True)
class _Reconciling:
    now: Situation
    planner: Planner
    trees: list[TreeJob] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    idle: list[TreeRecord] = field(default_factory=list)
    """Trees that are kept and do not run this time."""
    federated: list[FederatedJob] = field(default_factory=list)
    idle_federated: list[FederatedJob] = field(default_factory=list)
    rows: list[DeployedQuery] = field(default_factory=list)
    doomed: dict[str, Doomed] = field(default_factory=dict)
    new: set[str] = field(default_factory=set)
    channels: ChannelPlan = NOTHING
    fitted: Fitted = field(default_factory=lambda: Fitted(NOTHING))
    told: list[str] = field(default_factory=list)

    @property
    def before(self) -> ChannelPlan:
        return channels_of(self.now.deployment)

    def wanted(self) -> Wanted:
        self._check_names()
        self.doomed = {one.name: one for one in self.now.deployment.doomed}
        for name in self.now.fresh:
            self._doom(Doomed(name, results=True))
        for record in self.now.deployment.trees:
            self._keep_tree(record)
        for split in self.now.deployment.federated:
            self._keep_federated(split)
        for row in self.now.deployment.queries:
            if row.tree is None and row.federated is None:
                self._keep_job(row)
        self._place_others()
        self._distribute()
        self._spread()
        return self._result()

    def _check_names(self) -> None:
        makers = {job.id for job in self.before.makers}
        for name in sorted((self.now.deployment.ids | makers) & set(self.now.project.queries)):
            kind = "tree" if name in {tree.id for tree in self.now.deployment.trees} else "job"
            raise UserError(f'"{name}" is the name of a {kind}', hint="Give the query another name.")

    # -- what is deployed ---------------------------------------------------------------------------

    def _keep_tree(self, record: TreeRecord) -> None:
        stay = [row for row in self.now.deployment.members(record.id) if self._stays(row)]
        if not stay:
            self._doom(Doomed(record.id))
        elif not any(row.query in self.now.names for row in stay):
            self.idle.append(record)
            self.rows += stay
        else:
            self._run_tree(record, stay)

    def _stays(self, row: DeployedQuery) -> bool:
        if row.query in self.now.fresh:
            return False
        if row.query not in self.now.project.queries:
            self._doom(Doomed(row.query, tree=row.tree))
        return row.query in self.now.project.queries

    def _run_tree(self, record: TreeRecord, stay: list[DeployedQuery]) -> None:
        shape = cast(TreeShape, from_data(json.loads(record.shape)))
        members = [self._member(shape, row) for row in stay]
        kept = tuple(member for member in members if member is not None)
        if not kept:
            self._doom(Doomed(record.id))
            return
        self.trees.append(TreeJob(record.id, self._site(record.site, kept), shape, kept))
        names = {member.query for member in kept}
        self.rows += [row for row in stay if row.query in names]

    def _member(self, shape: TreeShape, row: DeployedQuery) -> TreeMember | None:
        """The member as the project has it now; None: it was changed before it was ever started."""
        project = _sharing(self.now.project)
        found = self.planner.member_of(project, project.queries[row.query])
        if isinstance(found, TreeMember) and shape.takes(found):
            changed = changed_parts(row.fingerprint, query_fingerprint(project, found))
        else:
            changed = ["plan"]
        if changed:
            self._forget_or_refuse(row, changed)
            return None
        return cast(TreeMember, found)

    def _site(self, site: str, members: Sequence[TreeMember | FederatedMember]) -> str:
        return kept_site(self.now.project, site, [member.query for member in members])

    def _keep_federated(self, record: FederatedRecord) -> None:
        """A job whose queries are split: members that are gone from the project, or are started over, leave
        it; and it goes on with the others as long as there are some."""
        job = job_of(record)
        rows = {row.query: row for row in self.now.deployment.queries}
        left = {m.query for m in live(job) if not self._stays_split(m, rows.get(m.query), record.id)}
        job = without(job, left)
        if not live(job):
            self._doom(Doomed(record.id))
            return
        names = {member.query for member in live(job)}
        runs = bool(names & self.now.names)
        job = replace(job, site=self._site(job.site, live(job)))
        (self.federated if runs else self.idle_federated).append(job)
        self.rows += [row for name, row in rows.items() if name in names and row.federated == record.id]

    def _stays_split(self, member: FederatedMember, row: DeployedQuery | None, job: str) -> bool:
        """Whether it has a place in the job still. One that was changed is refused, or was never started."""
        if row is None or row.query in self.now.fresh:
            return False
        project = self.now.project
        if row.query not in project.queries:
            self._doom(Doomed(row.query, tree=job))
            return False
        if row.query not in self.now.names:
            return True
        found = self.planner.plan_query(project, project.queries[row.query])
        changed = changed_parts(row.fingerprint, query_fingerprint(project, found))
        if changed:
            self._forget_or_refuse(row, changed)
        return not changed

    def _keep_job(self, row: DeployedQuery) -> None:
        """A job whose query is gone from the file keeps what it has, as long as nobody drops it."""
        dropped = {change.query for change in self.now.edits.pending if change.kind == "drop"}
        if row.query in self.now.fresh:
            return
        if row.query in dropped:
            self._doom(Doomed(row.query))
        elif row.query not in self.now.names:
            self.rows.append(row)
        else:
            self._run_job(row)

    def _run_job(self, row: DeployedQuery) -> None:
        project = self.now.project
        job = self.planner.plan_query(project, project.queries[row.query])
        changed = changed_parts(row.fingerprint, query_fingerprint(project, job))
        if changed:
            self._forget_or_refuse(row, changed)
        else:
            free = project.queries[row.query].free and row.site in project.sites
            self.jobs.append(replace(job, site=row.site) if free and row.site else job)
            self.rows.append(row)

    def _forget_or_refuse(self, row: DeployedQuery, changed: list[str]) -> None:
        if row.query in self.now.folders:
            raise UserError(
                f'the {" and the ".join(changed)} of query "{row.query}" has changed since its last run',
                detail="Its checkpoint and results were made for what it was before.",
                hint=f"Run it from the beginning with: headrace run --fresh --only {row.query}",
            )
        self._doom(Doomed(row.query, tree=row.tree or row.federated))

    def _doom(self, one: Doomed) -> None:
        before = self.doomed.get(one.name)
        results = one.results or (before is not None and before.results)
        self.doomed[one.name] = replace(one, results=results)

    # -- what has no place yet ----------------------------------------------------------------------

    def _asked(self) -> dict[str, Change]:
        return {change.query: change for change in self.now.edits.pending if change.kind == "add"}

    def _place_others(self) -> None:
        placed, asked = {row.query for row in self.rows}, self._asked()
        wanted = [n for n in self.now.project.queries if n in self.now.names or n in asked]
        homeless = [name for name in wanted if name not in placed]
        self.new = set(homeless)
        joining = [n for n in homeless if n in asked and not asked[n].from_start and self._join(n)]
        self._place_new([name for name in homeless if name not in joining])

    def _join(self, name: str) -> bool:
        """Whether a tree that runs takes the query."""
        project = self.now.project
        query = project.queries[name]
        member = self.planner.member_of(project, query)
        able = [tree for tree in self.trees if tree.id not in self.now.closed]
        if isinstance(member, str) or name in self.now.fresh:
            return False
        # A query that names its site joins what is there now, wherever that was put at first.
        homes = {tree: site for tree, site in self.now.homes.items() if site in project.sites}
        able = [replace(tree, site=homes.get(tree.id, tree.site)) for tree in able]
        found = self.planner.best_tree(project, member, None if query.free else query.site, able)
        if found is None:
            return False
        for number, tree in enumerate(self.trees):
            if tree.id == found.id:
                self.trees[number] = replace(tree, members=(*tree.members, member))
        self._deployed(member, found.id)
        return True

    def _place_new(self, names: list[str]) -> None:
        if not names:
            return
        placed = self.planner.place(self.now.project, names, self._taken())
        for job in placed.jobs:
            self.jobs.append(job)
            self._deployed(job, None)
        for tree in placed.trees:
            self.trees.append(tree)
            for member in tree.members:
                self._deployed(member, tree.id)
        for split in placed.federated:
            self.federated.append(split)
            for one in split.members:
                self._deployed(one, None, split.id)

    def _distribute(self) -> None:
        """Jobs that name no site and have none, or one that is no more, get theirs; the others stay."""
        now = self.now
        placed = PlacedPlan(tuple(self.jobs), tuple(self.trees), federated=tuple(self.federated))
        placed, self.told = Deciding(now.project, now.deployment, now.homes, now.down)(placed)
        self.jobs, self.trees = list(placed.jobs), list(placed.trees)
        self.federated = list(placed.federated)
        self.rows = with_sites(now.project, self.rows, self.jobs)

    def _taken(self) -> set[str]:
        now = self.now
        known = {*now.deployment.ids, *now.project.queries, *self.doomed, *ids_of(self.before)}
        return known | now.folders | now.channels

    def _spread(self) -> None:
        """Cut the queries that have no place yet, and let go of what nobody reads any more."""
        before, known = self.before, {tree.id for tree in self.now.deployment.trees}
        ends = {row.query for row in self.rows} - self.new
        ends |= {tree.id for tree in self.idle} | {tree.id for tree in self.trees}
        kept = refed(pruned(before, ends), PlacedPlan((), tuple(self.trees)))
        new = PlacedPlan(
            tuple(job for job in self.jobs if job.query in self.new),
            tuple(tree for tree in self.trees if tree.id not in known),
        )
        self.fitted = with_new(self.now.project, kept, new, lambda: self._cut(kept, new))
        self.channels = self.fitted.plan
        for maker in gone_makers(before, self.channels):
            self._doom(Doomed(maker))

    def _cut(self, kept: ChannelPlan, new: PlacedPlan) -> Fitted:
        """The new ones, beside all that stands where it is now."""
        homes, project = self.now.homes, self.now.project
        placed = PlacedPlan(tuple(self.jobs), tuple(self.trees), federated=tuple(self.federated))
        now = Spread(at_their_sites(kept, homes, project), at_homes(placed, homes, project.sites))
        taken = self._taken() | {tree.id for tree in self.trees}
        return self.planner.spread(project, now, new, taken)

    def _deployed(
        self, placed: Job | TreeMember | FederatedMember, tree: str | None, federated: str | None = None
    ) -> None:
        print_ = query_fingerprint(self.now.project, placed)
        self.rows.append(DeployedQuery(placed.query, tree, print_, federated))
        # What a query of that name has left in its folder is not the new one's.
        if placed.query in self.now.folders and (tree or federated):
            self._doom(Doomed(placed.query))

    # -- the outcome --------------------------------------------------------------------------------

    def _result(self) -> Wanted:
        order = {name: number for number, name in enumerate(self.now.project.queries)}
        jobs = sorted(self.jobs, key=lambda job: order[job.query])
        running = {tree.id: TreeRecord(tree.id, tree.site, shape_text(tree.shape)) for tree in self.trees}
        idle = {record.id: record for record in self.idle}
        known = [record.id for record in self.now.deployment.trees]
        ids = [*(i for i in known if i in running or i in idle), *(i for i in running if i not in known)]
        records = tuple({**idle, **running}[i] for i in ids)
        before = {one.name for one in self.now.deployment.doomed}
        split = tuple(map(record_of, (*self.idle_federated, *self.federated)))
        return Wanted(
            Deployment(
                records, tuple(self.rows), tuple(self.doomed.values()), split, channels_text(self.channels)
            ),
            PlacedPlan(tuple(jobs), tuple(self.trees), federated=tuple(self.federated)),
            frozenset(self.new),
            self._applied(),
            self.now.fresh | (set(self.doomed) - before),
            tuple(self._notes()),
            self.channels,
            self.fitted.notes,
            self.fitted.no_room,
        )

    def _applied(self) -> dict[int, str | None]:
        place = {row.query: row.tree or row.federated for row in self.rows}
        return {
            change.id: place.get(change.query)
            for change in self.now.edits.pending
            if change.kind == "drop" or change.query in place
        }

    def _notes(self) -> list[str]:
        asked = self._asked()
        notes = [*self.told, *self.fitted.notes]
        for tree in self.trees:
            others = [m.query for m in tree.members if m.query not in self.now.names and m.query not in asked]
            if others:
                notes.append(f"{tree.id} also runs {', '.join(others)}: a tree cannot leave a member behind")
        for job in self.federated:
            others = [m.query for m in live(job) if m.query not in self.now.names and m.query not in asked]
            if others:
                notes.append(f"{job.id} also runs {', '.join(others)}, which are in the same job")
        return notes


def _sharing(project: Project) -> Project:
    """What is deployed in a tree stays there, also where new trees are switched off."""
    planner = project.planner.model_copy(update={"sharing": True})
    return project.model_copy(update={"planner": planner})
