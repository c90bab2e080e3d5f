"""Jobs on several sites with channels between them: the answers are those of the whole queries."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.catalog.model import FileSource, Format, Project, SinkKind
from headrace.plan.channels import ChannelJob, ChannelPlan
from headrace.runtime.channels.protocol import Limit
from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.executor import ENDED, JobState
from headrace.runtime.results import read_results
from headrace.runtime.spark.channel_run import ChannelRun
from headrace.runtime.spark.executor import SparkExecutor
from headrace.service.channel_layout import (
    channel_context,
    channel_of,
    collect_channels,
    enlist_readers,
    ports_of,
    sizes,
)
from headrace.service.cutting import cut
from headrace.service.placing import place_joins
from tests.spark.harness import write_batches
from tests.unit.service.network_sample import START, project, whole

pytestmark = pytest.mark.spark

SECOND = 1_000_000
DELAY = 3 * SECOND
JOINED = (
    "FROM a JOIN b ON a.m = b.m AND a.k = b.k"
    " AND b.ts BETWEEN a.ts - INTERVAL 2 SECONDS AND a.ts + INTERVAL 3 SECONDS"
    "\nJOIN c ON c.k = b.k AND c.m = b.m AND c.ts BETWEEN b.ts AND b.ts + INTERVAL 4 SECONDS"
)
QUERIES = {
    "counted": (
        "south",
        f"SELECT window.start, b.k, count(*) AS n, sum(c.m) AS total {JOINED}"
        "\nGROUP BY window(a.ts, '20 seconds', '5 seconds'), b.k",
    ),
    "picked": ("far", f"SELECT a.ts, c.ts AS later, a.v, c.s {JOINED}\nWHERE c.s <> 'z'"),
    "alone": (
        "south",
        "SELECT window.start, s, count(*) AS n FROM a WHERE s <> 'y'"
        "\nGROUP BY window(ts, '15 seconds', '5 seconds'), s",
    ),
}
HOMES = {"a": "west", "b": "west", "c": "east"}
LINKS = (("west", "east", "20ms"), ("east", "south", "30ms"), ("south", "far", "5ms"))
FILES, ROWS = 4, 80


def _batches(seed: int) -> list[pa.Table]:
    """Two minutes, out of order by less than the delay."""
    rng = random.Random(seed)
    begin = int(START.timestamp()) * SECOND
    steps = range(FILES * ROWS)
    times = [begin + i * 120 * SECOND // (FILES * ROWS) - rng.randint(0, DELAY // 2) for i in steps]
    whole_ = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array([rng.choice((0, 1, None)) for _ in steps], pa.int32()),
            "m": pa.array([rng.randint(0, 2) for _ in steps], pa.int32()),
            "v": pa.array([rng.random() for _ in steps], pa.float64()),
            "s": pa.array([rng.choice("xyz") for _ in steps], pa.string()),
        }
    )
    return [whole_.slice(n * ROWS, ROWS) for n in range(FILES)]


def _project(folder: Path) -> Project:
    found = project(folder, QUERIES, homes=HOMES, links=LINKS)
    streams = {
        name: stream.model_copy(
            update={
                "watermark": DELAY,
                "source": FileSource(path=f"data/{name}", format=Format.PARQUET, files_per_batch=1),
            }
        )
        for name, stream in found.streams.items()
    }
    sites = {n: site.model_copy(update={"endpoint": "local[2]"}) for n, site in found.sites.items()}
    # Every promise is a batch for its readers; without a pause there are many small ones.
    planner = found.planner.model_copy(update={"trigger": 400_000})
    return found.model_copy(update={"streams": streams, "sites": sites, "planner": planner})


def _cut(found: Project) -> ChannelPlan:
    everything = whole(found)
    placed = place_joins(found, everything)
    assert placed is not None
    names = {query.query for query in placed.network.queries}
    others = [job for job in everything.jobs if job.query not in names]
    return cut(placed.network, others, {n: s.site for n, s in found.streams.items()})


def _rows(path: Path) -> int:
    return int(pq.read_metadata(path).num_rows)


class _Running:
    """The jobs of a plan on one session, all at once."""

    def __init__(self, executor: SparkExecutor, found: Project, plan: ChannelPlan) -> None:
        self._executor, self._project, self.plan = executor, found, plan
        self.runs: dict[str, ChannelRun] = {}

    def start(self, job: ChannelJob, *, drain: bool, limit: Limit | None = None) -> ChannelRun:
        context = channel_context(self._project, self.plan, job)
        run = ChannelRun(job, context, ports_of(self._project, self.plan, job, limit), drain=drain)
        if run.is_finished():
            run.finished_before()
        else:
            self._executor._clear_fence(context.root)
            run.begin(self._executor._session(context), None)
        self.runs[job.id] = run
        return run

    def start_all(self, *, drain: bool) -> None:
        enlist_readers(self._project, self.plan)
        for job in self.plan.jobs:
            self.start(job, drain=drain)

    def until(self, done: Callable[[], bool], seconds: float = 600) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            failed = [run.progress() for run in self.runs.values() if run.state is JobState.FAILED]
            assert not failed, failed
            assert time.monotonic() < deadline, [run.progress() for run in self.runs.values()]
            time.sleep(0.1)

    def drained(self) -> None:
        self.until(lambda: all(run.state in ENDED for run in self.runs.values()))

    def stop(self) -> None:
        for run in self.runs.values():
            run.stop()


def test_answers_over_channels_are_those_of_whole_queries(executor: SparkExecutor, tmp_path: Path) -> None:
    found = _project(tmp_path)
    plan = _cut(found)
    sites = {job.id: job.site for job in plan.jobs}
    assert set(sites.values()) == {"west", "east", "south", "far"}
    joins = [job for job in plan.jobs if job.id.startswith("join-")]
    assert [job.site for job in joins] == ["west", "east"], "a join of three streams in two jobs"
    assert {job.id for job in plan.readers(joins[1].writes or "")} == {"counted", "picked"}
    batches = {name: _batches(seed) for seed, name in enumerate(HOMES)}
    for name, parts in batches.items():
        write_batches(tmp_path / "data" / name, parts[: FILES // 2])
    running = _Running(executor, found, plan)
    running.start_all(drain=False)
    # Windows are given while the jobs go on: the makers' watermarks have come through the channels.
    running.until(lambda: all(running.runs[q].progress().output_rows > 0 for q in QUERIES))
    running.stop()
    early = {q: running.runs[q].progress().output_rows for q in QUERIES}
    for name, parts in batches.items():
        write_batches(tmp_path / "data" / name, parts[FILES // 2 :], first=FILES // 2)
    again = _Running(executor, found, plan)
    again.start_all(drain=True)
    again.drained()
    tables = {name: pa.concat_tables(parts) for name, parts in batches.items()}
    for job in whole(found).jobs:
        expected = evaluate(job.plan, tables)
        got = read_results(tmp_path / "results" / job.query, SinkKind.PARQUET, job.plan.schema)
        difference = multiset_difference(expected, got)
        assert not difference, f"{job.query}: {difference.text()}"
        assert 0 < early[job.query] < expected.num_rows
    assert all(run.progress().late_rows == 0 for run in again.runs.values())
    collect_channels(found, plan)
    assert all(channel_of(found, stream).ended() for stream in plan.streams)
    assert all(size.parts == 0 for size in sizes(found, plan).values()), "all is read, so all is gone"
    staged = tmp_path.glob(".headrace/jobs/*/staging/*.parquet")
    makers = {plan.maker(stream.id).id for stream in plan.streams}
    assert not [path for path in staged if path.parent.parent.name in makers and _rows(path)]
