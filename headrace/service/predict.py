"""What a placed plan is expected to take on its sites: cores, memory and state, while the streams flow at the
rates of the project file.

Queries that run as jobs of their own are priced as Spark's own window; what their joins keep is not known.
So are the jobs that spread queries are cut into: the rows of what each of them reads, its micro-batches, and
for the one that answers the windows of its query.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from headrace.catalog.model import Project
from headrace.cost.windows import QueryLoad, TreeLoad, WindowCosts, plain_work, predict
from headrace.plan.channels import ChannelJob, ChannelPlan
from headrace.plan.federated import FederatedJob
from headrace.plan.logical import Aggregate, LogicalPlan, Window, nodes, streams_of
from headrace.plan.placed import Job, PlacedPlan, TreeJob
from headrace.service.calibration_file import Calibration, costs_of
from headrace.service.channel_rates import rows_of_streams
from headrace.service.estimates import batches_per_second, distinct_of, expected_rate, groups
from headrace.service.federated_records import live
from headrace.service.federating_load import job_kinds, kept_bytes
from headrace.service.loads import Loads
from headrace.service.spread_records import NOTHING, running
from headrace.units import format_size

_MICROS = 1_000_000
_BATCHES = ("batch", "query_batch", "plain_batch")
NEVER = "never calibrated, so these are another machine's figures: headrace calibrate"


class JobPrediction(TypedDict):
    """One tree, one query on its own, queries that are split between engines, or a job that makes a stream
    for others."""

    job: str
    site: str
    queries: list[str]
    """Of one that makes a stream none."""
    cpu: float
    """Cores."""
    memory: int | None
    """Bytes besides Spark's own; None: not known."""
    state: int | None
    """Bytes on disk; None: not known."""
    parts: dict[str, float]
    """Cores by kind of work (cost/windows.py)."""


class SitePrediction(TypedDict):
    site: str
    cpu: float
    cpu_without_batches: float
    """Of these, the cores that do not go into micro-batches as such: what is needed however rare they are."""
    cpu_limit: float
    memory: int
    """Spark's own included."""
    memory_limit: int
    fits: bool
    costs: str
    """Where the figures come from."""


class Prediction(TypedDict):
    jobs: list[JobPrediction]
    sites: list[SitePrediction]


def predicted(project: Project, placed: PlacedPlan, channels: ChannelPlan = NOTHING) -> Prediction:
    """Every job and every site; what `channels` has of the queries as it is cut there. Raises UserError for a
    calibration file that cannot be read."""
    cut = running(placed, channels)
    jobs = [_of_tree(project, tree) for tree in placed.trees]
    jobs += [_of_split(project, job) for job in placed.federated]
    jobs += [_of_job(project, job) for job in placed.jobs if job.id not in cut.ends]
    jobs += _of_channels(project, placed, cut)
    sites = list(dict.fromkeys(job["site"] for job in jobs))
    return Prediction(jobs=jobs, sites=[_of_site(project, site, jobs) for site in sites])


def _of_tree(project: Project, tree: TreeJob) -> JobPrediction:
    costs, _ = costs_of(project, tree.site)
    found = predict(tree_load(project, tree, costs), costs)
    return JobPrediction(
        job=tree.id,
        site=tree.site,
        queries=[member.query for member in tree.members],
        cpu=found.cpu,
        memory=found.memory,
        state=found.state,
        parts=found.parts,
    )


def tree_load(project: Project, tree: TreeJob, costs: WindowCosts) -> TreeLoad:
    return Loads(project, tree.site, tree.members, costs).load(tree.members)


def _of_split(project: Project, job: FederatedJob) -> JobPrediction:
    """What its operators take, and its micro-batches, priced as those of a query on its own. On Spark alone
    it runs the plan that an ordinary job would, and is priced as one."""
    if job.on_spark:
        return _priced(project, job, [one.query for one in live(job)], spark_work(project, job))
    costs, _ = costs_of(project, job.site)
    parts = job_kinds(project, job)
    parts["plain_batch"] = batches_per_second(project) * costs.plain_batch
    kept = kept_bytes(project, job)
    return JobPrediction(
        job=job.id,
        site=job.site,
        queries=[member.query for member in live(job)],
        cpu=sum(parts.values()),
        memory=kept,
        state=kept,
        parts=parts,
    )


def _of_job(project: Project, job: Job) -> JobPrediction:
    return _priced(project, job, [job.query], job_work(project, job.plan, batches_per_second(project)))


def _of_channels(project: Project, placed: PlacedPlan, cut: ChannelPlan) -> list[JobPrediction]:
    """Every job of queries that are spread; their trees are priced as whole ones."""
    rows = rows_of_streams(project, cut) if cut.jobs else {}
    whole = {job.id: job for job in placed.jobs}
    found = []
    for job in cut.jobs:
        work = _read_work(job.plan, rows, batches_per_second(project))
        if job.query is not None:
            _add(work, _windows_work(project, whole[job.id].plan, batches_per_second(project)))
        found.append(_priced(project, job, [] if job.query is None else [job.query], work))
    return found


