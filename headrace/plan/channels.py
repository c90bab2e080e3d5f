"""Jobs on several sites, and the derived streams that travel between them through channels.

    base streams -> ChannelJob -> DerivedStream -> ChannelJob -> ... -> a query's sink

A derived stream is a stream like another: typed, with a home, read by scans. A joined row has several event
times, and the channel keeps them all: a scan of it marks one for the engine and knows how far the others can
be from it. Rows never move a reader's watermark. The maker's promises do (`behind`): after its batch n, no
row comes whose event time x is at or before W - behind(x), W being the maker's own watermark of that batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from headrace.errors import InternalError
from headrace.ids import fingerprint, is_name
from headrace.plan.bounds import TimeBound
from headrace.plan.expr import ColumnRef
from headrace.plan.logical import (
    Filter,
    IntervalJoin,
    LogicalPlan,
    Project,
    Shape,
    StreamScan,
    TableJoin,
    nodes,
    streams_of,
)
from headrace.plan.placed import TreeJob
from headrace.plan.text import format_plan
from headrace.plan.types import DataType, Schema

_ROUNDING = 2_000
"""Microseconds: the engine keeps the watermark of a join in whole milliseconds, for either side."""


@dataclass(frozen=True, slots=True)
class DerivedScan(StreamScan):
    """Rows of a derived stream with the columns that its reader wants. `time` is the event time that the
    engine goes by, `others` are the other ones of a joined row."""

    others: tuple[str, ...] = ()
    apart: tuple[TimeBound, ...] = ()
    """How far the event times of a row are from each other."""

    def __post_init__(self) -> None:
        times = (self.time, *self.others)
        for time in times:
            if time not in self.columns or self.columns[time].type != DataType.TIMESTAMP:
                raise InternalError(f"derived stream {self.stream}: {time} is not a timestamp column")
        known = {(bound.earlier, bound.later): bound.at_most for bound in self.apart}
        pairs = {(x, y) for x in times for y in times if x != y}
        if len(set(times)) != len(times) or set(known) != pairs:
            raise InternalError(f"derived stream {self.stream}: event times twice, or not all bounded")
        self._is(Shape.STREAM, self.columns, times, None, known)

    def keeping(self, time: str) -> DerivedScan:
        """The same rows, with another of their event times for the engine."""
        times = (self.time, *self.others)
        return replace(self, time=time, others=tuple(one for one in times if one != time))


@dataclass(frozen=True, slots=True)
class DerivedStream:
    """What one job makes for others to read."""

    id: str
    site: str
    """Where it is made."""
    plan: LogicalPlan
    """Its rows, from the base streams up, whoever makes them."""

    def __post_init__(self) -> None:
        if not is_name(self.id) or self.plan.shape is not Shape.STREAM or not self.plan.times:
            raise InternalError(f"derived stream {self.id}: a wrong name, or rows without an event time")
        if any(isinstance(node, DerivedScan) for node in nodes(self.plan)):
            raise InternalError(f"derived stream {self.id}: its plan is not over base streams")

    @property
    def never_late(self) -> bool:
        """Whether late rows were dropped, and counted, before this stream: behind a join. Rows of a plain
        stream may be late for who reads it, as those of the base stream would."""
        return any(isinstance(node, IntervalJoin) for node in nodes(self.plan))

    def scan(self, columns: Iterable[str] = ()) -> DerivedScan:
        """With these columns and the event times; none named: all."""
        wanted = set(columns) | set(self.plan.times)
        schema = self.plan.schema
        kept = Schema(c for c in schema if c.name in wanted) if columns else schema
        apart = tuple(TimeBound(x, y, most) for (x, y), most in sorted(_between_times(self.plan).items()))
        first, *others = self.plan.times
        return DerivedScan(self.id, kept, first, 0, tuple(others), apart)


def _between_times(plan: LogicalPlan) -> Mapping[tuple[str, str], int]:
    return {(x, y): most for (x, y), most in plan.bounds.items() if x in plan.times and y in plan.times}


@dataclass(frozen=True, slots=True)
class ChannelJob:
    """Operators that run as one streaming query at a site. It makes a derived stream, or answers a query."""

    id: str
    site: str
    plan: LogicalPlan
    query: str | None = None
    writes: str | None = None
    """The id of a derived stream."""

    def __post_init__(self) -> None:
        if (self.query is None) == (self.writes is None):
            raise InternalError(f"ChannelJob {self.id}: it has to write either a stream or an answer")

    @property
    def reads(self) -> tuple[str, ...]:
        """Ids of the derived streams it reads, each once."""
        return tuple(dict.fromkeys(scan.stream for scan in self.scans))

    @property
    def scans(self) -> tuple[DerivedScan, ...]:
        """One for each time that a derived stream is read."""
        return tuple(node for node in nodes(self.plan) if isinstance(node, DerivedScan))

    @property
    def joins(self) -> bool:
        """Whether it joins streams, and so finds rows late. One that does not passes on what it gets."""
        return any(isinstance(node, IntervalJoin) for node in nodes(self.plan))

    @property
    def fingerprint(self) -> str:
        """What its checkpoint belongs to."""
        return fingerprint(f"{format_plan(self.plan)}\n{self.writes or ''}")


@dataclass(frozen=True, slots=True)
class ChannelPlan:
    """Jobs in an order in which each stands behind those whose streams it reads."""

    streams: tuple[DerivedStream, ...]
    jobs: tuple[ChannelJob, ...]
    trees: tuple[TreeJob, ...] = ()
    """Trees that read derived streams as if these were base streams, with the delay of the base stream."""

    def __post_init__(self) -> None:
        ids, made = [job.id for job in self.jobs], [job.writes for job in self.jobs if job.writes is not None]
        queries = [job.query for job in self.jobs if job.query is not None]
        for names in (ids, made, queries):
            if len(set(names)) != len(names):
                raise InternalError("ChannelPlan: a job, a stream or a query stands twice")
        if sorted(made) != sorted(stream.id for stream in self.streams):
            raise InternalError("ChannelPlan: a stream that nobody makes, or that nobody knows")
        known: set[str] = set()
        for job in self.jobs:
            self._check(job, known)
        for tree in self.trees:
            read = set(streams_of(tree.shape.rows)) & known
            if not read or any(self.stream(name).never_late for name in read):
                raise InternalError(f"ChannelPlan: tree {tree.id} reads no cut base stream")

    def _check(self, job: ChannelJob, known: set[str]) -> None:
        for scan in job.scans:
            if scan.stream not in known:
                raise InternalError(
                    f"ChannelPlan: {job.id} reads {scan.stream}, which no job before it makes"
                )
            wanted = self.stream(scan.stream).scan(scan.columns.names)
            if wanted.keeping(scan.time) != scan:
                raise InternalError(f"ChannelPlan: {job.id} does not read {scan.stream} as it is")
        if job.writes is not None:
            made = self.stream(job.writes)
            same = made.plan.schema == job.plan.schema and made.plan.times == job.plan.times
            if not same or made.site != job.site:
                raise InternalError(f"ChannelPlan: {job.id} does not make {job.writes} as it is")
            known.add(job.writes)

    def stream(self, stream_id: str) -> DerivedStream:
        return next(one for one in self.streams if one.id == stream_id)

    def job(self, job_id: str) -> ChannelJob:
        return next(one for one in self.jobs if one.id == job_id)

    def maker(self, stream_id: str) -> ChannelJob:
        return next(one for one in self.jobs if one.writes == stream_id)

    def readers(self, stream_id: str) -> tuple[ChannelJob | TreeJob, ...]:
        jobs = (one for one in self.jobs if stream_id in one.reads)
        return (*jobs, *(tree for tree in self.trees if stream_id in streams_of(tree.shape.rows)))

    def downstream(self, job_id: str) -> tuple[ChannelJob | TreeJob, ...]:
        """All that read what a job makes, directly or through others: they wait for ever when it fails."""
        made = {self.job(job_id).writes}
        found: list[ChannelJob | TreeJob] = []
        for job in self.jobs:
            if made & set(job.reads):
                made.add(job.writes)
                found.append(job)
        return (*found, *(tree for tree in self.trees if made & set(streams_of(tree.shape.rows))))

    @property
    def makers(self) -> tuple[ChannelJob, ...]:
        """The jobs that make streams, in their order."""
        return tuple(job for job in self.jobs if job.writes is not None)

    @property
    def ends(self) -> frozenset[str]:
        """Ids of the jobs that answer queries, and of the trees."""
        return frozenset(job.id for job in self.jobs if job.query) | {tree.id for tree in self.trees}

    def base_streams(self) -> tuple[str, ...]:
        """Those that any job reads, each once."""
        derived = {stream.id for stream in self.streams}
        plans = (*(job.plan for job in self.jobs), *(tree.shape.rows for tree in self.trees))
        found = dict.fromkeys(name for plan in plans for name in streams_of(plan))
        return tuple(name for name in found if name not in derived)


def pruned(plan: ChannelPlan, ends: Collection[str]) -> ChannelPlan:
    """What these queries' jobs and these trees need: they themselves, and all that makes what they read."""
    trees = tuple(tree for tree in plan.trees if tree.id in ends)
    wanted = {name for tree in trees for name in streams_of(tree.shape.rows)}
    jobs: list[ChannelJob] = []
    for job in reversed(plan.jobs):
        if job.writes in wanted if job.query is None else job.id in ends:
            jobs.append(job)
            wanted |= set(job.reads)
    made = {job.writes for job in jobs}
    streams = tuple(stream for stream in plan.streams if stream.id in made)
    return ChannelPlan(streams, tuple(reversed(jobs)), trees)


