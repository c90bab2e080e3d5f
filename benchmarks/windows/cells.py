"""One cell of the table: an engine on a set of queries, over the whole input or, where that would take longer
than the limit, over a prefix of it.

    known pace, whole input fits         -> measured
    else a short prefix; whole fits then -> measured
    else the longest prefix that fits    -> scaled: start-up + slope * events, through the two prefixes
    only a short prefix fits, or none    -> at least what that prefix took, or had taken when it was ended
    even one file does not fit           -> not run; what the fewer queries before it foretell is shown

A figure that is not measured on the whole input is marked as such wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.windows import data
from benchmarks.windows.answers import Checker
from benchmarks.windows.engines import NAMES, Engine, Places, Sample, run
from benchmarks.windows.spec import FILES, NONE, RunSpec
from benchmarks.windows.workloads import WORKLOADS, WindowQuery

MEASURED, SCALED, AT_LEAST, FORETOLD, NOT = "measured", "scaled", "at least", "foretold", "n/a"
_PREDICTED = (Engine.PLAIN, Engine.FRAGMENTS, Engine.FLINK)
"""Engines whose time grows with the number of queries so much that it is foretold before it is spent."""
_FIRST_SHARE, _SECOND_SHARE = 0.25, 0.8
"""Of the limit, for the two prefixes."""


@dataclass(frozen=True, slots=True)
class Case:
    workload: str
    queries: int
    input: data.Input
    files_per_batch: int = 6
    sink: str = FILES
    stretch: int = 1

    @property
    def made(self) -> tuple[WindowQuery, ...]:
        return WORKLOADS[self.workload].queries(self.queries, self.stretch)


@dataclass(frozen=True, slots=True)
class Cell:
    case: Case
    engine: Engine
    kind: str
    cpu: float | None = None
    """For the whole input, whatever `kind` says of how it is known."""
    sample: Sample | None = None
    """The longest run."""
    shorter: Sample | None = None
    note: str = ""

    @property
    def wrong(self) -> bool:
        return self.sample is not None and bool(self.sample.problem) and not self.sample.usage.timed_out


@dataclass(slots=True)
class _Pace:
    """What earlier cells of an engine and workload have taught: seconds an event and query, and before."""

    wall: float
    cpu: float
    startup: float
    """CPU seconds."""
    begin: float
    """Wall seconds."""


@dataclass(slots=True)
class Bench:
    places: Places
    limit: float
    memory: str
    cores: int
    say: Callable[[str], None]
    store: str = "rocksdb"
    prefixes: tuple[int, ...] = ()
    """Files of the two that slow engines are run over first; none: chosen by the limit."""
    _paces: dict[tuple[str, str, int, Engine], _Pace] = field(default_factory=dict)
    _checkers: dict[tuple[Path, Case], Checker] = field(default_factory=dict)

    def cell(self, engine: Engine, case: Case) -> Cell:
        if engine is Engine.FLINK and not all(query.whole for query in case.made):
            refused = sum(not query.whole for query in case.made)
            return Cell(case, engine, NOT, note=f"refuses {refused} of {case.queries} queries")
        cell = self._predicted(engine, case) if engine in _PREDICTED else self._whole(engine, case)
        self.learn(cell)
        return cell

    def _whole(self, engine: Engine, case: Case, shorter: Sample | None = None) -> Cell:
        sample = self.run(engine, case, case.input.files, limit=self.limit * 2)
        if sample.problem:
            return Cell(case, engine, NOT, sample=sample, note=sample.problem)
        return Cell(case, engine, MEASURED, sample.usage.cpu, sample, shorter)

    def _predicted(self, engine: Engine, case: Case) -> Cell:
        pace = self._paces.get(_key(engine, case))
        if pace is None and self.prefixes:
            return self._from_two(engine, case)
        if pace is None:
            first = case.files_per_batch
        else:
            slope = pace.wall * case.queries * case.input.per_file
            if pace.begin + slope * case.input.files <= self.limit:
                return self._whole(engine, case)
            first = int((self.limit * _FIRST_SHARE - pace.begin) / slope)
            if first < 1 and pace.begin + slope > self.limit * _SECOND_SHARE:
                foretold = pace.startup + pace.cpu * case.queries * case.input.events
                return Cell(case, engine, FORETOLD, foretold, note="from fewer queries")
        return self._from_prefix(engine, case, _whole_batches(case, first))

    def _from_prefix(self, engine: Engine, case: Case, files: int) -> Cell:
        small = self.run(engine, case, files, limit=self.limit)
        if small.problem or files == case.input.files:
            return _ended(case, engine, small) or Cell(case, engine, MEASURED, small.usage.cpu, small)
        slope = small.work_seconds / files
        if small.report.ready + slope * case.input.files <= self.limit:
            return self._whole(engine, case, small)
        more = _whole_batches(case, int((self.limit * _SECOND_SHARE - small.report.ready) / slope))
        if more <= files:
            return Cell(case, engine, AT_LEAST, small.usage.cpu, small, note="only this prefix fits")
        large = self.run(engine, case, more, limit=self.limit * 2)
        if (ended := _ended(case, engine, large)) is not None:
            return ended
        begin, pace = through(small, large, lambda sample: sample.usage.wall)
        if begin + pace * case.input.events <= self.limit:
            # One short run alone makes an engine with a slow start look slower than it is.
            return self._whole(engine, case, large)
        return _scaled(case, engine, small, large)

    def _from_two(self, engine: Engine, case: Case) -> Cell:
        small, large = (self.run(engine, case, files, limit=self.limit) for files in self.prefixes)
        return (
            _ended(case, engine, small) or _ended(case, engine, large) or _scaled(case, engine, small, large)
        )

    def learn(self, cell: Cell) -> None:
        """From a cell of this run or an earlier one."""
        sample = cell.sample
        if sample is None or sample.problem or cell.cpu is None or cell.kind == AT_LEAST:
            return
        work = sample.events * cell.case.queries
        startup, begin = 0.0, sample.report.ready
        if cell.shorter is not None:
            startup = max(through(cell.shorter, sample)[0], 0.0)
            begin = max(through(cell.shorter, sample, lambda run: run.usage.wall)[0], begin)
        self._paces[_key(cell.engine, cell.case)] = _Pace(
            wall=max(sample.usage.wall - begin, 0.0) / work,
            cpu=max(sample.usage.cpu - startup, 0.0) / work,
            startup=startup,
            begin=begin,
        )

    def run(self, engine: Engine, case: Case, files: int, limit: float) -> Sample:
        """Run an engine over the first so many files."""
        spec = self._spec(engine, case, files)
        events = data.count(Path(spec.parquet))
        what = f"{case.workload}, {case.queries} queries, {events:,} events, output {case.sink}"
        checked = case.sink != NONE and engine is not Engine.READING
        checker = self._checker(case, spec) if checked else None
        sample = run(self.places, spec, events, limit, checker)
        self.say(f"{NAMES[engine]}: {what}: {sample.problem or f'{sample.usage.cpu:.1f} CPU-s'}")
        return sample

    def _spec(self, engine: Engine, case: Case, files: int) -> RunSpec:
        cache = self.places.cache
        folder = data.prefix(cache, data.make(cache, case.input), files)
        flat = engine in (Engine.FLINK, Engine.READING)
        return RunSpec(
            engine=engine,
            queries=case.made,
            parquet=str(folder),
            csv=str(data.as_csv(folder, self.cores)) if flat else "",
            work=str(self.places.work(engine)),
            sink=case.sink,
            files_per_batch=case.files_per_batch,
            cores=self.cores,
            memory=self.memory,
            store=self.store,
        )

    def _checker(self, case: Case, spec: RunSpec) -> Checker:
        """Of the answers to a case over a prefix; one is kept, since they take memory."""
        known = (Path(spec.parquet), replace(case, sink=FILES))
        if known not in self._checkers:
            self._checkers.clear()
            self._checkers[known] = Checker(spec)
        return self._checkers[known]


def _whole_batches(case: Case, files: int) -> int:
    """A batch has a price of its own, so prefixes are of whole batches where they are longer than one."""
    if files > case.files_per_batch:
        files -= files % case.files_per_batch
    return min(max(files, 1), case.input.files)


def _scaled(case: Case, engine: Engine, small: Sample, large: Sample) -> Cell:
    startup, grows = through(small, large)
    note = f"from {small.events:,} and {large.events:,} events"
    return Cell(case, engine, SCALED, startup + grows * case.input.events, large, small, note)


def _ended(case: Case, engine: Engine, sample: Sample) -> Cell | None:
    """The cell of a run that came to no good end; None: it did."""
    if not sample.problem:
        return None
    if not sample.usage.timed_out:
        return Cell(case, engine, NOT, sample=sample, note=sample.problem)
    note = f"{sample.events:,} events: {sample.problem}"
    return Cell(case, engine, AT_LEAST, sample.usage.cpu, sample, note=note)


def through(
    small: Sample, large: Sample, of: Callable[[Sample], float] = lambda run: run.usage.cpu
) -> tuple[float, float]:
    """Start-up and seconds an event, of the line through two runs."""
    slope = (of(large) - of(small)) / (large.events - small.events)
    return of(small) - slope * small.events, slope


def _key(engine: Engine, case: Case) -> tuple[str, str, int, Engine]:
    return case.workload, case.input.name, case.stretch, engine
