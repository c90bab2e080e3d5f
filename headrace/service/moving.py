"""Move the jobs of a project between its sites. This is the API; `headrace move` is a thin skin over it.

    ask:    check -> [ move asked ]                                     [ ] = one transaction
    run:    moving_run.py, once a round: prepare, in a thread of its own, then the other steps (relocate.py)
    no run: the project's lock is taken, and the move is made on disk; the next run starts the job there

A job lives where its last move has left it (`homes`), whatever the project file says: `at_homes` puts that
into a plan. A run that was killed in the middle of a move is followed by one that calls `settle_open` first.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.catalog.model import Project, SinkKind
from headrace.errors import EngineError, HeadraceError, NotSupported, UserError
from headrace.ids import did_you_mean
from headrace.plan.channels import ChannelJob
from headrace.plan.placed import PlacedPlan
from headrace.runtime.executor import Progress
from headrace.runtime.relocate import Outcome, Relocator, suspects
from headrace.runtime.sites import Ways
from headrace.service.distributing import kept_site
from headrace.service.federated_records import job_of, live
from headrace.service.layout import job_folder, lock_file, own_folder, state_file
from headrace.service.moments import now, timestamp
from headrace.service.project import deployment_of, open_project
from headrace.service.spread_records import channels_of
from headrace.service.spreading import used_sites
from headrace.service.storages import place_of
from headrace.state.lock import DRAINING, RUNNING, RunLock
from headrace.state.moves import MoveRecord, Moves
from headrace.state.records import Deployment, FederatedRecord, TreeRecord

if TYPE_CHECKING:
    from headrace.runtime.spark.sites import SitesExecutor, SparkFence

TIMEOUT_SECONDS = 300.0
_POLL_SECONDS = 0.2

WaysOf = Callable[[Project], AbstractContextManager[Ways]]
"""How the sites of a project are asked, cleared and made ready."""


def moves_of(project: Project) -> Moves:
    """The moves in the project's state file. Use as a context manager."""
    return Moves(state_file(project), lambda: timestamp(now))


# -- asking -----------------------------------------------------------------------------------------


def ask_move(path: Path, job: str, site: str) -> int:
    """Ask for a move; its number, for `wait_for_move`. Raises UserError, and then nothing has changed."""
    project = open_project(path)
    deployment = deployment_of(project)
    _check_site(project, site)
    _check_job(project, deployment, job)
    if RunLock.holder(lock_file(project)) == DRAINING:
        raise UserError(
            "the run that is on drains its input and moves nothing", hint="Wait for it to end, or stop it."
        )
    with moves_of(project) as moves:
        source = site_of(project, deployment, moves.homes(), job)
        if source == site:
            raise UserError(f"{job} is at {site} already")
        return moves.ask(job, source, site)


def _check_site(project: Project, site: str) -> None:
    known = [one.name for one in used_sites(project)]
    if site not in known:
        raise UserError(f'site "{site}" does not exist', hint=did_you_mean(site, known, "sites"))


def _check_job(project: Project, deployment: Deployment, job: str) -> None:
    """It is deployed, and can be moved without losing what it has given."""
    trees = {tree.id for tree in deployment.trees}
    makers = {one.id for one in channels_of(deployment).makers}
    row = deployment.place(job)
    split = {one.id: [m.query for m in live(job_of(one))] for one in deployment.federated}
    unit = None if row is None else row.tree or row.federated
    if unit is not None:
        _refuse_member(job, unit, split.get(unit) or [one.query for one in deployment.members(unit)])
    if row is None and job not in trees | makers | set(split):
        alone = [one.query for one in deployment.queries if one.tree is None and one.federated is None]
        known = [*trees, *makers, *split, *alone]
        raise UserError(f'no job "{job}" is deployed', hint=did_you_mean(job, known, "jobs"))
    members = [one.query for one in deployment.members(job)] if job in trees else split.get(job, [job])
    kept = {name: project.queries[name].sink.kind for name in members if name in project.queries}
    volatile = [name for name, kind in kept.items() if kind is SinkKind.MEMORY]
    if volatile:
        raise NotSupported(
            f"{volatile[0]} keeps its results in memory, where a move would leave them",
            hint="Give it a file sink.",
        )


