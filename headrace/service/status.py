"""How a project is: what should run, what was seen of it, where, how full its sites are, what moves.

Reads only: the state file (desired and observed), the journal of moves, and what was gathered. Sites with an
address are asked whether they answer. Works also when nothing runs; then all figures are old, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypedDict

import psutil

from headrace.catalog.model import Project
from headrace.catalog.redact import redact
from headrace.plan.channels import ChannelPlan
from headrace.runtime.executor import JobState
from headrace.service.fleet import queries
from headrace.service.gathered import Gathered, JobFacts, gathered_of
from headrace.service.layout import lock_file, state_file
from headrace.service.moments import Clock, now
from headrace.service.moving import moves_of, site_of
from headrace.service.probing import FOLDER, REMOTE
from headrace.service.rebalancing import LATEST, cost_tables, problem_of, sites_of
from headrace.service.rebalancing_told import RebalancingData, told_of
from headrace.service.spread_records import channels_of
from headrace.state.lock import RunLock
from headrace.state.moves import MoveRecord
from headrace.state.records import Deployment, JobRecord
from headrace.state.store import Store
from headrace.stats.beliefs import Belief
from headrace.units import format_instant

MOVES = 10
_WORST = (JobState.FAILED, JobState.STARTING)


class ProcessData(TypedDict):
    running: bool
    doing: str | None
    """`run` or `drain`."""
    pid: int | None
    since: str | None


class JobData(TypedDict):
    """A job, a tree, a split job, or a part of spread queries. None: not known, or never seen."""

    job: str
    kind: str
    queries: list[str]
    """Those it answers; of one that makes a stream: those that are answered from it."""
    makes: str | None
    """The stream that it makes for others."""
    desired: str | None
    observed: str | None
    current: bool
    """Whether what was observed is so now: the process that saw it still runs."""
    site: str
    """Where it was last started."""
    wanted_site: str
    """Where it is to be: the target of a move that goes on, where a move has left it, or where it was
    planned."""
    rows_in: float | None
    """A second, as the other rates."""
    rows_out: float | None
    selectivity: float | None
    batches: float | None
    batch_seconds: float | None
    cpu: float | None
    state_rows: float | None
    state_bytes: float | None
    lag_seconds: float | None
    late_rows: int
    """In all."""
    watermark: str | None
    age: float | None
    """Seconds since its figures were seen."""
    error: str
    updated: str | None


class SiteData(TypedDict):
    site: str
    endpoint: str
    health: str
    """As `headrace sites` has it; of the Spark of the run itself `in the run` or `not started`."""
    reason: str
    cpu: float | None
    cpu_limit: float
    memory: float | None
    memory_limit: float
    jobs: list[str]
    age: float | None


class MoveData(TypedDict):
    move: int
    job: str
    source: str
    target: str
    state: str
    pause: float | None
    message: str
    asked: str
    ended: str | None


class CostData(TypedDict):
    cost: float
    """1: full."""
    resource: str
    jobs: dict[str, float]
    """The part of it that each job adds."""


class StatusData(TypedDict):
    project: str
    process: ProcessData
    gathered: str | None
    """When the figures were gathered; None: never."""
    age: float | None
    jobs: list[JobData]
    sites: list[SiteData]
    moves: list[MoveData]
    """The open ones and the latest, the newest first."""
    costs: dict[str, dict[str, CostData]]
    """Cost model -> site."""
    rebalancing: RebalancingData


@dataclass(frozen=True, slots=True)
class Health:
    state: str
    reason: str = ""
    cpu: float | None = None
    memory: float | None = None


AskSites = Callable[[Project], Mapping[str, Health]]


def status_of(project: Project, ask: AskSites | None = None, clock: Clock = now) -> StatusData:
    """Raises UserError where the state file cannot be read."""
    gathered, process, at = gathered_of(project), process_of(project), clock().timestamp()
    cores = {} if gathered is None else gathered.cores()
    known = _known(project)
    look = _Look(project, known, gathered, cores, process, at, _units(project, known.deployment))
    shown = [one for i, one in enumerate(look.known.moves) if i < MOVES or one.ended is None]
    return StatusData(
        project=project.name,
        process=process,
        gathered=None if gathered is None else _moment(gathered.at),
        age=None if gathered is None else max(0.0, at - gathered.at),
        jobs=[_job(look, unit) for unit in look.units],
        sites=_sites(look, (ask or ask_sites)(project)),
        moves=[_move(record) for record in shown],
        costs={} if gathered is None else costs_of(project, gathered),
        rebalancing=told_of(project, process["since"]),
    )


def process_of(project: Project) -> ProcessData:
    """Who runs the project. Read from the lock: it is held by whoever does."""
    doing = RunLock.holder(lock_file(project))
    if doing is None:
        return ProcessData(running=False, doing=None, pid=None, since=None)
    first = lock_file(project).read_text(encoding="ascii", errors="replace").partition(" ")[0]
    pid = int(first) if first.isdigit() else None
    try:
        since = None if pid is None else _moment(psutil.Process(pid).create_time())
    except psutil.Error:
        since = None
    return ProcessData(running=True, doing=doing, pid=pid, since=since)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


# -- jobs -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Known:
    deployment: Deployment
    records: Mapping[str, JobRecord]
    homes: Mapping[str, str]
    moves: Sequence[MoveRecord]


def _known(project: Project) -> _Known:
    """No state file is made where there is none."""
    if not state_file(project).exists():
        return _Known(Deployment(), {}, {}, ())
    with Store(state_file(project)) as store, moves_of(project) as moves:
        records = {record.id: record for record in store.all()}
        return _Known(store.deployment(), records, moves.homes(), moves.latest(LATEST))


@dataclass(frozen=True, slots=True)
class _Look:
    """All that was read."""

    project: Project
    known: _Known
    gathered: Gathered | None
    cores: Mapping[str, float]
    process: ProcessData
    at: float
    units: Sequence[_Unit]

    def belief(self, job: str) -> Belief | None:
        return None if self.gathered is None else self.gathered.job(job)

    def records(self, unit: _Unit) -> list[JobRecord]:
        return [self.known.records[name] for name in unit.queries if name in self.known.records]

    def wanted_site(self, unit: _Unit) -> str:
        going = [one.target for one in self.known.moves if one.job == unit.id and one.ended is None]
        if going:
            return next(iter(going))
        return site_of(self.project, self.known.deployment, self.known.homes, unit.id)

    def facts(self, unit: _Unit) -> JobFacts | None:
        return None if self.gathered is None else self.gathered.jobs.get(unit.id)

    def site(self, unit: _Unit) -> str:
        """By what was last seen of it, or, before it was ever started, by what is wanted."""
        worst, facts = _worst(self.records(unit)), self.facts(unit)
        if worst is not None:
            return worst.site
        return facts.site if facts is not None and unit.kind == "part" else self.wanted_site(unit)


@dataclass(frozen=True, slots=True)
class _Unit:
    id: str
    kind: str
    queries: tuple[str, ...]
    makes: str | None = None
    feeds: tuple[str, ...] = ()
    """The queries that are answered from what it makes."""


def _units(project: Project, deployment: Deployment) -> list[_Unit]:
    """What is deployed, then queries that no run has taken yet."""
    units = [
        _Unit(tree.id, "tree", tuple(row.query for row in deployment.members(tree.id)))
        for tree in deployment.trees
    ]
    for one in deployment.federated:
        answered = tuple(row.query for row in deployment.queries if row.federated == one.id)
        units.append(_Unit(one.id, "split", answered))
    units = [unit for unit in units if unit.queries]
    alone = [row.query for row in deployment.queries if row.tree is None and row.federated is None]
    placed = {row.query for row in deployment.queries}
    alone += [name for name in project.queries if name not in placed]
    units += [_Unit(name, "job", (name,)) for name in alone if name in project.queries]
    return [*units, *_makers(channels_of(deployment))]


def _makers(channels: ChannelPlan) -> Iterator[_Unit]:
    for maker in channels.makers:
        read = dict.fromkeys(query for below in channels.downstream(maker.id) for query in queries(below))
        yield _Unit(maker.id, "part", (), makes=maker.writes, feeds=tuple(read))


def _job(look: _Look, unit: _Unit) -> JobData:
    records, belief, facts = look.records(unit), look.belief(unit.id), look.facts(unit)
    worst = _worst(records)
    # What makes a stream for others is wanted as long as it is deployed, and has no row of its own.
    made = facts.state if facts is not None and unit.kind == "part" else None
    marks = [record.watermark for record in records if record.watermark is not None]
    return JobData(
        job=unit.id,
        kind=unit.kind,
        queries=list(unit.queries or unit.feeds),
        makes=unit.makes,
        desired=worst.desired if worst else "running" if unit.kind == "part" else None,
        observed=worst.observed if worst else made,
        current=look.process["running"],
        site=look.site(unit),
        wanted_site=look.wanted_site(unit),
        rows_in=_figure(belief, "rows_in"),
        rows_out=_figure(belief, "rows_out"),
        selectivity=None if belief is None else belief.selectivity,
        batches=_figure(belief, "batches"),
        batch_seconds=_figure(belief, "batch_seconds"),
        cpu=look.cores.get(unit.id),
        state_rows=_figure(belief, "state_rows"),
        state_bytes=None if look.gathered is None else look.gathered.state_bytes(unit.id),
        lag_seconds=_figure(belief, "lag_seconds"),
        late_rows=sum(record.late_rows for record in records),
        watermark=format_instant(min(marks)) if marks else None,
        age=None if belief is None else belief.age(look.at),
        error=next((record.error for record in records if record.error), ""),
        updated=max((record.updated for record in records), default=None),
    )


def _worst(records: Sequence[JobRecord]) -> JobRecord | None:
    """A tree is as its worst member is."""
    rank = {str(state): number for number, state in enumerate(_WORST)}
    return min(records, key=lambda one: rank.get(one.observed or "", len(rank)), default=None)


def _figure(belief: Belief | None, name: str) -> float | None:
    return None if belief is None else belief[name]


# -- sites, moves, costs ----------------------------------------------------------------------------


def ask_sites(project: Project) -> dict[str, Health]:
    """The sites with an address, each asked whether it answers. Takes seconds where one does not."""
    if not any(site.endpoint.startswith(REMOTE) for site in project.sites.values()):
        return {}
    from headrace.service.sites import status

    rows = status(project.root.resolve() / FOLDER, project)
    by_address, by_name = {row.address: row for row in rows}, {row.name: row for row in rows}
    found = {}
    for name, site in project.sites.items():
        row = by_address.get(site.endpoint) or by_name.get(name)
        if row is not None and site.endpoint.startswith(REMOTE):
            found[name] = Health(row.state, row.reason, row.cpu, row.memory)
    return found


def _sites(look: _Look, health: Mapping[str, Health]) -> list[SiteData]:
    own = Health("in the run" if look.process["running"] else "not started")
    at = {unit.id: look.site(unit) for unit in look.units}
    return [
        _site(look, name, health.get(name, own), [job for job, site in at.items() if site == name])
        for name in (site.name for site in sites_of(look.project, at.values()))
    ]


def _site(look: _Look, name: str, health: Health, jobs: list[str]) -> SiteData:
    site = look.project.sites[name]
    belief = None if look.gathered is None else look.gathered.site(name)
    cpu, memory = _figure(belief, "cpu"), _figure(belief, "memory")
    return SiteData(
        site=name,
        endpoint=redact(site.endpoint),
        health=health.state,
        reason=health.reason,
        cpu=health.cpu if cpu is None else cpu,
        cpu_limit=site.cpu,
        memory=health.memory if memory is None else memory,
        memory_limit=float(site.memory),
        jobs=jobs,
        age=None if belief is None else belief.age(look.at),
    )


def _move(record: MoveRecord) -> MoveData:
    return MoveData(
        move=record.id,
        job=record.job,
        source=record.source,
        target=record.target,
        state=record.state,
        pause=record.pause,
        message=record.message,
        asked=record.asked,
        ended=record.ended,
    )


def costs_of(project: Project, gathered: Gathered) -> dict[str, dict[str, CostData]]:
    """How full each site is by each model, with what runs there."""
    problem = problem_of(project, gathered)
    if not problem.operators:
        return {}
    return {
        model: {
            site: CostData(cost=one.cost, resource=one.resource, jobs=dict(one.operators))
            for site, one in table.sites.items()
        }
        for model, table in cost_tables(problem).items()
    }