def _priced(
    project: Project, job: Job | ChannelJob | FederatedJob, queries: list[str], work: Mapping[str, float]
) -> JobPrediction:
    prices = costs_of(project, job.site)[0].to_dict()
    parts = {name: n * prices[name] for name, n in work.items()}
    return JobPrediction(
        job=job.id,
        site=job.site,
        queries=queries,
        cpu=sum(parts.values()),
        memory=None,
        state=None,
        parts=parts,
    )


def job_work(project: Project, plan: LogicalPlan, batches: float) -> dict[str, float]:
    """Work per second of a query on its own: its rows, and its windows as Spark makes them."""
    rows = {name: expected_rate(project.streams[name]) for name in streams_of(plan)}
    return _add(_read_work(plan, rows, batches), _windows_work(project, plan, batches))


def spark_work(project: Project, job: FederatedJob, batches: float | None = None) -> dict[str, float]:
    """The same of a split job on Spark alone."""
    often = batches_per_second(project) if batches is None else batches
    total = {"plain_batch": 0.0}
    for member in live(job):
        _add(total, job_work(project, member.plan, often))
    return total


def _read_work(plan: LogicalPlan, rows: Mapping[str, float], batches: float) -> dict[str, float]:
    """`rows` per second of each stream."""
    read = [rows[stream] for stream in streams_of(plan)]
    return {"plain_batch": batches} | ({"plain_row": sum(read)} if read else {})


def _windows_work(project: Project, plan: LogicalPlan, batches: float) -> dict[str, float]:
    total: dict[str, float] = {}
    for node in nodes(plan):
        if isinstance(node, Aggregate) and isinstance(node.input, Window):
            _add(total, _window_work(project, node, node.input, batches))
    return total


def _add(total: dict[str, float], more: Mapping[str, float]) -> dict[str, float]:
    for name, amount in more.items():
        total[name] = total.get(name, 0.0) + amount
    return total


def _window_work(project: Project, node: Aggregate, window: Window, batches: float) -> dict[str, float]:
    streams = streams_of(window)
    keys = [key for _, key in node.keys]
    load = QueryLoad(
        range=window.spec.range,
        slide=window.spec.slide,
        groups=groups(keys, distinct_of(project, streams[0])),
        outputs=max(1, len(node.aggregates)),
    )
    work = plain_work(_rate(project, window), load, batches)
    return {name: work[name] for name in ("expanded_row", "plain_state")}


def _rate(project: Project, plan: LogicalPlan) -> float:
    """Rows per second below; a join is taken to give as many as its slowest side."""
    return min(expected_rate(project.streams[name]) for name in streams_of(plan))


def _of_site(project: Project, name: str, jobs: list[JobPrediction]) -> SitePrediction:
    site = project.sites[name]
    costs, calibration = costs_of(project, name)
    own = [job for job in jobs if job["site"] == name]
    needed = sum(needed_cpu(project, job) for job in own)
    memory = int(costs.engine_memory) + sum(job["memory"] or 0 for job in own)
    return SitePrediction(
        site=name,
        cpu=sum(job["cpu"] for job in own),
        cpu_without_batches=sum(map(_without_batches, own)),
        cpu_limit=site.cpu,
        memory=memory,
        memory_limit=site.memory,
        fits=needed <= site.cpu and memory <= site.memory,
        costs=_where_from(calibration),
    )


def needed_cpu(project: Project, job: JobPrediction) -> float:
    """The cores that a site must have for the job. Without a trigger a batch starts when there is time for
    it, so batches never ask for too much."""
    return job["cpu"] if project.planner.trigger else _without_batches(job)


def _without_batches(job: JobPrediction) -> float:
    return max(0.0, job["cpu"] - sum(job["parts"].get(name, 0.0) for name in _BATCHES))


def _where_from(calibration: Calibration | None) -> str:
    if calibration is None:
        return NEVER
    unit = "" if calibration.unit == "cpu" else ", by wall time"
    return f"calibrated {calibration.date}{unit}"


def lines(prediction: Prediction) -> list[str]:
    """For people: the sites, each with its jobs below."""
    text = []
    for site in prediction["sites"]:
        jobs = [job for job in prediction["jobs"] if job["site"] == site["site"]]
        text.append(_site_line(site))
        text += [f"  {_job_line(job)}" for job in jobs]
    return text


def _site_line(site: SitePrediction) -> str:
    cores = (
        f"{site['cpu']:.2g} of {site['cpu_limit']:g} cores ({site['cpu_without_batches']:.2g} without the "
        "price of micro-batches)"
    )
    memory = f"{format_size(site['memory'])} of {format_size(site['memory_limit'])}"
    fits = "" if site["fits"] else "  DOES NOT FIT"
    return f"predicted on {site['site']}: {cores}, {memory}{fits}  ({site['costs']})"


def _job_line(job: JobPrediction) -> str:
    count = len(job["queries"])
    parts = [f"{job['job']}: {job['cpu']:.2g} cores"]
    if job["memory"] is not None and job["state"] is not None:
        parts += [format_size(job["memory"]), f"state {format_size(job['state'])}"]
    parts += [f"{count} {'query' if count == 1 else 'queries'}" if count else "makes a stream for others"]
    return ", ".join(parts)
