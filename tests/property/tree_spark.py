"""Random trees on Spark: the cases of generate_trees.py as tree jobs, several at once in one session.

A file is a micro-batch, so the watermark that was in force for each row can be read from the checkpoint. With
changes, and for restarts, a tree is stopped when some of its files have been read and started again with the
members of the next stage; the last stage drains it.
"""

from __future__ import annotations

import random
import shutil
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.catalog.model import SinkKind
from headrace.plan.placed import TreeJob, TreeMember
from headrace.runtime.executor import ENDED, JobContext, JobState
from headrace.runtime.results import read_results
from headrace.runtime.spark.checkpoint import batch_files, last_committed, read_batch
from headrace.runtime.spark.executor import SparkExecutor
from tests.property.generate_trees import TreeCase, random_tree
from tests.property.tree_cases import Schedule, schedule_of
from tests.property.tree_judge import Judge, Outcome, Part
from tests.spark.harness import context_of, with_files, write_batches

AT_ONCE = 4
_ROWS, _BATCHES = 120, 5
_LONGEST = 180


@dataclass(frozen=True, slots=True)
class Stage:
    """These members, until this many files have been read; None: to the end, drained."""

    members: tuple[TreeMember, ...]
    files: int | None


def stages_of(schedule: Schedule, batches: int, rng: random.Random, *, restarts: bool) -> list[Stage]:
    """Every set of members is a stage; with restarts, one more start with the same members."""
    places = sorted(schedule.sets)
    starts = {place: schedule.sets[place] for place in places}
    if restarts and batches > 1:
        place = rng.randrange(1, batches)
        starts.setdefault(place, starts[max(p for p in places if p <= place)])
    ends = [*sorted(starts)[1:], None]
    return [Stage(starts[a], b) for a, b in zip(sorted(starts), ends, strict=True)]