def _refuse_member(query: str, unit: str, members: Sequence[str]) -> None:
    others = [name for name in members if name != query]
    raise UserError(
        f"{query} is answered by {unit}" + (f", with {', '.join(others)}" if others else ""),
        hint=f"Move what answers it: headrace move {unit} SITE",
    )


def site_of(project: Project, deployment: Deployment, homes: Mapping[str, str], job: str) -> str:
    """Where a job lives: where a move has left it, where its tree, its split job or what it makes for others
    is, where `planner.distribution` has put it, or where its query wants it. For one that does not run: where
    the next run starts it, going by the file as it is now."""
    if job in homes and homes[job] in project.sites:
        return homes[job]
    made: list[TreeRecord | FederatedRecord | ChannelJob] = [*deployment.trees, *deployment.federated]
    made += channels_of(deployment).makers
    found = next((one for one in made if one.id == job), None)
    if found is not None:
        members = [name for name in _members(deployment, found) if name in project.queries]
        return kept_site(project, found.site, members) if members else found.site
    if job not in project.queries:
        raise UserError(f"{job} is no longer in the project file", hint="Put it back, or drop it.")
    row, query = deployment.place(job), project.queries[job]
    given = row.site if row is not None and query.free and row.site in project.sites else None
    return given or query.site


def _members(deployment: Deployment, made: TreeRecord | FederatedRecord | ChannelJob) -> list[str]:
    if isinstance(made, FederatedRecord):
        return [member.query for member in live(job_of(made))]
    return [row.query for row in deployment.members(made.id)]


def at_homes(placed: PlacedPlan, homes: Mapping[str, str], sites: Mapping[str, object]) -> PlacedPlan:
    """The plan with every job where its last move has left it, as long as there is such a site."""

    def home(job: str, planned: str) -> str:
        return homes[job] if homes.get(job) in sites else planned

    return replace(
        placed,
        jobs=tuple(replace(job, site=home(job.id, job.site)) for job in placed.jobs),
        trees=tuple(replace(tree, site=home(tree.id, tree.site)) for tree in placed.trees),
        federated=tuple(replace(job, site=home(job.id, job.site)) for job in placed.federated),
    )


# -- waiting, or moving on disk ---------------------------------------------------------------------


def wait_for_move(
    path: Path,
    move: int,
    timeout: float = TIMEOUT_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
    ways_of: WaysOf | None = None,
) -> MoveRecord:
    """The move as it has become: carried out by the run that is on, or, where none is, here. After `timeout`
    seconds what the run has not done yet stays asked for."""
    project = open_project(path)
    with moves_of(project) as moves:
        waited = 0.0
        while (record := _record(moves, move)).ended is None and waited < timeout:
            if RunLock.holder(lock_file(project)) is None:
                _at_rest(project, moves, ways_of or disk_ways)
                continue
            sleep(_POLL_SECONDS)
            waited += _POLL_SECONDS
        return record


def _record(moves: Moves, move: int) -> MoveRecord:
    record = moves.get(move)
    if record is None:
        raise UserError(f"there is no move {move}")
    return record


def told(record: MoveRecord) -> str:
    """What became of a move, in a line."""
    pause = "" if record.pause is None else f", after a pause of {record.pause:.1f} s"
    match record.state:
        case "moved":
            return f"{record.job} moved from {record.source} to {record.target}{pause}"
        case "stayed":
            return f"{record.job} is at {record.site}, not at {record.target}: {record.message}"
        case "refused":
            return f"{record.job} was not moved: {record.message}"
        case _:
            way = f"from {record.source} to {record.target}"
            return f"{record.job} is to move {way}; the run that is on does it, or the next one"


def _at_rest(project: Project, moves: Moves, ways_of: WaysOf) -> None:
    """Nothing runs: let every job that was asked for live where it is to go, and fence off where it was."""
    lock = RunLock(lock_file(project), RUNNING)
    try:
        lock.acquire()
    except UserError:
        return
    try:
        with ways_of(project) as ways:
            settle_open(project, moves, ways)
            settle_asked(project, moves, ways)
    finally:
        lock.release()


