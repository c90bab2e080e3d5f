"""`python -m headrace.service.throughput_run`: splits of a query at a rate, each run until its windows are
full and a few batches longer. A process of its own: an engine that runs out of memory or time takes nobody
else along. A line of the input is the path of a task; a line is added to the task's answers after each split.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog.model import Project, Sink, SinkKind
from headrace.plan import logical as lp
from headrace.plan.federated import Engine, FederatedJob, FederatedMember
from headrace.plan.placed import Job
from headrace.runtime.compare import inexact_columns, multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.executor import ENDED, JobContext, JobState
from headrace.runtime.results import read_results
from headrace.runtime.spark.executor import SparkExecutor
from headrace.service.binding import plan_query
from headrace.service.throughput_stream import STREAM, Load, project_of, readings, write_readings

_POLL = 0.05
_CHECKED_HOUSES = 2
"""Of which answers are compared with the reference."""
_WARM = Load(200, fill=10, batch=5, warm=1, measured=3)
PATIENCE = 4.0
"""A run may take so many times its limit where it does not get the cores."""


@dataclass(frozen=True, slots=True)
class Task:
    """`splits`: a letter for each operator, s or d."""

    query: str
    sql: str
    load: Load
    splits: tuple[str, ...]
    rows: str
    """The folder with the stream's files."""
    work: str
    limit: float
    """Seconds for one split; on a busy machine, of the cores' own time."""
    cores: int
    memory: str
    reference: bool
    """Compare with a batch evaluation of the query, too, and not only splits with each other."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, path: Path) -> Task:
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**data, "load": Load(**data["load"]), "splits": tuple(data["splits"])})


@dataclass(slots=True)
class Answer:
    """What one split did."""

    split: str
    seconds: list[float] = field(default_factory=list)
    """Of each measured batch, from the end of the one before."""
    cpu: list[float] = field(default_factory=list)
    """CPU seconds of the same, of all processes."""
    begun: float = 0.0
    """Seconds of the last batch, where that was not completed."""
    memory: int = 0
    """Bytes that all processes held in the end."""
    problem: str = ""
    compared: int = 0
    """Result rows that were compared."""


def run_task(task: Task, executor: SparkExecutor, answers: Path) -> None:
    checker = _Checker(task)
    for split in task.splits:
        run = _Run(task, split, executor)
        answer = run.done()
        if not answer.problem:
            answer.problem = checker.problem(run.results())
            answer.compared = checker.compared
        with answers.open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(answer)) + "\n")
        shutil.rmtree(run.folder, ignore_errors=True)


def warm_up(task: Task, executor: SparkExecutor) -> None:
    """Whoever runs first would pay for the compilation of what all run."""
    rows = Path(task.work) / "warm-rows"
    write_readings(_WARM, rows)
    run = _Run(replace(task, load=_WARM, rows=str(rows)), task.splits[0], executor, "warm-up")
    run.done()
    shutil.rmtree(run.folder, ignore_errors=True)


def _plan_of(task: Task) -> tuple[Project, lp.LogicalPlan]:
    project = project_of(task.load, Path(task.rows), task.query, task.sql, task.cores)
    return project, plan_query(project, project.queries[task.query]).plan


class _Run:
    """One split, from its start until it has done its batches."""

    def __init__(self, task: Task, split: str, executor: SparkExecutor, name: str = "run") -> None:
        self.folder = Path(task.work) / f"{name}-{task.query}-{split}"
        project, self._plan = _plan_of(task)
        self._task, self._split, self._executor = task, split, executor
        # Two runs of one process must not have the same name.
        self._id, self._parent = f"{self.folder.name}-{task.load.rate}", os.getppid()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._own, self._member = (self._context(project, name) for name in ("job", "query"))

    def _context(self, project: Project, name: str) -> JobContext:
        return JobContext(
            streams=project.streams,
            tables={},
            sink=Sink(),
            root=self.folder,
            state=self.folder / ".headrace" / "jobs" / name,
            results=self.folder / "results" / name,
            endpoint=project.sites["local"].endpoint,
            shuffle_partitions=self._task.cores,
        )

    def done(self) -> Answer:
        answer = Answer(self._split)
        began = time.monotonic()
        self._start()
        ends = self._follow(began, _cpu())
        answer.memory = _held()
        self._executor.stop(self._id)
        first = self._task.load.first
        times = dict(ends)
        for before, after in pairwise(range(first - 1, self._task.load.files)):
            if after in times:
                answer.seconds.append(times[after][0] - times[before][0])
                answer.cpu.append(times[after][1] - times[before][1])
        if len(ends) < self._task.load.files:
            answer.begun = time.monotonic() - (ends[-1][1][0] if ends else began)
            answer.problem = self._reason() if not answer.seconds else ""
        return answer

    def _start(self) -> None:
        task = self._task
        if "d" not in self._split:
            job = Job(self._id, task.query, "local", self._plan)
            self._executor.start(job, self._own, drain=False)
            return
        engines = tuple(Engine.SPARK if letter == "s" else Engine.DUCKDB for letter in self._split)
        member = FederatedMember(task.query, self._plan, engines, after=task.load.after)
        split = FederatedJob(self._id, "local", (member,))
        self._executor.start_federated(split, self._own, {task.query: self._member}, drain=False)

    def _follow(self, began: float, before: float) -> list[tuple[int, tuple[float, float]]]:
        """When each batch was committed, and the CPU seconds until then."""
        commits, ends = self._own.state / "checkpoint" / "commits", list[tuple[int, tuple[float, float]]]()
        while len(ends) < self._task.load.files and not self._is_over(began, before):
            if os.getppid() != self._parent:
                raise SystemExit("whoever asked is gone")
            if (commits / str(len(ends))).exists():
                ends.append((len(ends), (time.monotonic(), _cpu())))
            elif self._executor.status(self._id) in ENDED:
                break
            else:
                time.sleep(_POLL)
        return ends

    def _is_over(self, began: float, before: float) -> bool:
        """Where others use the machine too, a run has its share of the cores to wait for, up to a point."""
        wall, limit = time.monotonic() - began, self._task.limit
        return wall > limit and (wall > PATIENCE * limit or (_cpu() - before) / self._task.cores > limit)

    def _reason(self) -> str:
        if self._executor.status(self._id) is JobState.FAILED:
            return f"failed: {self._executor.progress(self._id).error[:300]}"
        return f"no full window after {self._task.limit:.0f} s"

    def results(self) -> pa.Table:
        folder = self._own.results if "d" not in self._split else self._member.results
        return read_results(folder, SinkKind.PARQUET, self._plan.schema)


class _Checker:
    """Answers are compared with the first one, and for some houses with the reference, which takes its time:
    windows that end after the fill, and by the last end that both have, since Spark's joins give theirs a
    batch later."""

    def __init__(self, task: Task) -> None:
        self._plan, self._task, self.compared = _plan_of(task)[1], task, 0
        self._first: pa.Table | None = None
        self._reference: pa.Table | None = None
        if task.reference:
            rows = readings(task.load, 0, [*task.load.spans()][-1][1])
            self._reference = evaluate(self._plan, {STREAM: _few_houses(rows)})

    def problem(self, got: pa.Table) -> str:
        """How an answer differs, if it does."""
        self.compared = 0
        found = "" if self._reference is None else self._differs(self._reference, _few_houses(got))
        if self._first is None:
            self._first = got
            return found
        return found or self._differs(self._first, got)

    def _differs(self, wanted: pa.Table, got: pa.Table) -> str:
        last = min(self._last(got), self._last(wanted))
        got, wanted = self._between(got, last), self._between(wanted, last)
        if not wanted.num_rows:
            return "no full window was given"
        approximate, spread = inexact_columns(self._plan)
        found = multiset_difference(wanted, got, approximate=approximate, spread=spread)
        self.compared += wanted.num_rows
        return f"wrong: {found.text()[:400]}" if found else ""

    def _last(self, rows: pa.Table) -> int:
        return int(pc.max(self._ends(rows)).as_py() or 0)

    def _ends(self, rows: pa.Table) -> pa.ChunkedArray:
        window = self._plan.window
        assert window is not None
        return pc.cast(rows[window.end], pa.int64())

    def _between(self, rows: pa.Table, last: int) -> pa.Table:
        ends = self._ends(rows)
        return rows.filter(pc.and_(pc.greater(ends, self._task.load.after), pc.less_equal(ends, last)))


def _few_houses(rows: pa.Table) -> pa.Table:
    """Every query is about each plug, or each household, by itself."""
    return rows.filter(pc.less(rows["house"], _CHECKED_HOUSES))


def _processes() -> Iterator[psutil.Process]:
    own = psutil.Process()
    yield own
    yield from own.children(recursive=True)


def _cpu() -> float:
    total = 0.0
    for process in _processes():
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def _held() -> int:
    total = 0
    for process in _processes():
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def main(lines: Iterable[str]) -> None:
    """Do tasks as they are asked for; the first of them opens the engine."""
    executor: SparkExecutor | None = None
    try:
        for line in lines:
            path = Path(line.strip())
            task = Task.read(path)
            if executor is None:
                executor = SparkExecutor(os.environ, memory=task.memory)
                warm_up(task, executor)
            run_task(task, executor, path.with_suffix(".answers"))
    finally:
        if executor is not None:
            executor.close()


if __name__ == "__main__":
    main(sys.stdin)
