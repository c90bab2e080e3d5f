"""How much of every site and link a plan uses, against what there is of it.

Cores and memory are those of predict.py. Bytes are what `run` moves: a job reads its streams, the columns it
wants, from the sites they come from, by the cheapest way. Every hop is out of one site and into the next, so
a site on the way carries the bytes too; where no links lead, only both ends do.

What is spread over sites is counted as it is cut: each derived stream travels from where it is made to each
job that reads it, with the columns it has. A job that only passes a stream on reads it like any other, so
that behind it the stream travels once for all who read its copy.

A capacity counts if the project file has it, or if it is the default of a site that was calibrated. Links are
not measured by a calibration, so theirs counts only if it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypedDict

from headrace.catalog.model import Project
from headrace.plan.channels import ChannelJob, ChannelPlan
from headrace.plan.federated import FederatedJob
from headrace.plan.logical import LogicalPlan, streams_of
from headrace.plan.placed import Job, PlacedPlan, TreeJob
from headrace.service.calibration_file import costs_of
from headrace.service.channel_rates import bytes_per_second
from headrace.service.network_picture import Table, amount
from headrace.service.placing import Bringer
from headrace.service.placing_problem import UNLINKED, network_of
from headrace.service.predict import JobPrediction, needed_cpu, predicted
from headrace.service.spread_records import NOTHING, running
from headrace.units import format_size

Resource = Literal["cpu", "memory", "in", "out", "link"]
Key = tuple[Resource, str]
"""What is used, and of whom."""
Amounts = Mapping[str, float]
"""By job."""
ENGINE = "Spark itself"
TOLERANCE = 1e-9
"""Sums of floats may be off by this part."""
_WHOLE = "utilisation, with every query whole at its site"
_SPREAD = "utilisation, with jobs as they are spread over sites"
_DEFAULT = "* only a default: not in headrace.yaml and not calibrated, so `add` refuses nothing because of it"


@dataclass(frozen=True, slots=True)
class Use:
    """One capacity, and who uses it."""

    resource: Resource
    place: str
    """A site; of a link `from > to`, since both directions have its whole bandwidth."""
    limit: float
    """Cores, bytes, or bytes per second."""
    counts: bool
    """Whether the limit is known, and not only a default."""
    jobs: Amounts
    """The largest first."""

    @property
    def key(self) -> Key:
        return self.resource, self.place

    @property
    def used(self) -> float:
        return sum(self.jobs.values())

    @property
    def over(self) -> bool:
        return self.used > self.limit * (1 + TOLERANCE)

    def words(self, value: float) -> str:
        number = _number(self.resource, value)
        if self.resource != "cpu":
            return number
        return f"{number} {'core' if number == '1' else 'cores'}"


def _number(resource: Resource, value: float) -> str:
    if resource == "cpu":
        return f"{value:.3g}"
    return format_size(value) if resource == "memory" else amount(value, "B/s")


class UseData(TypedDict):
    used: float
    limit: float
    share: float
    """1: all of it."""
    over: bool
    default: bool
    """The limit is only a default, and is not held against a new query."""


class SiteUse(TypedDict):
    site: str
    cpu: UseData
    """Cores. Without `planner.trigger` these are without the price of micro-batches: they wait."""
    memory: UseData
    bytes_in: UseData
    """Bytes per second."""
    bytes_out: UseData


class LinkUse(UseData):
    source: str
    target: str


class Utilisation(TypedDict):
    sites: list[SiteUse]
    """Those that run something or are passed by bytes."""
    links: list[LinkUse]
    """Those that are used, in each direction; the fullest first."""
    spread: bool
    """Whether queries are counted as they are cut, not whole at their sites."""


def uses_of(project: Project, placed: PlacedPlan, channels: ChannelPlan = NOTHING) -> list[Use]:
    """Of every site that runs something or is passed by bytes, and of every link that is used; what
    `channels` has of the queries as it is cut there. Raises UserError for a calibration file that cannot be
    read."""
    prediction = predicted(project, placed, channels)
    hops = list(_hops(project, placed, running(placed, channels)))
    busy = [site["site"] for site in prediction["sites"]]
    passed = {site for hop in hops for site in (hop.source, hop.target)}
    sites = [*busy, *(name for name in project.sites if name in passed and name not in busy)]
    found = [use for site in sites for use in _of_site(project, site, prediction["jobs"], hops)]
    return found + _of_links(project, hops)


# -- what travels ---------------------------------------------------------------------------------------


_Unit = TreeJob | Job | FederatedJob | ChannelJob


@dataclass(frozen=True, slots=True)
class _Hop:
    job: str
    source: str
    target: str
    rate: float
    linked: bool


def _hops(project: Project, placed: PlacedPlan, cut: ChannelPlan) -> Iterator[_Hop]:
    """`cut` is in the place of the queries and trees that it has."""
    trees = [tree for tree in placed.trees if tree.id not in cut.ends]
    jobs = [job for job in placed.jobs if job.id not in cut.ends]
    units: list[_Unit] = [*trees, *jobs, *placed.federated, *cut.jobs, *cut.trees]
    bring = Bringer(project, network_of(project, {unit.site for unit in units}))
    made = {stream.id: (stream.site, bytes_per_second(project, stream.plan)) for stream in cut.streams}
    for unit in units:
        for brought in bring.all(_plans(unit), unit.site, besides=made):
            ends = (project.streams[brought.stream].site, unit.site)
            yield from _way(unit.id, brought.path, ends, brought.rate)
    readers: list[ChannelJob | TreeJob] = [*cut.jobs, *cut.trees]
    for reader in readers:
        rows = reader.plan if isinstance(reader, ChannelJob) else reader.shape.rows
        for home, rate in (made[name] for name in streams_of(rows) if name in made):
            yield from _way(reader.id, bring.path(home, reader.site), (home, reader.site), rate)


def _way(job: str, path: tuple[str, ...] | None, ends: tuple[str, str], rate: float) -> Iterator[_Hop]:
    for source, target in pairwise(path or ends):
        if source != target:
            yield _Hop(job, source, target, rate, path is not None)


def _plans(unit: _Unit) -> list[LogicalPlan]:
    return [unit.plan] if isinstance(unit, Job | ChannelJob) else [member.plan for member in unit.members]


def _by_job(pairs: Iterable[tuple[str, float]]) -> Amounts:
    total: dict[str, float] = {}
    for job, value in pairs:
        total[job] = total.get(job, 0.0) + value
    return dict(sorted(((job, value) for job, value in total.items() if value), key=lambda one: -one[1]))


# -- against what there is ------------------------------------------------------------------------------


def _of_site(project: Project, name: str, jobs: Sequence[JobPrediction], hops: Sequence[_Hop]) -> list[Use]:
    costs, _ = costs_of(project, name)
    own = [job for job in jobs if job["site"] == name]
    memory = [(job["job"], float(job["memory"] or 0)) for job in own]
    memory += [(ENGINE, costs.engine_memory)] if own else []
    used: dict[Resource, Iterable[tuple[str, float]]] = {
        "cpu": ((job["job"], needed_cpu(project, job)) for job in own),
        "memory": memory,
        "in": ((hop.job, hop.rate) for hop in hops if hop.target == name),
        "out": ((hop.job, hop.rate) for hop in hops if hop.source == name),
    }
    return [Use(kind, name, *_limit(project, name, kind), _by_job(pairs)) for kind, pairs in used.items()]


def _limit(project: Project, name: str, resource: Resource) -> tuple[float, bool]:
    """What a site has of something, and whether that counts."""
    site = project.sites[name]
    key = resource if resource in ("cpu", "memory") else "bandwidth"
    counts = key in site.model_fields_set or costs_of(project, name)[1] is not None
    return float(getattr(site, key)), counts


def capacities(project: Project) -> dict[Key, float]:
    """All that counts, of every site and of every link in each direction, used or not."""
    found: dict[Key, float] = {}
    kinds: tuple[Resource, ...] = ("cpu", "memory", "in", "out")
    for name in project.sites:
        for kind in kinds:
            limit, counts = _limit(project, name, kind)
            found |= {(kind, name): limit} if counts else {}
    for link in project.links:
        if "bandwidth" in link.model_fields_set:
            for a, b in (link.between, link.between[::-1]):
                found["link", f"{a} > {b}"] = float(link.bandwidth)
    return found


def _of_links(project: Project, hops: Sequence[_Hop]) -> list[Use]:
    links = {frozenset(link.between): link for link in project.links}
    found = []
    for ends in dict.fromkeys((hop.source, hop.target) for hop in hops if hop.linked):
        link = links.get(frozenset(ends), UNLINKED)
        pairs = ((hop.job, hop.rate) for hop in hops if (hop.source, hop.target) == ends)
        written = "bandwidth" in link.model_fields_set
        found.append(Use("link", " > ".join(ends), float(link.bandwidth), written, _by_job(pairs)))
    return found


_NEEDS = {
    "cpu": "{place} would need {used} and has {limit}",
    "memory": "{place} would need {used} of memory and has {limit}",
    "in": "{place} would take in {used} and has bandwidth for {limit}",
    "out": "{place} would send out {used} and has bandwidth for {limit}",
    "link": "the link {place} would carry {used} and has bandwidth for {limit}",
}


def need_of(use: Use) -> str:
    """What would be needed, and what there is."""
    words = {"used": use.words(use.used), "limit": use.words(use.limit)}
    return _NEEDS[use.resource].format(place=use.place, **words)


# -- to show --------------------------------------------------------------------------------------------


def utilisation(uses: Sequence[Use], *, is_spread: bool = False) -> Utilisation:
    by_key = {use.key: _data(use) for use in uses}
    sites = dict.fromkeys(use.place for use in uses if use.resource != "link")
    links = (_link(use) for use in uses if use.resource == "link")
    return Utilisation(
        sites=[
            SiteUse(
                site=site,
                cpu=by_key["cpu", site],
                memory=by_key["memory", site],
                bytes_in=by_key["in", site],
                bytes_out=by_key["out", site],
            )
            for site in sites
        ],
        links=sorted(links, key=lambda link: -link["share"]),
        spread=is_spread,
    )


def _data(use: Use) -> UseData:
    return UseData(
        used=use.used, limit=use.limit, share=use.used / use.limit, over=use.over, default=not use.counts
    )


def _link(use: Use) -> LinkUse:
    source, target = use.place.split(" > ")
    return LinkUse(source=source, target=target, **_data(use))


def head_line(data: Utilisation) -> str:
    over = sum(use["over"] for use in _all(data))
    return f"{_SPREAD if data['spread'] else _WHOLE}: {over or 'nothing'} over 100%"


def tables(data: Utilisation, *, brief: bool = False) -> list[Table]:
    """Sites, and the links that are used (`brief`: that are too small); what is over is marked."""
    sites = tuple(_site_cells(one) for one in data["sites"])
    found = [Table("sites", ("site", "cores", "memory", "in", "out"), sites)]
    shown = [one for one in data["links"] if one["over"] or not brief]
    if shown:
        links = tuple((f"{one['source']} > {one['target']}", _cell(one, "link")) for one in shown)
        found.append(Table("links", ("link", "carries"), links))
    return found


def _site_cells(one: SiteUse) -> tuple[str, ...]:
    return (
        one["site"],
        _cell(one["cpu"], "cpu"),
        _cell(one["memory"], "memory"),
        _cell(one["bytes_in"], "in"),
        _cell(one["bytes_out"], "out"),
    )


def notes(data: Utilisation) -> list[str]:
    return [_DEFAULT] if any(use["default"] and use["used"] for use in _all(data)) else []


def _all(data: Utilisation) -> list[UseData]:
    parts = [use for one in data["sites"] for use in (one["cpu"], one["memory"])]
    parts += [use for one in data["sites"] for use in (one["bytes_in"], one["bytes_out"])]
    return [*parts, *data["links"]]


def _cell(use: UseData, resource: Resource) -> str:
    """`0.85 of 2, 43%`; nothing where nothing is used."""
    if not use["used"]:
        return ""
    used, limit = (_number(resource, value) for value in (use["used"], use["limit"]))
    share = "<1%" if use["share"] < 0.01 else f"{use['share']:.0%}"
    over = " OVER" if use["over"] else ""
    return f"{used} of {limit}{'*' if use['default'] else ''}, {share}{over}"