def settle_asked(project: Project, moves: Moves, ways: Ways) -> None:
    """Nothing runs: jobs live where they were asked to go, and the next run starts them there."""
    rest, deployed = _AtRest(project, ways), deployed_jobs(deployment_of(project))
    for record in moves.asked():
        if record.target not in project.sites or record.job not in deployed:
            moves.refuse(record.id, "the job or the site is no more")
            continue
        try:
            rest.clear(record.job, record.source)
        except HeadraceError as error:
            moves.refuse(record.id, error.render())
        else:
            moves.end(Outcome(record.move, record.target, True))


def deployed_jobs(deployment: Deployment) -> frozenset[str]:
    """Whatever may have a home."""
    makers = {one.id for one in channels_of(deployment).jobs}
    return deployment.ids | makers | {row.query for row in deployment.queries}


def settle_open(project: Project, moves: Moves, ways: Ways) -> tuple[Outcome, ...]:
    """For a run that is about to start all its jobs, with the lock held: moves that another run has left in
    the middle. Old copies are fenced off, and each job lives where its journal says. Raises where a copy may
    still be running: then nothing may be started."""
    rest = _AtRest(project, ways)
    relocator = Relocator(rest, moves, time.monotonic, time.sleep)
    found, deployed = [], deployed_jobs(deployment_of(project))
    for move, entries in moves.open_moves():
        if move.job not in deployed:
            for site in suspects(move, entries):
                rest.clear(move.job, site)
            moves.end(Outcome(move, move.source, False, reason="it was dropped"))
            moves.forget(move.job)
            continue
        site, wrong = relocator.place(move, entries)
        reason = wrong or ("" if site == move.target else "the move was interrupted")
        outcome = Outcome(move, site, site == move.target, reason=reason)
        moves.end(outcome)
        found.append(outcome)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _AtRest:
    """Implements `relocate.Sites` for a project of which nothing runs."""

    project: Project
    ways: Ways

    def answers(self, site: str) -> bool:
        return site in self.project.sites and self.ways.answers(site)

    def others(self, job: str) -> Sequence[str]:
        return self.ways.others(job)

    def prepare(self, job: str, site: str) -> None:
        return None

    def runs(self, job: str, site: str) -> bool:
        return False

    def stop(self, job: str, site: str) -> None:
        return None

    def clear(self, job: str, site: str) -> None:
        # Of a site that the project has no more, what is left is known by its address, and was ended.
        if site in self.project.sites:
            self.ways.clear(job, site)

    def state(self, job: str, site: str) -> Path:
        return job_folder(self.project, job)

    def keeps(self, job: str, site: str) -> Path | None:
        return place_of(self.project, job, site)

    def start(self, job: str, site: str) -> None:
        raise EngineError(f"{job} is not started by this process")

    def progress(self, job: str) -> Progress:
        raise EngineError(f"{job} was not started by this process")


@contextmanager
def disk_executor() -> Iterator[SitesExecutor]:
    """For a project that does not run: starts nothing, and ends what a killed run has left."""
    from headrace.runtime.spark.sites import SitesExecutor

    executor = SitesExecutor(os.environ, fresh=lambda: str(uuid.uuid4()))
    try:
        yield executor
    finally:
        executor.close()


@contextmanager
def disk_ways(project: Project) -> Iterator[Ways]:
    """Of a project that does not run: sessions that a killed run has left are ended where they are."""
    with disk_executor() as executor:
        yield spark_ways(project, executor)


def spark_ways(project: Project, executor: SitesExecutor) -> Ways:
    """Sites as Spark has them."""
    fence = spark_fence(project, executor)
    return Ways(
        fence.answers,
        fence.clear,
        executor.rehearse,
        lambda job: [site.name for site in used_sites(project)],
        # The engine of this process: it has to be started, and has the memory of one site.
        lambda site: not project.sites[site].endpoint.startswith("sc://"),
        executor.rehearse,
        fence.is_dead,
    )


def spark_fence(project: Project, executor: SitesExecutor) -> SparkFence:
    """The fence of a project. A run calls its `clear_all` before it starts anything."""
    from headrace.runtime.spark.remote import Ledger
    from headrace.runtime.spark.servers import servers
    from headrace.runtime.spark.sites import SparkFence
    from headrace.service.sites import FOLDER, checker

    endpoints = {name: site.endpoint for name, site in project.sites.items()}
    ledger = Ledger(own_folder(project), lambda: str(uuid.uuid4()))
    folder = project.root.resolve() / FOLDER
    return SparkFence(executor, ledger, endpoints, lambda: servers(folder), checker())
