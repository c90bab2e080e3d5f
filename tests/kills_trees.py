"""kill -9 of a project whose queries are woven into trees, also while queries are added and dropped.

A dozen window queries over one stream are run by the real command in its own process group; the input comes
file by file. Queries are added and dropped by the real commands or by the API, and at random moments, often
right after such a request, something is killed: the run, the whole group, one of its children (the JVM, a
Python worker), or the command itself. Then it is started again, and in the end drained. Every query must have
its whole answer, from its `valid from` on; a dropped one all windows up to its last, and nothing twice.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog.model import FileSource, Format, Project, SinkKind, Stream
from headrace.errors import UserError
from headrace.plan.placed import TreeMember
from headrace.plan.types import DataType
from headrace.runtime.results import read_results
from headrace.service.changes import NewQuery, add_query, drop_queries
from headrace.service.layout import state_file
from headrace.service.project import open_project
from headrace.service.results import valid_from
from headrace.state.store import Store
from tests.property.generate_trees import SECOND, member_of, table_of
from tests.property.tree_judge import Judge, Part
from tests.spark.harness import write_batches

_START = 1_700_000_040 * SECOND
_FILES, _ROWS, _SPAN = 24, 40, 12 * SECOND
_NEVER = -(2**62)
"""The arrival watermark of rows that are late for nothing."""
STREAM = Stream(
    name="readings",
    columns={"ts": DataType.TIMESTAMP, "plug": DataType.INT, "v": DataType.DOUBLE, "tag": DataType.STRING},
    time="ts",
    watermark=4 * SECOND,
    source=FileSource(path="readings", format=Format.PARQUET, files_per_batch=1),
)
_HEAD = """
name: kills
streams:
  readings:
    columns: {ts: timestamp, plug: int, v: double, tag: string}
    time: ts
    watermark: 4 seconds
    source: {kind: files, path: readings, format: parquet, files_per_batch: 1}
