"""What the manager itself takes: a service of many jobs on the fake engine, and statistics by the thousand.

    python -m benchmarks.manager_overhead [--jobs 100] [--seconds 60] [--json FILE]

service     the loop of `headrace serve` with all it does in a round: progress of every job (a new batch each
            time, the worst case), the state file, health of sites, statistics every 5 s, a decision about
            moves every 30 s, CPU and memory of processes. The engine does nothing, so what is measured
            is the manager's: CPU of the process, and its memory
statistics  looks at 1,000 jobs, as fast as they go: merged, written into the statistics file with what is
            believed; updates a second, and which part of a core 1,000 a second take

The bars: less than 5 % of one core and 200 MB for 100 jobs; 1,000 updates a second.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import psutil

from benchmarks.machine import describe
from headrace.catalog.model import FileSource, Format, Project, Query, Site, Stream
from headrace.plan.logical import StreamScan
from headrace.plan.placed import Job, PlacedPlan
from headrace.plan.types import DataType
from headrace.runtime.executor import JobState, Progress
from headrace.runtime.fake import FakeExecutor
from headrace.runtime.sites import Ways
from headrace.service.deployment import Planner
from headrace.service.fleet import Fleet, Start
from headrace.service.gathering import Gathering
from headrace.service.layout import state_file
from headrace.service.meter import Meter
from headrace.service.moments import now
from headrace.service.moving import moves_of
from headrace.service.probing import Processes, nothing
from headrace.service.rebalancing import Rebalancing, how_of
from headrace.service.run import Hooks, Options, Runner
from headrace.state.store import Store

SITES = ("east", "west", "south")
WARM_SECONDS = 5.0
T = TypeVar("T")
MOST_CORES, MOST_BYTES, UPDATES = 0.05, 200e6, 1_000.0
_STREAM = Stream(
    name="s",
    columns={"ts": DataType.TIMESTAMP, "v": DataType.DOUBLE},
    time="ts",
    site="east",
    source=FileSource(path="input", format=Format.JSON),
)


@dataclass(frozen=True, slots=True)
class Service:
    jobs: int
    seconds: float
    rounds: int
    cores: float
    """Of the process, on average."""
    megabytes: float
    """Resident, at the end: Python and all libraries included."""


@dataclass(frozen=True, slots=True)
class Gathered:
    jobs: int
    updates_per_second: float
    """As fast as they go, in one thread."""
    cores_at_1000: float
    file_megabytes: float


def project(root: Path, jobs: int) -> Project:
    sites = {name: Site(name=name, endpoint=f"sc://{name}:1") for name in SITES}
    queries = {f"q{i}": Query(name=f"q{i}", sql="SELECT 1", site=SITES[i % 3]) for i in range(jobs)}
    streams = {"s": _STREAM}
    made = Project(name="many", root=root, streams=streams, tables={}, sites=sites, links=(), queries=queries)
    state_file(made).parent.mkdir(parents=True)
    return made


def planner() -> Planner:
    def plan_query(found: Project, query: Query) -> Job:
        scan = StreamScan("s", _STREAM.schema_, _STREAM.time, 0)
        return Job(query.name, query.name, query.site, scan)

    return Planner(
        plan_query,
        lambda found, query: "no trees here",
        lambda found, names, taken: PlacedPlan(tuple(plan_query(found, found.queries[n]) for n in names)),
        lambda *_: None,
    )


def service(root: Path, jobs: int, seconds: float) -> Service:
    found = project(root, jobs)
    meter, process = Meter(time.monotonic), psutil.Process()
    began: list[tuple[float, float]] = []
    rounds = 0
    with Store(state_file(found)) as store, moves_of(found) as moves:
        gathering = Gathering(Processes(time.monotonic))
        rebalancing = Rebalancing(gathering, moves, how_of("ours", "cpu", 30.0), "dry")

        def each_round(project: Project, fleet: Fleet) -> None:
            nonlocal rounds
            rebalancing.look(project, fleet)
            passed = time.monotonic() - first
            if passed >= WARM_SECONDS:
                rounds += 1
                began.append((time.monotonic(), time.process_time()))
            if passed >= WARM_SECONDS + seconds:
                runner.request_stop()

        hooks = Hooks(meter.see, planner=planner(), moves=moves, each_round=each_round)
        runner = Runner(found, store, now, time.sleep, Options(serve=True), hooks)
        runner.prepare()
        first = time.monotonic()
        ways = Ways(lambda site: True, lambda job, site: None, others=lambda job: SITES)
        runner.run(FakeExecutor(), ways)
        gathering.close()
    wall, cpu = (last - start for start, last in zip(began[0], began[-1], strict=True))
    return Service(
        jobs, round(wall, 1), rounds, round(cpu / wall, 4), round(process.memory_info().rss / 1e6, 1)
    )


def statistics(root: Path, jobs: int, looks: int) -> Gathered:
    """A minute and more of looks, so that means and what is too old are dealt with too."""
    found = project(root, jobs)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    with Store(state_file(found)) as store:
        fleet = Fleet(FakeExecutor(), store, now, Start())
        for unit in planner().place(found, tuple(found.queries), ()).jobs:
            fleet.units[unit.id] = unit
        gathering = Gathering(nothing, clock=lambda: at, interval=0.0)
        seen = Progress("", JobState.RUNNING, 0, batch_millis=300, state_rows=10, lag=5, watermark=1)
        spent = 0.0
        for number in range(looks):
            at += timedelta(seconds=1)
            for name in fleet.units:
                fleet.states[name] = replace(seen, job=name, batch=number, input_rows=1000 * number)
            before = time.process_time()
            gathering.look(found, fleet)
            spent += time.process_time() - before
        gathering.close()
    size = sum(path.stat().st_size for path in state_file(found).parent.glob("statistics.db*"))
    rate = jobs * looks / spent
    return Gathered(jobs, round(rate), round(UPDATES / rate, 4), round(size / 1e6, 1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    machine = describe(datetime.now(), os.environ)
    print("\n".join(machine.lines()))
    served = _in_scratch(lambda root: service(root, args.jobs, args.seconds))
    cheap = served.cores < MOST_CORES and served.megabytes < MOST_BYTES / 1e6
    print(
        f"service: {served.jobs} jobs, {served.rounds} rounds in {served.seconds:.0f} s: "
        f"{served.cores:.2%} of a core, {served.megabytes:.0f} MB  {_met(cheap)}"
    )
    gathered = _in_scratch(lambda root: statistics(root, 1_000, 90))
    print(
        f"statistics: {gathered.updates_per_second:,.0f} updates a second, 1,000 a second take "
        f"{gathered.cores_at_1000:.2%} of a core; file {gathered.file_megabytes:.1f} MB  "
        f"{_met(gathered.updates_per_second >= UPDATES)}"
    )
    if args.json:
        data = {"machine": asdict(machine), "service": asdict(served), "statistics": asdict(gathered)}
        args.json.write_text(json.dumps(data, indent=2) + "\n")


def _in_scratch(work: Callable[[Path], T]) -> T:
    with tempfile.TemporaryDirectory() as folder:
        return work(Path(folder))


def _met(met: bool) -> str:
    return "(bar met)" if met else "(BAR MISSED)"


if __name__ == "__main__":
    main()
