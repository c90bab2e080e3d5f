"""Which site runs which job: those of queries that name no site are spread by `planner.distribution`.

    jobs, made as if all free queries were at one place (weaving.py)
        -> Problem: predicted cores and memory, streams with their sites
        -> the pattern, in two tiers where sites have regions (planners/distribution) -> a site for each job

What is distributed is a job: a tree, a split job, or a query on its own. So what sharing weaves together is
never torn apart, and each job is in the table once. A job with a query that names its site is there. One that
is deployed stays where it is; only what is new gets a site, and what has lost its own because that is not in
the project file any more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.catalog.model import Project
from headrace.catalog.model import Site as Declared
from headrace.errors import InternalError
from headrace.plan.federated import FederatedJob
from headrace.plan.logical import streams_of
from headrace.plan.placed import Job, PlacedPlan, TreeJob
from headrace.planners.distribution.extended import extended
from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream
from headrace.planners.distribution.usage import Usage
from headrace.service.calibration_file import costs_of
from headrace.service.estimates import expected_rate
from headrace.service.federated_records import live
from headrace.service.predict import predicted
from headrace.service.spreading import used_sites
from headrace.state.records import DeployedQuery, Deployment

Unit = TreeJob | FederatedJob | Job
PATTERNS: Mapping[str, str] = {"round_robin": "round-robin", "grouping": "grouping", "ours": "balanced"}
"""As users call them, and as the planner does."""
NAMED = "names it"
STAYS = "it runs there"
_WHY = {
    "round_robin": "round robin: the fewest jobs were there",
    "grouping": "grouping: as many jobs at each site",
    "ours": "ours: loads are most even so",
}


@dataclass(frozen=True, slots=True)
class Assigned:
    job: str
    queries: tuple[str, ...]
    site: str
    why: str


@dataclass(frozen=True, slots=True)
class Distribution:
    jobs: tuple[Assigned, ...]
    """Every job once: trees, split jobs, then the others."""
    new: Mapping[str, str]
    """Job -> site, of those that the pattern has placed now."""
    problem: Problem
    usage: Usage


def units(placed: PlacedPlan) -> tuple[Unit, ...]:
    return (*placed.trees, *placed.federated, *placed.jobs)


def queries_of(unit: Unit) -> tuple[str, ...]:
    if isinstance(unit, Job):
        return (unit.query,)
    return tuple(one.query for one in (live(unit) if isinstance(unit, FederatedJob) else unit.members))


def is_free(project: Project, queries: Iterable[str]) -> bool:
    """Whether none of these queries names its site. One that is no more names none."""
    return project.distributes and all(_free(project, name) for name in queries)


def _free(project: Project, name: str) -> bool:
    return name not in project.queries or project.queries[name].free


def kept_site(project: Project, site: str, queries: Iterable[str]) -> str:
    """Where something that answers several queries is: where it was put, as long as one of them still wants
    that, or none names a site. They must be of the project."""
    found = [project.queries[name] for name in queries]
    named = [query.site for query in found if not query.free]
    wanted = named or [*project.sites]
    return site if site in wanted else [*named, found[0].site][0]


def at_sites(placed: PlacedPlan, sites: Mapping[str, str]) -> PlacedPlan:
    """With these jobs at these sites."""
    return replace(
        placed,
        jobs=tuple(replace(one, site=sites.get(one.id, one.site)) for one in placed.jobs),
        trees=tuple(replace(one, site=sites.get(one.id, one.site)) for one in placed.trees),
        federated=tuple(replace(one, site=sites.get(one.id, one.site)) for one in placed.federated),
    )


def distribute(
    project: Project, placed: PlacedPlan, at: Mapping[str, str] | None = None, down: Collection[str] = ()
) -> Distribution:
    """A site for each job that has none. `at` says where those are that have one; `down` are sites that do
    not answer, and get nothing as long as another does. Raises InternalError where the table is none."""
    every = units(placed)
    held = {one.id: (at or {}).get(one.id, one.site) for one in every if _has_site(project, one, at or {})}
    problem = _problem(project, placed, held, down)
    found = extended(problem, PATTERNS[project.planner.distribution])
    jobs = tuple(_assigned(project, one, found.table[one.id], held) for one in every)
    _check(project, every, jobs)
    return Distribution(jobs, found.new, problem, found.usage)


def _has_site(project: Project, unit: Unit, at: Mapping[str, str]) -> bool:
    return unit.id in at or not is_free(project, queries_of(unit))


def _assigned(project: Project, unit: Unit, site: str, held: Mapping[str, str]) -> Assigned:
    queries = queries_of(unit)
    named = [name for name in queries if not _free(project, name)]
    if unit.id in held:
        why = f"{named[0]} {NAMED}" if named else STAYS
    else:
        here = [name for name in _streams(unit) if project.streams[name].site == site]
        why = _WHY[project.planner.distribution] + (f"; {', '.join(here)} comes from there" if here else "")
    return Assigned(unit.id, queries, site, why)


def _check(project: Project, every: Sequence[Unit], jobs: Sequence[Assigned]) -> None:
    """Every job exactly once, and every site declared."""
    if sorted(one.job for one in jobs) != sorted({unit.id for unit in every}):
        raise InternalError("distribution: not every job is in the table once")
    for one in jobs:
        if one.site not in project.sites:
            raise InternalError(f"distribution: {one.job} is at {one.site}, which is no site of the project")


# -- the problem ------------------------------------------------------------------------------------


def _problem(project: Project, placed: PlacedPlan, held: Mapping[str, str], down: Collection[str]) -> Problem:
    every = units(placed)
    expected = {one["job"]: one for one in predicted(project, at_sites(placed, held))["jobs"]}
    read = {unit.id: _streams(unit) for unit in every}
    streams = dict.fromkeys(name for names in read.values() for name in names)
    return Problem(
        sites=tuple(_sites(project, held, down)),
        operators=tuple(
            Operator(
                unit.id,
                tuple(map(_stream, read[unit.id])),
                cpu=expected[unit.id]["cpu"],
                state_bytes=float(expected[unit.id]["memory"] or 0),
                kind=type(unit).__name__,
            )
            for unit in every
        ),
        queries=tuple(Query(unit.id, (unit.id,)) for unit in every),
        streams=tuple(
            Stream(_stream(name), expected_rate(project.streams[name]), project.streams[name].site)
            for name in streams
        ),
        table=dict(held),
    )


def _sites(project: Project, held: Mapping[str, str], down: Collection[str]) -> Iterable[Site]:
    """The declared ones, and those where something is anyway: these get nothing more."""
    targets = {site.name for site in used_sites(project)}
    alive = targets - set(down) or targets
    for name, site in project.sites.items():
        if name in targets or name in held.values():
            yield _site(project, site, alive=name in alive)


def _site(project: Project, site: Declared, *, alive: bool) -> Site:
    engine = costs_of(project, site.name)[0].engine_memory
    return Site(
        site.name, site.cpu, float(site.memory), alive=alive, region=site.region, memory_other=float(engine)
    )


def _streams(unit: Unit) -> tuple[str, ...]:
    """Each once, however many of its members read it."""
    plans = [unit.plan] if isinstance(unit, Job) else [member.plan for member in unit.members]
    return tuple(dict.fromkeys(name for plan in plans for name in streams_of(plan)))


def _stream(name: str) -> str:
    """Jobs may be called as streams are."""
    return f"stream {name}"


# -- what is deployed -------------------------------------------------------------------------------


def living(project: Project, deployment: Deployment, homes: Mapping[str, str]) -> dict[str, str]:
    """Where deployed jobs are: where a move has left them, or where they were put. One whose site is not in
    the project any more is nowhere."""
    known = known_sites(project, deployment, homes)
    return {job: site for job, site in known.items() if site in project.sites}


def known_sites(project: Project, deployment: Deployment, homes: Mapping[str, str]) -> dict[str, str]:
    """The same, whether there still is such a site."""
    found = {tree.id: tree.site for tree in deployment.trees}
    found |= {job.id: job.site for job in deployment.federated}
    for row in deployment.queries:
        query = project.queries.get(row.query)
        if query is not None and row.tree is None and row.federated is None:
            found[row.query] = row.site if row.site is not None and query.free else query.site
    return found | {job: site for job, site in homes.items() if job in found}


def with_sites(project: Project, rows: Iterable[DeployedQuery], jobs: Iterable[Job]) -> list[DeployedQuery]:
    """The rows of these jobs with the site of each that names none: it is kept with the deployment, and so
    is there before anything is started."""
    sites = {job.query: job.site if is_free(project, (job.query,)) else None for job in jobs}
    return [replace(row, site=sites[row.query]) if row.query in sites else row for row in rows]


@dataclass(frozen=True, slots=True)
class Deciding:
    """Which site each job of a deployment is at."""

    project: Project
    deployment: Deployment
    homes: Mapping[str, str]
    down: Collection[str]

    def __call__(self, placed: PlacedPlan) -> tuple[PlacedPlan, list[str]]:
        """The plan with jobs that have no site yet at those of the pattern; and what there is to tell."""
        at = living(self.project, self.deployment, self.homes)
        if not all(_has_site(self.project, unit, at) for unit in units(placed)):
            placed = at_sites(placed, distribute(self.project, placed, at, self.down).new)
        before = known_sites(self.project, self.deployment, self.homes)
        gone = [unit for unit in units(placed) if unit.id in before and unit.id not in at]
        return placed, [f"site {before[one.id]} is no more: {one.id} goes to {one.site}" for one in gone]