class Running:
    """One case on its way. `poll` does what there is to do and says whether it has ended."""

    def __init__(self, executor: SparkExecutor, seed: int, root: Path, *, changes: bool) -> None:
        rng = random.Random(seed + 1)
        self.case, self._executor = random_tree(seed, _ROWS, _BATCHES), executor
        self.root, self._id = root / f"case{seed}", f"tree{seed}"
        schedule = schedule_of(self.case, rng, changes=changes)
        self._shape = schedule.shape
        self._stages = stages_of(schedule, len(self.case.batches), rng, restarts=rng.random() < 0.3)
        self._parts: dict[str, Part] = {}
        self._late: dict[str, int] = {}
        self._members: dict[str, TreeMember] = {}
        write_batches(self.root / "in", self.case.batches)
        streams = {self.case.stream.name: with_files(self.case.stream, self.root / "in")}
        plain = context_of(self.root, streams, {}, name=self._id)
        self._context = replace(plain, shuffle_partitions=rng.choice((1, 1, 2)))
        self._began = time.monotonic()
        self._start()

    @property
    def _checkpoint(self) -> Path:
        return self._context.state / "checkpoint"

    def _context_of(self, query: str) -> JobContext:
        own = context_of(self.root, self._context.streams, {}, name=query)
        return replace(own, shuffle_partitions=self._context.shuffle_partitions)

    def _start(self) -> None:
        """Start with the members of the stage, and write down who came and who left."""
        stage, read = self._stages[0], self._files_read()
        names = {m.query for m in stage.members}
        for name in [n for n, part in self._parts.items() if part.last is None and n not in names]:
            self._parts[name] = replace(self._parts[name], until=self._watermark(), last=read)
            self._late[name] = self._executor.progress(name).late_rows
        tree = TreeJob(self._id, "local", self._shape, stage.members)
        contexts = {name: self._context_of(name) for name in names}
        self._executor.start_tree(tree, self._context, contexts, drain=stage.files is None)
        for member in stage.members:
            self._members[member.query] = member
            valid = self._executor.progress(member.query).valid_from
            self._parts.setdefault(member.query, Part(valid, first=read))

    def _files_read(self) -> int:
        """Files of committed batches."""
        done = last_committed(self._checkpoint)
        return sum(len(self._inputs(number)) for number in range(done + 1))

    def _inputs(self, batch: int) -> list[Path]:
        """The input files of a batch, without close marks."""
        return [path for path in batch_files(self._checkpoint, batch) if path.parent == self.root / "in"]

    def _watermark(self) -> int:
        """What the tree had reached when it was stopped."""
        batch = read_batch(self._checkpoint, last_committed(self._checkpoint))
        return 0 if batch is None else batch.watermark

    def poll(self) -> bool:
        state = self._executor.status(self._id)
        if time.monotonic() > self._began + _LONGEST:
            raise AssertionError(f"still {state} after {_LONGEST} s: {self._executor.progress(self._id)}")
        goal = self._stages[0].files
        if goal is None or state is JobState.FAILED:
            return state in ENDED
        if self._files_read() >= goal:
            self._executor.stop(self._id)
            del self._stages[0]
            self._start()
        return False

    def stop(self) -> None:
        if self._executor.status(self._id) not in ENDED:
            self._executor.stop(self._id)

    def _marks(self) -> list[int]:
        """The watermark in force for each file: that of the batch before the one that read it."""
        found: dict[str, int] = {}
        for number in range(last_committed(self._checkpoint) + 1):
            before = read_batch(self._checkpoint, number - 1)
            for path in self._inputs(number):
                found[path.name] = 0 if before is None else before.watermark
        return [found[name] for name in sorted(found)]

    def judged(self) -> Outcome:
        """Every member's results against the reference."""
        progress = self._executor.progress(self._id)
        if progress.state is not JobState.FINISHED:
            problem = f"{progress.state}: {progress.error}"
            return Outcome(self.case.seed, len(self._parts), 0, 0, (self.case.told(), problem))
        judge = Judge(self.case.stream, self.case.batches, self._marks())
        rows = late = 0
        problems: list[str] = []
        for name, part in self._parts.items():
            member = self._members[name]
            got = read_results(self.root / "results" / name, SinkKind.PARQUET, member.plan.schema)
            counted = self._late.get(name)
            counted = self._executor.progress(name).late_rows if counted is None else counted
            more, missed, wrong = judge.problems(member, [got], counted, part)
            rows, late, problems = rows + more, late + missed, problems + wrong
        told = (self.case.told(),) if problems else ()
        return Outcome(self.case.seed, len(self._parts), rows, late, (*told, *problems))


def _failed(case: TreeCase) -> Outcome:
    return Outcome(case.seed, len(case.sql), 0, 0, (case.told(), traceback.format_exc()))


def spark_cases(
    executor: SparkExecutor,
    seeds: Iterable[int],
    root: Path,
    *,
    changes: bool = False,
    on_outcome: Callable[[Outcome], None] = lambda _: None,
) -> list[Outcome]:
    """Run and judge all cases; what a case leaves on disk is removed unless it failed."""
    waiting, outcomes = list(seeds)[::-1], list[Outcome]()
    running: list[Running] = []

    def done(outcome: Outcome) -> None:
        outcomes.append(outcome)
        on_outcome(outcome)

    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            seed = waiting.pop()
            try:
                running.append(Running(executor, seed, root, changes=changes))
            except Exception:
                done(_failed(random_tree(seed, _ROWS, _BATCHES)))
        for one in list(running):
            outcome = _polled(one)
            if outcome is not None:
                running.remove(one)
                done(outcome)
                if not outcome.problems:
                    shutil.rmtree(one.root)
        time.sleep(0.02)
    return outcomes


def _polled(one: Running) -> Outcome | None:
    """The outcome of a case that has come to an end, one way or the other."""
    try:
        return one.judged() if one.poll() else None
    except Exception:
        outcome = _failed(one.case)
        one.stop()
        return outcome
