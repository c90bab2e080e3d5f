"""The jobs of a run and its sites as a problem of planners/distribution, from what was gathered of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from headrace.catalog.model import Project
from headrace.catalog.model import Site as Declared
from headrace.planners.distribution.costs import MODELS, Costing, CostTable
from headrace.planners.distribution.observed import (
    Observations,
    OperatorSeen,
    SiteSeen,
    with_observations,
)
from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream
from headrace.service.distributing import is_free
from headrace.service.estimates import expected_rate
from headrace.service.gathered import Gathered
from headrace.service.probing import REMOTE
from headrace.service.spreading import used_sites


def problem_of(project: Project, gathered: Gathered, homes: Mapping[str, str] | None = None) -> Problem:
    """The jobs that run, as they were seen. `homes`: where they are now, if not where they were seen. One of
    which nothing is known yet stays where it is."""
    homes = {name: site for name, site in (homes or {}).items() if site in project.sites}
    at = {name: homes.get(name, one.site) for name, one in gathered.jobs.items() if one.runs}
    at = {name: site for name, site in at.items() if site in project.sites}
    read = dict.fromkeys(stream for name in at for stream in gathered.jobs[name].streams)
    streams = {name: project.streams[name] for name in read if name in project.streams}
    makers = {made: name for name in at if (made := gathered.jobs[name].writes) is not None}
    problem = Problem(
        sites=tuple(
            _site(one, alive=one.name not in gathered.down or one.name in at.values())
            for one in sites_of(project, at.values())
        ),
        operators=tuple(
            _operator(gathered, name, streams, makers, named=_is_named(project, gathered.jobs[name].queries))
            for name in at
        ),
        queries=tuple(Query(query, (name,)) for query, name in _answered(gathered, at).items()),
        streams=tuple(Stream(_stream(name), expected_rate(one), one.site) for name, one in streams.items()),
        table=at,
    )
    return with_observations(problem, observations(gathered, at))


def _site(one: Declared, *, alive: bool) -> Site:
    """One that is down has nothing to give. With jobs it counts all the same: that they go on elsewhere is
    not for a policy to see to (sitekeeping.py)."""
    return Site(one.name, one.cpu, float(one.memory), float(one.bandwidth), alive=alive, region=one.region)


def sites_of(project: Project, taken: Collection[str] = ()) -> list[Declared]:
    """The sites that jobs are at or could be sent to: `local` is in every project, whoever wants it."""
    used = {site.name for site in used_sites(project)} | set(taken)
    return [site for name, site in project.sites.items() if name in used]


def of_one_spark(project: Project, problem: Problem) -> Problem:
    """Sites without an address are one Spark: nothing can be moved between them, and one of them is no room
    for another. So they are one site here, as large as the largest of them."""
    here = [site for site in problem.sites if not project.sites[site.id].endpoint.startswith(REMOTE)]
    if len(here) < 2:
        return problem
    named = [site.name for site in sites_of(project)]
    first, names = min(here, key=lambda site: site.id not in named), {site.id for site in here}
    one = replace(
        first,
        cpu=max(site.cpu for site in here),
        memory=max(site.memory for site in here),
        network=max(site.network for site in here),
        cpu_other=sum(site.cpu_other for site in here),
        memory_other=sum(site.memory_other for site in here),
    )
    return replace(
        problem,
        sites=tuple(
            one if site is first else site for site in problem.sites if site is first or site.id not in names
        ),
        streams=tuple(replace(s, site=first.id if s.site in names else s.site) for s in problem.streams),
        table={name: first.id if site in names else site for name, site in problem.table.items()},
    )


def _stream(name: str) -> str:
    """Jobs may be called as streams are."""
    return f"stream {name}"


def _answered(gathered: Gathered, names: Collection[str]) -> dict[str, str]:
    """By query; of one that two split jobs give while one takes over, the later."""
    return {query: name for name in names for query in gathered.jobs[name].queries}


def _is_named(project: Project, queries: Collection[str]) -> bool:
    """Whether a query of a job names its site, where those that name none are distributed: it is meant."""
    return project.distributes and not is_free(project, queries)


def _operator(
    gathered: Gathered, name: str, streams: Collection[str], makers: Mapping[str, str], *, named: bool
) -> Operator:
    facts = gathered.jobs[name]
    known = gathered.busy(name) is not None
    inputs = [_stream(one) for one in facts.streams if one in streams]
    inputs += [makers[one] for one in facts.reads if one in makers]
    movable, width = known and not facts.bound and not named, max(facts.width, 1.0)
    return Operator(name, tuple(inputs), cpu=0.0, kind=facts.kind, width=width, movable=movable)


def observations(gathered: Gathered, names: Collection[str]) -> Observations:
    cores = gathered.cores()
    jobs = {name: _seen(gathered, name, cores.get(name)) for name in names}
    sites = {site: belief["cpu"] for site in _sites(gathered) if (belief := gathered.site(site)) is not None}
    rates: dict[str, float] = {}
    for name in names:
        facts, belief = gathered.jobs[name], gathered.job(name)
        read, taken = facts.streams, None if belief is None else belief["rows_in"]
        if len(read) == 1 and not facts.reads and taken is not None:
            # Jobs that fall behind read a stream slower than it comes: the fastest tells most.
            rates[_stream(read[0])] = max(taken, rates.get(_stream(read[0]), 0.0))
    return Observations(jobs, {site: SiteSeen(cpu=cpu) for site, cpu in sites.items()}, rates)


def _sites(gathered: Gathered) -> Iterator[str]:
    for key in gathered.beliefs:
        kind, _, name = key.partition(" ")
        if kind == "site":
            yield name


def _seen(gathered: Gathered, name: str, cores: float | None) -> OperatorSeen:
    belief = gathered.job(name)
    if belief is None:
        return OperatorSeen()
    return OperatorSeen(
        rows_in=belief["rows_in"],
        rows_out=belief["rows_out"],
        cpu=cores,
        batch_seconds=belief["batch_seconds"],
        batches=belief["batches"],
        state_rows=belief["state_rows"],
        state_bytes=gathered.state_bytes(name),
        lag_seconds=belief["lag_seconds"],
    )


def cost_tables(problem: Problem) -> dict[str, CostTable]:
    """By model: how full each site is, and what each job has of it."""
    return {name: Costing(problem, model).table(problem.table) for name, model in MODELS.items()}
