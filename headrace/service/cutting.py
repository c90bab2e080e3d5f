"""A placed project as jobs on sites and the derived streams between them.

Where a channel of the placement leads to another site, or a join has several readers, a job ends and a
derived stream begins; a join with one reader at its own site is done in that reader's job. What several
readers want of one source is made once: the stream carries the rows and columns that any of them wants, and
each cuts out its own part. A reader far away that wants only a small part of it, as the placement has it,
gets a stream of its own.

Queries that stay whole get what they read of streams at other sites cut where those streams are: filters and
columns travel towards the source, windows and joins stay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from headrace.catalog.model import Project as Catalog
from headrace.catalog.model import SinkKind
from headrace.ids import fingerprint
from headrace.plan.channels import ChannelJob, ChannelPlan, DerivedStream, pruned
from headrace.plan.check import check_plan
from headrace.plan.expr import Call, ColumnRef, Expr, columns_of, conjunction
from headrace.plan.logical import Aggregate, Filter, LogicalPlan, Project, StreamScan, nodes, streams_of
from headrace.plan.placed import Job, PlacedPlan, TreeJob, TreeMember, split_filter
from headrace.plan.placed_network import Channel, PlacedJoin, PlacedNetwork
from headrace.plan.text import format_expr, format_plan
from headrace.plan.types import Schema
from headrace.rewrite.tree import with_inputs
from headrace.service.placing import place_joins

SMALL = 0.25
"""A reader at another site that wants less than this share of what the others want gets its own stream."""

PathOf = Callable[[str, str], tuple[str, ...]]
"""The sites from one to another, both ends included."""


@dataclass(frozen=True, slots=True)
class Want:
    """What one reader wants of a source."""

    reader: str
    path: tuple[str, ...]
    core: LogicalPlan
    """The scan, leaf or join that it is cut from."""
    parts: tuple[Expr, ...]
    """Its conditions."""
    columns: frozenset[str]
    rate: float | None = None
    """Bytes per second; None: not known."""


def cut(
    network: PlacedNetwork | None,
    whole: Sequence[Job] = (),
    homes: Mapping[str, str] | None = None,
    *,
    trees: Sequence[TreeJob] = (),
    path_of: PathOf = lambda a, b: (a, b),
    relays: bool = False,
    taken: Collection[str] = (),
) -> ChannelPlan:
    """The jobs of the placed queries, and of those whole ones (and trees) that read a stream from another
    site; `homes` says where each base stream comes from. The others are not in it: they run as they are. With
    `relays`, a stream is passed on by a job at each site on its way, for channels that reach no further than
    to the next site; without, a reader takes it from where it is made. No job or stream gets an id that is
    `taken`: what lies on disk under it is another one's."""
    return _Cutter(network, whole, trees, homes or {}, path_of, relays, frozenset(taken)).plan()


def spread(project: Catalog, placed: PlacedPlan, taken: Collection[str] = ()) -> ChannelPlan:
    """What of a plan is cut into jobs and channels; the rest runs as it is. Split queries are, and those that
    keep their answers in memory: they start over with every run, and their channels could not."""
    placing = place_joins(project, spreadable(project, placed))
    return cut_project(project, placed, placing.network if placing is not None else None, taken)


def spreadable(project: Catalog, placed: PlacedPlan) -> PlacedPlan:
    """Without the queries that are never cut."""
    return replace(placed, jobs=tuple(job for job in placed.jobs if staying(project, job) is None))


def cut_project(
    project: Catalog,
    placed: PlacedPlan,
    network: PlacedNetwork | None,
    taken: Collection[str] = (),
    *,
    relays: bool = False,
) -> ChannelPlan:
    """The same with joins placed so; with none, streams are only cut where they come from."""
    joined = {query.query for query in network.queries} if network is not None else set()
    whole = [job for job in spreadable(project, placed).jobs if job.query not in joined]
    homes = {name: stream.site for name, stream in project.streams.items()}
    found = cut(network, whole, homes, trees=placed.trees, relays=relays, taken=taken)
    # A query that reads nothing from elsewhere is better off with its own plan, and needs no channels.
    return pruned(found, [job.id for job in found.jobs if job.reads] + [tree.id for tree in found.trees])


def staying(project: Catalog, job: Job) -> str | None:
    """Why a query is never cut; None: it may be."""
    if project.queries[job.query].sink.kind is SinkKind.MEMORY:
        return "it keeps its results in memory, and starts over with every run"
    return None


