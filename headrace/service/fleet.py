"""The jobs and trees of one run: started, watched, stopped, and what was seen of them written down.

A unit is what the executor starts and stops at once: a job, a tree, queries that are split over engines, or
one of the jobs by which queries are spread over sites. What is seen and shown is one row for each query,
whichever unit answers it; where one split takes over from another, the newer one. A unit that fails ends
alone.

    waiting -> started -> [executor's JobState ...] -> ended
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from headrace.catalog.model import Project, SinkKind
from headrace.errors import HeadraceError, InternalError, SiteSilent, UserError
from headrace.plan.channels import ChannelJob, ChannelPlan, pruned
from headrace.plan.federated import FederatedJob, FederatedMember
from headrace.plan.placed import Job, PlacedPlan, TreeJob, TreeMember
from headrace.runtime.executor import ENDED, Executor, JobContext, JobState, Progress
from headrace.service.channel_layout import channel_context, enlist_readers, fed_tree_context, ports_of
from headrace.service.federated_records import giving, live
from headrace.service.fingerprints import query_fingerprint
from headrace.service.folders import make_folders
from headrace.service.layout import gone_context, job_folder, query_context, tree_context, writes_files
from headrace.service.moments import Clock, timestamp
from headrace.service.spread_records import NOTHING, Spread
from headrace.service.storages import place_checkpoint
from headrace.state.store import Desired, Seen, Store

_STOP_AT_ONCE = 8

Unit = Job | TreeJob | FederatedJob | ChannelJob


def parts(unit: Unit) -> tuple[Job | TreeMember | FederatedMember, ...]:
    """The queries that a unit answers; none: it makes a stream for others."""
    if isinstance(unit, FederatedJob):
        return live(unit)
    if isinstance(unit, ChannelJob):
        return () if unit.query is None else (Job(unit.id, unit.query, unit.site, unit.plan),)
    return unit.members if isinstance(unit, TreeJob) else (unit,)


def queries(unit: Unit) -> tuple[str, ...]:
    return tuple(part.query for part in parts(unit))


def units_of(placed: PlacedPlan, order: Iterable[str], channels: ChannelPlan = NOTHING) -> list[Unit]:
    """Jobs and trees in the order of the first query of each, those that are in `channels` as they are there;
    and before them, in an order in which they can be started, the makers of what they read."""
    rank = {name: number for number, name in enumerate(order)}
    # Of a query in two split jobs, the one that others take over from comes first.
    split = sorted(placed.federated, key=lambda job: max(m.after or 0 for m in job.members))
    cut = {job.id: job for job in channels.jobs}
    fed = {tree.id: tree for tree in channels.trees}
    jobs = [replace(cut[job.id], site=job.site) if job.id in cut else job for job in placed.jobs]
    trees = [replace(fed[tree.id], site=tree.site) if tree.id in fed else tree for tree in placed.trees]
    units: list[Unit] = [*jobs, *trees, *split]
    makers = pruned(channels, [unit.id for unit in units]).makers
    return [*makers, *sorted(units, key=lambda unit: min(rank[name] for name in queries(unit)))]


@dataclass(frozen=True, slots=True)
class Start:
    """How units are started in this run."""

    drain: bool = False
    master: str | None = None


class Fleet:
    def __init__(
        self,
        executor: Executor,
        store: Store,
        clock: Clock,
        how: Start,
        on_start: Callable[[], object] = lambda: None,
    ) -> None:
        self._executor, self._store, self._clock, self._how = executor, store, clock, how
        self._on_start = on_start
        self.units: dict[str, Unit] = {}
        self.waiting: list[str] = []
        self.seen: dict[str, Progress] = {}
        """By query."""
        self.states: dict[str, Progress] = {}
        """By unit."""
        self.refused: set[str] = set()
        """Queries that cannot run as the user asked, and jobs that make streams and cannot."""
        self.spread = Spread()
        """What of the units is spread over sites."""
        self.given_up: set[str] = set()
        """Units that ended because what makes their streams has failed."""
        self.silent: set[str] = set()
        """Units of which only their site was wrong: it did not answer."""
        self.lost: frozenset[str] = frozenset()
        """Sites that are out; none where nobody watches them."""
        self._left: set[str] = set()
        self._before: dict[str, int] = {}
        """By unit: rows read before its latest start."""
        self._read: dict[str, int] = {}
        """By unit: rows read in all, as far as was seen."""

    def feed(self, project: Project, spread: Spread) -> None:
        """What of the units is spread, before any of them is started: nothing is removed from a channel that
        one of its readers has not read, and readers that are no more hold nothing back."""
        self.spread = spread
        enlist_readers(project, spread.plan)

    # -- starting ---------------------------------------------------------------------------------

    def enlist(self, unit: Unit) -> None:
        """It waits for its turn."""
        self.units[unit.id] = unit
        self.states.pop(unit.id, None)
        self.waiting.append(unit.id)

    def again(self, unit: Unit) -> None:
        """It has failed, and is the next to be started. Until then it waits, and is no longer a failure."""
        self.enlist(unit)
        self.waiting.insert(0, self.waiting.pop())
        for name in queries(unit):
            self.seen.pop(name, None)

    def alive(self) -> list[str]:
        return [unit for unit, progress in self.states.items() if progress.state not in ENDED]

    def unfinished(self) -> bool:
        return bool(self.waiting or self.alive())

    def start(self, project: Project, unit: Unit) -> UserError | None:
        """Start it; the error, where it cannot run as the user asked. Any other failure is only noted: a
        full disk, or what an engine throws, ends this unit, and the others go on."""
        self.units[unit.id] = unit
        self._left -= set(queries(unit))
        self.silent.discard(unit.id)
        self.given_up.discard(unit.id)
        self._before[unit.id] = self._read.setdefault(unit.id, self._stored(project, unit))
        self._want(project, unit)
        self._note_all(unit, Progress(unit.id, JobState.STARTING))
        self._on_start()
        try:
            self._begin(project, unit)
        except HeadraceError as error:
            self._note_all(unit, Progress(unit.id, JobState.FAILED, error=error.render()))
            if isinstance(error, UserError):
                self.refused |= self._names(unit)
                if isinstance(error, SiteSilent):
                    self.silent.add(unit.id)
                return error
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            self._note_all(unit, Progress(unit.id, JobState.FAILED, error=reason))
        return None

    @staticmethod
    def _names(unit: Unit) -> set[str]:
        """What it is known by to those who ask: its queries, or itself."""
        return set(queries(unit)) or {unit.id}

    def is_refused(self, unit: Unit) -> bool:
        """Whether it cannot run as the user asked. One whose site is silent could elsewhere, or later."""
        return bool(self.refused & self._names(unit)) and unit.id not in self.silent

    def _want(self, project: Project, unit: Unit) -> None:
        desired: Desired = "drained" if self._how.drain else "running"
        self.refused -= self._names(unit)
        cut = isinstance(unit, ChannelJob) or self.spread.is_fed(unit.id)
        for part in parts(unit):
            print_ = query_fingerprint(project, self.spread.whole(part.query) if cut else part)
            now = timestamp(self._clock)
            self._store.want(part.query, part.query, unit.site, print_, desired, now)

    def _begin(self, project: Project, unit: Unit) -> None:
        drain, master = self._how.drain, self._how.master
        contexts = {name: query_context(project, name, unit.site, master) for name in queries(unit)}
        for name, context in contexts.items():
            make_folders(context, results=writes_files(project.queries[name]))
        if isinstance(unit, Job):
            # One that keeps its results in memory starts over, and has no checkpoint.
            if contexts[unit.query].sink.kind is not SinkKind.MEMORY:
                place_checkpoint(project, unit.id, unit.site)
            self._executor.start(unit, contexts[unit.query], drain=drain)
            return
        if isinstance(unit, ChannelJob):
            self._begin_channel(project, unit)
            return
        own: JobContext = tree_context(project, unit, master)
        make_folders(own, results=False)
        place_checkpoint(project, unit.id, unit.site)
        if isinstance(unit, TreeJob):
            if self.spread.is_fed(unit.id):
                own = fed_tree_context(project, self.spread.plan, unit, master)
            self._executor.start_tree(unit, own, contexts, drain=drain)
        else:
            left = [m.query for m in unit.members if m.query not in contexts]
            contexts |= {name: gone_context(project, unit, name, master) for name in left}
            self._executor.start_federated(unit, own, contexts, drain=drain)

    def _begin_channel(self, project: Project, unit: ChannelJob) -> None:
        plan = self.spread.plan
        context = channel_context(project, plan, unit, self._how.master)
        make_folders(context, results=False)
        place_checkpoint(project, unit.id, unit.site)
        self._executor.start_channel(unit, context, ports_of(project, plan, unit), drain=self._how.drain)

    # -- watching ---------------------------------------------------------------------------------

    def observe(self) -> None:
        self._note([progress for unit in self.alive() for progress in self._look(unit)])

    def _look(self, unit_id: str) -> list[Progress]:
        """The progress of each query of a unit."""
        progress = self._counted(unit_id, self._executor.progress(unit_id))
        self.states[unit_id] = progress
        unit = self.units[unit_id]
        if isinstance(unit, Job | ChannelJob):
            return [progress] if queries(unit) else []
        return [self._counted(unit_id, self._executor.progress(name)) for name in self._shown(unit)]

    def _counted(self, unit_id: str, progress: Progress) -> Progress:
        """With the rows of earlier starts, so that what is shown never goes back, and a job that goes on is
        as far as it is; also where an engine that is gone tells nothing any more. Nobody was told of the last
        batches of a run that was killed: where the whole input is read, its size is the number."""
        read = max(self._read.get(unit_id, 0), self._before.get(unit_id, 0) + progress.input_rows)
        if progress.state is JobState.FINISHED:
            read = max(read, progress.input_total or 0)
        self._read[unit_id] = read
        before = read - progress.input_rows
        return progress if progress.input_before == before else replace(progress, input_before=before)

    def _stored(self, project: Project, unit: Unit) -> int:
        """What an earlier run has seen of it; of a new unit nothing, whoever has answered its queries."""
        if not job_folder(project, unit.id).exists():
            return 0
        records = [self._store.get(name) for name in queries(unit)]
        return max((record.input_rows for record in records if record is not None), default=0)

    def _shown(self, unit: TreeJob | FederatedJob) -> list[str]:
        """The queries that are seen as they are in this unit."""
        return [name for name in queries(unit) if self.unit_of(name) == unit]

    def _note_all(self, unit: Unit, progress: Progress) -> None:
        progress = self._counted(unit.id, progress)
        self.states[unit.id] = progress
        names = self._shown(unit) if isinstance(unit, FederatedJob) else queries(unit)
        self._note([replace(progress, job=name) for name in names])

    def _note(self, found: list[Progress]) -> None:
        """Remember what was seen; the store is written only when something changed."""
        news = [p for p in found if p.job not in self._left and p != self.seen.get(p.job)]
        self.seen |= {progress.job: progress for progress in news}
        if news:
            self._store.observe([_seen(progress) for progress in news], timestamp(self._clock))

    # -- stopping ---------------------------------------------------------------------------------

    def leave(self, names: Iterable[str]) -> None:
        """Queries that are no more: nothing of them is shown or written down again."""
        for name in names:
            self._left.add(name)
            self.seen.pop(name, None)
            self.refused.discard(name)

    def stop(self, ids: Iterable[str]) -> None:
        """Stop several at once: each has to wait for the end of its own batch."""
        alive = [unit for unit in ids if unit in self.alive()]
        with ThreadPoolExecutor(_STOP_AT_ONCE) as pool:
            found = list(pool.map(self._stopped, alive))
        for unit, seen in zip(alive, found, strict=True):
            if isinstance(seen, Progress):
                self._note_all(self.units[unit], seen)
            else:
                self._note(seen)

    def _stopped(self, unit_id: str) -> list[Progress] | Progress:
        """One that will not stop does not keep the others."""
        try:
            self._executor.stop(unit_id)
            return self._look(unit_id)
        except HeadraceError as error:
            return Progress(unit_id, JobState.FAILED, error=error.render())

    def give_up(self, project: Project, unit: Unit, reason: str) -> None:
        """Stop a unit that cannot come to its end, or take it from those that wait: it has failed."""
        self.stop([unit.id])
        if unit.id in self.waiting:
            self.waiting.remove(unit.id)
            self._want(project, unit)
        known = self.states.get(unit.id, Progress(unit.id, JobState.STARTING))
        self._note_all(unit, replace(known, state=JobState.FAILED, error=reason))
        self.given_up.add(unit.id)

    def forget(self, unit_id: str) -> None:
        """A unit that is no more."""
        self.given_up.discard(unit_id)
        for known in (self.units, self.states, self._before, self._read):
            known.pop(unit_id, None)
        if unit_id in self.waiting:
            self.waiting.remove(unit_id)

    def places(self) -> dict[str, Unit]:
        """`unit_of` every query at once."""
        found: dict[str, Unit] = {}
        for unit in self.units.values():
            for query in queries(unit):
                found[query] = self.unit_of(query) or unit if query in found else unit
        return found

    def unit_of(self, query: str) -> Unit | None:
        """The unit that answers it; of several, the one that gives the newest windows."""
        found = [unit for unit in self.units.values() if query in queries(unit)]
        split = giving([unit for unit in found if isinstance(unit, FederatedJob)], query)
        return split[-1] if split else next(iter(found), None)

    # -- one split takes over from another ---------------------------------------------------------

    def seen_until(self, unit_id: str) -> int | None:
        return self._executor.seen_until(unit_id)

    def bound(self, job: FederatedJob, queries_: Collection[str], until: int) -> bool:
        """Let these give no window that ends later; False where one may have been given already, and then
        none is bound. `job` is what the unit is from now on."""
        try:
            self._executor.set_until(job.id, queries_, until)
        except InternalError:
            return False
        self.units[job.id] = job
        return True


def _seen(progress: Progress) -> Seen:
    return Seen(
        progress.job,
        progress.state,
        progress.batch,
        progress.rows_read,
        progress.output_rows,
        progress.late_rows,
        progress.watermark,
        progress.error,
        progress.valid_from,
    )