planner: {shuffle_partitions: 2}
queries:
"""


def _sql(shown: str, size: int, slide: int, where: str = "", having: str = "", by: str = "plug") -> str:
    columns = ", ".join(filter(None, ("window_start", by, shown)))
    text = f"SELECT {columns} FROM readings [RANGE {size} SECONDS SLIDE {slide} SECONDS]"
    text += f" WHERE {where}" if where else ""
    return text + (f" GROUP BY {by}" if by else "") + (f" HAVING {having}" if having else "")


QUERIES = {
    "mean_10_3": _sql("avg(v) AS m, count(*) AS n", 10, 3),
    "mean_30_5": _sql("avg(v) AS m", 30, 5),
    "top_7_7": _sql("max(v) AS top, min(v) AS low", 7, 7),
    "top_21_4": _sql("max(v) AS top", 21, 4, having="count(*) > 2"),
    "spread_40_8": _sql("stddev_samp(v) AS sd", 40, 8),
    "sum_12_2": _sql("sum(v) AS s", 12, 2, where="tag = 'a'"),
    "sum_15_15": _sql("sum(v) AS s", 15, 15, where="tag = 'a' AND v > 30"),
    "high_9_3": _sql("count(*) AS n", 9, 3, where="v > 50"),
    "tags_20_10": _sql("min(tag) AS t, count(tag) AS n", 20, 10),
    "count_60_20": _sql("count(*) AS n", 60, 20),
    "counts_6_3": _sql("count(v) AS n, sum(plug) AS p", 6, 3),
    "mean_25_4": _sql("avg(v) AS m", 25, 4, where="tag IS NULL"),
}
"""What the project file has."""
MORE = {
    "late_mean_14_3": _sql("avg(v) AS m", 14, 3),
    "late_top_30_10": _sql("max(v) AS top, sum(v) AS s", 30, 10, where="v > 20"),
    "late_var_18_6": _sql("var_pop(v) AS var", 18, 6, where="tag = 'b'"),
    "late_long_90_15": _sql("count(*) AS n, max(tag) AS t", 90, 15),
    "late_all_10_5": _sql("count(*) AS n, avg(v) AS m", 10, 5, by=""),
    "late_twice_8_4": _sql("sum(v * 2) AS s", 8, 4),
}
"""What is added on the way."""


@dataclass(frozen=True, slots=True)
class Round:
    """One project: how often it was killed, what was asked of it, and what was wrong in the end."""

    kills: int
    changes: int
    rows: int
    problems: tuple[str, ...]


def batches_of(seed: int) -> list[pa.Table]:
    """Out of order by less than the watermark's delay. Numbers are multiples of 1/4: sums are exact."""
    rng, found = random.Random(seed), []
    for number in range(_FILES):
        start = _START + number * _SPAN
        times = [start + i * _SPAN // _ROWS - rng.randrange(3 * SECOND) for i in range(_ROWS)]
        rows: list[dict[str, object]] = [
            {
                "ts": when,
                "plug": rng.randrange(5),
                "v": None if rng.random() < 0.05 else rng.randrange(400) / 4,
                "tag": rng.choice(("a", "b", None)),
            }
            for when in times
        ]
        found.append(table_of(STREAM, rows))
    return found


class Killed:
    """One project on its way."""

    def __init__(self, root: Path, seed: int, say: Callable[[str], None]) -> None:
        self.root, self._say, self._rng = root, say, random.Random(seed)
        self.batches = batches_of(seed)
        self._fed = self.kills = self.changes = 0
        self._here, self._waiting = list(QUERIES), list(MORE)
        self._rng.shuffle(self._waiting)
        self._commands: list[subprocess.Popen[bytes]] = []
        root.mkdir(parents=True)
        queries = "".join(f"  {name}: {{sql: {json.dumps(sql)}}}\n" for name, sql in QUERIES.items())
        (root / "headrace.yaml").write_text(_HEAD + queries)
        (root / "sql").mkdir()
        for name, sql in MORE.items():
            (root / "sql" / name).write_text(sql)
        self.feed(3)

    def feed(self, count: int) -> None:
        fresh = self.batches[self._fed : self._fed + count]
        write_batches(self.root / "readings", fresh, first=self._fed)
        self._fed += len(fresh)

    def _popen(self, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "headrace.cli.main", *words]
        with (self.root / "run.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def run(self, *options: str) -> subprocess.Popen[bytes]:
        return self._popen("run", str(self.root), "--json", *options)

    def _commits(self) -> int:
        return sum(1 for _ in self.root.glob(".headrace/jobs/*/checkpoint/commits/[0-9]*"))

    def wait_commits(self, process: subprocess.Popen[bytes], more: int, seconds: float = 90) -> None:
        goal, deadline = self._commits() + more, time.monotonic() + seconds
        while self._commits() < goal and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)

    # Changes.

    def change(self) -> None:
        """Ask for something: by the command, which may itself be killed, or by the API."""
        if self._waiting and (self._rng.random() < 0.65 or len(self._here) < 4):
            name = self._waiting.pop()
            self._here.append(name)
            self._say(f"  add {name}")
            words = ("add", name, str(self.root), "--sql", str(self.root / "sql" / name))
            self._ask(words, lambda: add_query(self.root, NewQuery(name, MORE[name])))
        else:
            name = self._here.pop(self._rng.randrange(len(self._here)))
            self._say(f"  drop {name}")
            self._ask(("drop", name, str(self.root)), lambda: drop_queries(self.root, [name]))
        self.changes += 1

    def _ask(self, words: tuple[str, ...], call: Callable[[], object]) -> None:
        if self._rng.random() < 0.5:
            try:
                call()
            except UserError as error:
                # A command that was killed may have left out what this one builds on.
                self._say(f"  refused: {error.message}")
            return
        command = self._popen(*words)
        self._commands.append(command)
        if self._rng.random() < 0.25:
            time.sleep(self._rng.random() * 3)
            command.kill()

    # Kills.

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is not None:
            return
        how = self._rng.choice(("run", "group", "group", "child"))
        self._say(f"  kill {how} after {self._commits()} commits")
        self.kills += 1
        if how == "run":
            process.kill()
        elif how == "child" and self._kill_child(process):
            self._wait(process, 30)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _kill_child(self, process: subprocess.Popen[bytes]) -> bool:
        children = psutil.Process(process.pid).children(recursive=True)
        if not children:
            return False
        chosen = self._rng.choice(children)
        try:
            chosen.kill()
        except psutil.NoSuchProcess:
            return False
        return True

    @staticmethod
    def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.1)

    def finish(self) -> list[str]:
        """Let the commands end, give the rest of the input and drain."""
        self.feed(_FILES)
        for command in self._commands:
            self._wait(command, 30)
            if command.poll() is None:
                command.kill()
            command.wait()
        process = self.run("--drain")
        # Only a run that hangs takes so long, also where other work keeps the machine busy.
        self._wait(process, 1200)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
        return [f"exit code {code}: {(self.root / 'run.log').read_text()[-3000:]}"] if code else []

    # What came of it.

    def differences(self) -> tuple[int, list[str]]:
        judge = Judge(STREAM, self.batches, [_NEVER] * len(self.batches))
        project = open_project(self.root)
        rows, problems = 0, list[str]()
        for name, sql in (QUERIES | MORE).items():
            folder = self.root / "results" / name
            if name not in project.queries and not folder.exists():
                continue
            member = member_of(STREAM, name, sql)
            got = read_results(folder, SinkKind.PARQUET, member.plan.schema)
            until = None if name in project.queries else _last_end(member, got)
            part = Part(_valid_from(project, name), until)
            more, _, wrong = judge.problems(member, [got], None, part)
            rows, problems = rows + more, problems + wrong
        return rows, problems


def _valid_from(project: Project, name: str) -> int | None:
    """As users are told; of a query that was dropped, as the journal of changes has it."""
    known = valid_from(project, name)
    with Store(state_file(project)) as store:
        added = [c.valid_from for c in store.changes(range(1, 500)) if (c.kind, c.query) == ("add", name)]
    return known if known is not None or not added else added[-1]


def _last_end(member: TreeMember, got: pa.Table) -> int:
    """Where the last window ends that a dropped query gave: results come in the order of the watermark."""
    if not got.num_rows:
        return _NEVER
    return int(pc.max(got["window_start"].cast(pa.int64())).as_py()) + member.window.spec.range


def run_round(
    root: Path, seed: int, kills: int, *, changes: bool = True, say: Callable[[str], None] = lambda _: None
) -> Round:
    """Kill one project `kills` times, then let it finish and compare."""
    say(f"project {seed}")
    project, rng = Killed(root, seed, say), random.Random(seed + 1)
    while project.kills < kills:
        process = project.run()
        project.wait_commits(process, rng.randrange(1, 5))
        project.feed(rng.randrange(1, 4))
        for _ in range(rng.randrange(3) if changes else 0):
            project.change()
            time.sleep(rng.random() * rng.choice((0.1, 2.0, 6.0)))
        time.sleep(rng.random() * 2)
        if process.poll() is not None:
            log = (root / "run.log").read_text()[-3000:]
            return Round(project.kills, project.changes, 0, (f"the run ended by itself: {log}",))
        project.kill(process)
    problems = project.finish()
    rows, differences = project.differences()
    return Round(project.kills, project.changes, rows, (*problems, *differences))