def fed_tree(tree: TreeJob, feeds: Mapping[str, str]) -> TreeJob:
    """A tree over derived streams in the place of base streams. It reads them as it would the whole ones,
    filters included: its shape says what later members may be."""

    def over(plan: LogicalPlan) -> LogicalPlan:
        if isinstance(plan, StreamScan):
            return replace(plan, stream=feeds.get(plan.stream, plan.stream))
        return with_inputs(plan, tuple(map(over, plan.inputs)))

    members = tuple(
        TreeMember(one.query, over(one.plan), cast(Aggregate, over(one.aggregate))) for one in tree.members
    )
    return replace(tree, shape=replace(tree.shape, rows=over(tree.shape.rows)), members=members)


def feeds_of(plan: ChannelPlan, tree: TreeJob) -> dict[str, str]:
    """The derived stream that such a tree reads in the place of each base stream."""
    made = {stream.id: streams_of(stream.plan)[0] for stream in plan.streams}
    return {made[name]: name for name in streams_of(tree.shape.rows) if name in made}


@dataclass(slots=True)
class _Source:
    """What is cut, and who wants it."""

    site: str
    wants: list[Want] = field(default_factory=list)
    small: list[Want] = field(default_factory=list)
    """The ones that get a stream of their own."""


@dataclass(slots=True)
class _Cutter:
    network: PlacedNetwork | None
    whole: Sequence[Job]
    trees: Sequence[TreeJob]
    homes: Mapping[str, str]
    path_of: PathOf
    relays: bool
    taken: frozenset[str] = frozenset()
    sources: dict[object, _Source] = field(default_factory=dict)
    streams: dict[str, DerivedStream] = field(default_factory=dict)
    jobs: list[ChannelJob] = field(default_factory=list)
    fed: dict[tuple[str, LogicalPlan, tuple[Expr, ...]], tuple[DerivedStream, frozenset[Expr]]] = field(
        default_factory=dict
    )
    """By reader, core and conditions: the stream it reads, and the conditions that the stream meets."""

    def plan(self) -> ChannelPlan:
        joins = self.network.joins if self.network else ()
        alone = [job for job in self.whole if any(map(self._far(job.site), nodes(job.plan)))]
        woven = [tree for tree in self.trees if any(map(self._far(tree.site), nodes(tree.shape.rows)))]
        self._collect_placed()
        self._collect([(job.id, job.site, job.plan) for job in alone])
        self._collect([(tree.id, tree.site, tree.shape.rows) for tree in woven])
        for key, source in self.sources.items():
            self._part_small(key, source)
        for key, source in self.sources.items():
            if not isinstance(key, str):
                self._feed(source, lambda plan: plan, "send")
        for join in joins:
            if join.id in self.sources:
                self._feed(self.sources[join.id], self._made(join), join.id)
        for query in self.network.queries if self.network else ():
            channel = self._channel(query.input)
            plan = _replaced(query.plan, channel.plan, self._brought(channel, query.query))
            check_plan(plan, schema=query.plan.schema, blame="cutting")
            self.jobs.append(ChannelJob(query.query, query.site, plan, query=query.query))
        for job in alone:
            plan = self._read_by(job)
            check_plan(plan, schema=job.plan.schema, blame="cutting")
            self.jobs.append(ChannelJob(job.id, job.site, plan, query=job.query))
        fed = tuple(map(self._fed_tree, woven))
        return ChannelPlan(tuple(self.streams.values()), tuple(self.jobs), fed)

    # -- who wants what ------------------------------------------------------------------------------

    def _collect(self, whole: Iterable[tuple[str, str, LogicalPlan]]) -> None:
        """What plans want that stay whole: reader, site, plan."""
        for reader, site, plan in whole:
            for core, parts in self._leaves(plan, site):
                path = self.path_of(self.homes[core.stream], site)
                want = Want(reader, path, core, parts, frozenset(core.columns.names))
                self._source((core.stream,), path[0]).wants.append(want)

    def _collect_placed(self) -> None:
        for channel in self.network.channels if self.network else ():
            if not self._inside(channel):
                want = _want(channel)
                self._source(self._key(channel.source, want.core), channel.path[0]).wants.append(want)

    def _key(self, source: str, core: LogicalPlan) -> object:
        """Joins by their names; scans of one stream together, whatever their columns are."""
        if self.network is not None and any(join.id == source for join in self.network.joins):
            return source
        return (core.stream,) if isinstance(core, StreamScan) else (core,)

    def _source(self, key: object, site: str) -> _Source:
        return self.sources.setdefault(key, _Source(site))

    def _part_small(self, key: object, source: _Source) -> None:
        join = self.network.join(key) if isinstance(key, str) and self.network else None
        rates = [want.rate for want in source.wants if want.rate is not None]
        if len(rates) < 2:
            return
        most = join.rate if join is not None else max(rates)
        source.small = [
            want for want in source.wants if _is_small(want.rate, most) and len(want.path) > 1 and want.parts
        ]
        source.wants = [want for want in source.wants if want not in source.small]

    def _inside(self, channel: Channel) -> bool:
        """Whether the reader does the source's work itself."""
        if len(channel.path) > 1 or self.network is None:
            return False
        if not any(join.id == channel.source for join in self.network.joins):
            return True
        return sum(other.source == channel.source for other in self.network.channels) == 1

    # -- streams and their makers ----------------------------------------------------------------------

    def _feed(self, source: _Source, made: Callable[[LogicalPlan], LogicalPlan], name: str) -> None:
        """The job that makes what the readers want together, and one more for each small part."""
        joined = name != "send"
        # A small part of a join is cut from the join's stream, that of a base stream from the stream itself.
        at_home = [replace(want, reader=self._small_id(want), path=want.path[:1]) for want in source.small]
        wants = [*source.wants, *at_home] if joined else source.wants
        if wants:
            core, passing, columns = _together(wants)
            carried = _cut_to(core, passing, columns)
            stream = self._stream(source.site, carried)
            id_ = self._free(name if joined else f"send-{stream.id[4:]}")
            plan = _cut_to(made(core), passing, columns)
            self._add(ChannelJob(id_, source.site, plan, writes=stream.id), stream, wants, passing)
        for want, home in zip(source.small, at_home, strict=True):
            carried = _cut_to(want.core, want.parts, want.columns | set(want.core.times))
            stream = self._stream(source.site, carried)
            if stream.id in self.streams:
                self._give(stream, [want], want.parts)
                continue
            rows = self._reading(home) if joined else Filter(want.core, conjunction(want.parts))
            plan = _projected(rows, want.columns | set(want.core.times))
            job = ChannelJob(self._free(self._small_id(want)), source.site, plan, writes=stream.id)
            self._add(job, stream, [want], want.parts)

    @staticmethod
    def _small_id(want: Want) -> str:
        parts = [*map(format_expr, want.parts), *sorted(want.columns)]
        text = f"{want.path[0]}: {format_plan(want.core)} {parts}"
        return f"cut-{fingerprint(text)[:8]}"

    def _stream(self, site: str, plan: LogicalPlan) -> DerivedStream:
        name = f"via_{fingerprint(f'{site}: {format_plan(plan)}')[:8]}"
        return DerivedStream(self._free(name, "_"), site, plan)

    def _free(self, name: str, dash: str = "-") -> str:
        """The same for the same name."""
        found, number = name, 2
        while found in self.taken:
            found, number = f"{name}{dash}{number}", number + 1
        return found

    def _add(
        self, job: ChannelJob, stream: DerivedStream, wants: Iterable[Want], passing: Sequence[Expr]
    ) -> None:
        self.jobs.append(job)
        self.streams[stream.id] = stream
        self._give(stream, wants, passing)

    def _give(self, stream: DerivedStream, wants: Iterable[Want], passing: Sequence[Expr]) -> None:
        for want in wants:
            nearest = self._relayed(stream, want.path) if self.relays else stream
            self.fed[want.reader, want.core, want.parts] = (nearest, frozenset(passing))

    def _relayed(self, stream: DerivedStream, path: tuple[str, ...]) -> DerivedStream:
        """The stream at the last site before the reader's, each site passing it on once for all."""
        for site in path[1:-1]:
            name = self._free(f"{stream.id[:12]}_{fingerprint(site)[:6]}", "_")
            copy = DerivedStream(name, site, stream.plan)
            if copy.id not in self.streams:
                self.streams[copy.id] = copy
                relay = self._free(f"relay-{copy.id[4:]}")
                self.jobs.append(ChannelJob(relay, site, stream.scan(), writes=copy.id))
            stream = copy
        return stream

    # -- the plans of readers --------------------------------------------------------------------------

    def _made(self, join: PlacedJoin) -> Callable[[LogicalPlan], LogicalPlan]:
        brought = tuple(self._brought(self._channel(one), join.id) for one in join.inputs)
        return lambda plan: _replaced(plan, join.plan, with_inputs(join.plan, brought))

    def _channel(self, channel_id: str) -> Channel:
        assert self.network is not None
        return self.network.channel(channel_id)

    def _brought(self, channel: Channel, reader: str) -> LogicalPlan:
        """What a channel brings, as its reader has it: from a derived stream, or done by itself."""
        assert self.network is not None
        if not self._inside(channel):
            want = _want(channel)
            rows, _ = _above(channel.plan)
            return _replaced(channel.plan, rows, self._reading(want))
        inner = next((join for join in self.network.joins if join.id == channel.source), None)
        return channel.plan if inner is None else self._made(inner)(channel.plan)

    def _reading(self, want: Want) -> LogicalPlan:
        """A want over the stream that it is fed from, with the conditions that the stream does not meet."""
        stream, met = self.fed[want.reader, want.core, want.parts]
        left = tuple(part for part in want.parts if part not in met)
        more = frozenset(name for part in left for name in columns_of(part))
        names = want.columns | more | set(want.core.times)
        scan = stream.scan(names)
        return Filter(scan, conjunction(left)) if left else scan

    def _read_by(self, job: Job) -> LogicalPlan:
        """A whole query over what is brought to it."""

        def over(node: LogicalPlan) -> LogicalPlan:
            core, parts = split_filter(node)
            if isinstance(core, StreamScan) and self._far(job.site)(core):
                rows = self._reading(Want(job.id, (), core, parts, frozenset(core.columns.names)))
                return rows if rows.schema == core.schema else _in_order(rows, core.columns)
            return with_inputs(node, tuple(over(child) for child in node.inputs))

        return over(job.plan)

    def _fed_tree(self, tree: TreeJob) -> TreeJob:
        leaves = self._leaves(tree.shape.rows, tree.site)
        return fed_tree(tree, {core.stream: self.fed[tree.id, core, parts][0].id for core, parts in leaves})

    def _far(self, site: str) -> Callable[[LogicalPlan], bool]:
        return lambda node: isinstance(node, StreamScan) and self.homes.get(node.stream, site) != site

    def _leaves(self, plan: LogicalPlan, site: str) -> Iterator[tuple[StreamScan, tuple[Expr, ...]]]:
        core, parts = split_filter(plan)
        if isinstance(core, StreamScan):
            if self._far(site)(core):
                yield core, parts
            return
        for child in plan.inputs:
            yield from self._leaves(child, site)