def joined(first: ChannelPlan, second: ChannelPlan) -> ChannelPlan:
    """Both of them. The second may read what the first makes."""
    return ChannelPlan(first.streams + second.streams, first.jobs + second.jobs, first.trees + second.trees)


def moved(plan: ChannelPlan, sites: Mapping[str, str]) -> ChannelPlan:
    """The same jobs at other sites, by the id of a job; a stream is made where its job is."""
    homes = {job.writes: sites[job.id] for job in plan.jobs if job.writes is not None and job.id in sites}
    return ChannelPlan(
        tuple(replace(stream, site=homes.get(stream.id, stream.site)) for stream in plan.streams),
        tuple(replace(job, site=sites.get(job.id, job.site)) for job in plan.jobs),
        plan.trees,
    )


@dataclass(frozen=True, slots=True)
class ChannelSteps:
    """The way from one plan to another. A job that is stopped and started has the same checkpoint before and
    after where its fingerprint is the same: it has only changed its site."""

    stop: tuple[ChannelJob | TreeJob, ...]
    """Readers before their makers."""
    start: tuple[ChannelJob | TreeJob, ...]
    """Makers before their readers."""
    gone: tuple[str, ...]
    """Derived streams that nobody makes any more; their channels can be removed after the stops."""


def channel_steps(running: ChannelPlan, wanted: ChannelPlan) -> ChannelSteps:
    before: tuple[ChannelJob | TreeJob, ...] = (*running.jobs, *running.trees)
    after: tuple[ChannelJob | TreeJob, ...] = (*wanted.jobs, *wanted.trees)
    left = {stream.id for stream in wanted.streams}
    return ChannelSteps(
        tuple(one for one in reversed(before) if one not in after),
        tuple(one for one in after if one not in before),
        tuple(stream.id for stream in running.streams if stream.id not in left),
    )