def _is_small(rate: float | None, most: float) -> bool:
    return rate is not None and rate < SMALL * most


def _want(channel: Channel) -> Want:
    rows, columns = _above(channel.plan)
    core, parts = split_filter(rows)
    wanted = frozenset(core.schema.names) if columns is None else columns
    return Want(channel.reader, channel.path, core, parts, wanted, channel.rate)


def _above(plan: LogicalPlan) -> tuple[LogicalPlan, frozenset[str] | None]:
    """The filtered rows of a channel's plan, and the columns that are read of them; None: all."""
    if isinstance(plan, Project):
        read = (columns_of(expr) for _, expr in plan.items)
        return plan.input, frozenset().union(*read)
    return plan, None


def _together(wants: Sequence[Want]) -> tuple[LogicalPlan, tuple[Expr, ...], frozenset[str]]:
    """What several readers want: the core with all their columns, the conditions that every row meets, and
    the columns that travel."""
    alternatives = list(dict.fromkeys(want.parts for want in wants))
    common = tuple(part for part in alternatives[0] if all(part in other for other in alternatives))
    rest = [tuple(part for part in one if part not in common) for one in alternatives]
    either = () if len(rest) == 1 or not all(rest) else (Call("or", tuple(map(conjunction, rest))),)
    passing = (*common, *either)
    columns = frozenset().union(*(want.columns for want in wants), wants[0].core.times)
    left = (part for want in wants for part in want.parts if part not in passing)
    columns |= frozenset().union(*map(columns_of, left))
    return _merged([want.core for want in wants], columns, passing), passing, columns