# -- how far behind the watermark rows can be --------------------------------------------------------


def behind(plan: LogicalPlan) -> dict[str, int]:
    """For each event time x of the plan's rows: a row that a job of this plan gives in a batch has
    x > W - behind[x], where W is the watermark by which the job finds rows late in that batch.

    A row is given in the batch in which the last of its parts comes. That part, of event time y, met its join
    in time: y > W - s, where s is how far the watermark is held back on its way up to that join (0 where both
    inputs are scans; each join below adds the most that its two sides can be apart). And x >= y - B(x, y),
    B being the bound on how much later than x the time y can be. So x > W - s - B(x, y) for the y that came
    last, and the largest of these holds for all. The watermark W is the least over all streams of the job,
    whatever their own delays are, so nothing more is needed of them."""
    return dict(_floor(plan)[1])


Floor = tuple[int, Mapping[str, int]]
"""How far the watermark is held back, and how far rows can be behind it, by event time."""


def _floor(plan: LogicalPlan) -> Floor:
    match plan:
        case DerivedScan():
            # The engine goes by any one of the times; the others are no further behind than it is apart.
            return 0, {x: max([0, *(plan.bounds[x, y] for y in plan.times if y != x)]) for x in plan.times}
        case StreamScan():
            return 0, {plan.time: 0}
        case Filter() | TableJoin():
            return _floor(plan.input)
        case Project():
            held, rows = _floor(plan.input)
            passed = {e.name: name for name, e in reversed(plan.items) if isinstance(e, ColumnRef)}
            return held, {passed[x]: most for x, most in rows.items() if x in passed}
        case IntervalJoin():
            return _floor_of_join(plan)
    raise InternalError("only rows with event times travel: no windows, no aggregates")


def _floor_of_join(join: IntervalJoin) -> Floor:
    (held_left, left), (held_right, right) = _floor(join.left), _floor(join.right)
    held = max(held_left, held_right)
    sides = [_arriving(join.left, left, held), _arriving(join.right, right, held)]
    found: dict[str, int] = {}
    for mine, theirs in (sides, sides[::-1]):
        for x, own in mine.items():
            # Which of the other side's times is taken does not matter, so the one that tells most.
            across = (theirs[y] + join.bounds[x, y] for y in theirs if (x, y) in join.bounds)
            found[x] = max(own, min(across))
    pairs = ((x, y) for x in left for y in right)
    apart = max(join.bounds.get(p, 0) for x, y in pairs for p in ((x, y), (y, x)))
    return held + max(apart, 0) + _ROUNDING, found


def _arriving(side: LogicalPlan, rows: Mapping[str, int], held: int) -> dict[str, int]:
    """How far behind rows can be that come to a join. Those of a scan are checked here, by the watermark
    as it is held back; joined ones were checked below."""
    checked = any(isinstance(node, IntervalJoin) for node in nodes(side))
    return {x: most if checked else most + held for x, most in rows.items()}