def _merged(cores: Sequence[LogicalPlan], columns: frozenset[str], passing: Iterable[Expr]) -> LogicalPlan:
    """One core for all: scans of the same stream differ in their columns."""
    first = cores[0]
    if not isinstance(first, StreamScan):
        return first
    read = columns.union(*map(columns_of, passing))
    known = {c.name: c for core in cores for c in core.schema if c.name in read}
    return replace(first, columns=Schema(known.values()))


def _cut_to(core: LogicalPlan, passing: Sequence[Expr], columns: Iterable[str]) -> LogicalPlan:
    return _projected(Filter(core, conjunction(tuple(passing))) if passing else core, columns)


def _projected(rows: LogicalPlan, columns: Iterable[str]) -> LogicalPlan:
    kept = set(columns)
    if kept >= set(rows.schema.names):
        return rows
    return Project(rows, tuple((c.name, ColumnRef(c.name, c.type)) for c in rows.schema if c.name in kept))


def _in_order(rows: LogicalPlan, columns: Schema) -> LogicalPlan:
    return Project(rows, tuple((c.name, ColumnRef(c.name, c.type)) for c in columns))


def _replaced(plan: LogicalPlan, node: LogicalPlan, new: LogicalPlan) -> LogicalPlan:
    if plan == node:
        return new
    return with_inputs(plan, tuple(_replaced(child, node, new) for child in plan.inputs))
