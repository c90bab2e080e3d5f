"""A project with two queries that can be split, and an engine for them that keeps its state on disk.

The engine has no rows. A batch of a job is one second of event time: it gives the windows that end then to
each member, as files named by job and window end. So what is in a results folder says which windows were lost
or given twice. As in the real one, what a job may give is bounded on disk, and a window that was given cannot
be bounded away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.catalog.model import Project
from headrace.cost.federation import FederationCosts
from headrace.errors import InternalError
from headrace.plan import logical as lp
from headrace.plan.channels import ChannelJob
from headrace.plan.federated import FederatedJob
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.channels.ports import Ports
from headrace.runtime.executor import JobContext, JobState, Progress
from headrace.runtime.federated.program import counted, program_of
from headrace.service.calibration_file import FederationCalibration, MeasuredCase, save_federation
from headrace.service.project import open_project
from tests.unit.service.disk_engine import Death

MICROS = 1_000_000
PRICES = FederationCosts(
    spark_filter=2e-7,
    spark_batch=0.2,
    spark_row=2e-7,
    spark_copy=3.5e-7,
    spark_state=1.9e-5,
    spark_join=2e-6,
    duck_filter=5e-9,
    duck_scan=2e-8,
    duck_pane=2e-8,
    duck_join=4e-8,
    statement=1e-2,
    transfer_in=1.5e-8,
    transfer_out=3e-8,
)
"""Made up: what tests say does not depend on what was measured last."""
NEAR = """
SELECT a.window_start, a.window_end, a.k, count(*) AS n FROM readings [RANGE 10 SECONDS SLIDE 1 SECOND] AS a
WHERE a.p = 'load' AND a.v > 0.9 * (SELECT max(b.v) FROM readings [RANGE 10 SECONDS SLIDE 1 SECOND] AS b
  WHERE b.p = 'load' AND b.k = a.k) GROUP BY a.k
"""
TOP = """
SELECT s.window_start, s.window_end, max(s.total) AS top FROM (
  SELECT k, sum(v) AS total FROM readings [RANGE 10 SECONDS SLIDE 1 SECOND] WHERE p = 'load' GROUP BY k) AS s
"""
HEAD = """\
name: split
streams:
  readings:
    columns: {ts: timestamp, k: int, p: string, v: double}
    time: ts
    rate: 100
    distinct: {k: 10, p: 2}
    source: {kind: files, path: input, format: json}
"""


def write(root: Path, rest: str = "planner: {federation: auto}", **queries: str) -> Project:
    """A project of these queries: the SQL, and after `#` more keys of the query."""
    text = HEAD + rest + "\nqueries:\n"
    for name, said in (queries or {"near": NEAR, "top": f"{TOP}#engine: auto"}).items():
        sql, _, keys = said.partition("#")
        text += f"  {name}:\n    sql: |\n"
        text += "".join(f"      {line}\n" for line in sql.strip().splitlines())
        text += "".join(f"    {line}\n" for line in ("sink: json", keys) if line)
    (root / "input").mkdir(parents=True, exist_ok=True)
    (root / "headrace.yaml").write_text(text)
    return open_project(root)


def calibrated(project: Project, costs: FederationCosts = PRICES, site: str = "local") -> None:
    """As if these had been measured."""
    case = MeasuredCase(case="made up", measured=1.0, predicted=1.0)
    found = FederationCalibration(
        endpoint=project.sites[site].endpoint,
        machine="",
        date="2024-05-01 12:00",
        headrace="",
        seconds=1.0,
        cases=(),
        held_out=case,
        costs=costs.to_dict(),
    )
    save_federation(project, site, found)


@dataclass
class _Unit:
    job: FederatedJob
    folder: Path
    members: Mapping[str, JobContext]
    state: JobState = JobState.RUNNING
    rows: float = 0.0
    passed: float = 0.0

    def made(self) -> tuple[tuple[str, int, int], ...]:
        """Where the parts of the real job meet, rows that have passed the filter are counted."""
        plans = {member.query: list(lp.nodes(member.plan)) for member in self.job.members}
        return tuple(
            (query, number, int(self.passed))
            for query, names in counted(program_of(self.job)).items()
            for number in names
            if isinstance(plans[query][number], lp.Filter)
        )


class SplitEngine:
    """Implements runtime.executor.Executor for split jobs. `rate` gives rows by second of event time, and
    `share` how many of them pass the filter."""

    def __init__(
        self,
        death: Death,
        rate: Callable[[int], float] = lambda _: 100.0,
        end: int = 10**9,
        pace: int = 1,
        share: Callable[[int], float] = lambda _: 0.5,
    ) -> None:
        self._death, self._rate, self._end, self._pace, self._share = death, rate, end, pace, share
        self._units: dict[str, _Unit] = {}
        self._drain = False
        self.calls: list[tuple[str, str]] = []
        self.started: list[FederatedJob] = []

    def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
        raise AssertionError("no plain jobs here")

    def start_tree(
        self, tree: TreeJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        raise AssertionError("no trees here")

    def start_federated(
        self, job: FederatedJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        self._death.step(f"start {job.id}")
        self.calls.append(("start", job.id))
        self.started.append(job)
        assert set(members) == {member.query for member in job.members}
        known = _known(context.state)
        assert known["fingerprint"] in (None, job.fingerprint), "a checkpoint of another job"
        given = {m.query: m.until for m in job.members if m.until is not None}
        known = {**known, "fingerprint": job.fingerprint, "until": {**known["until"], **given}}
        _write(context.state, known)
        self._units[job.id] = _Unit(job, context.state, dict(members))
        self._drain = drain

    def start_channel(self, job: ChannelJob, context: JobContext, ports: Ports, *, drain: bool) -> None:
        raise AssertionError("nothing is spread here")

    def set_until(self, job_id: str, queries: Collection[str], end: int) -> None:
        self._death.step(f"bound {job_id}")
        unit = self._units[job_id]
        known = _known(unit.folder)
        if all(known["until"].get(query) == end for query in queries):
            return
        if known["position"] * MICROS > end:
            raise InternalError("a later window was given")
        _write(unit.folder, {**known, "until": {**known["until"], **dict.fromkeys(queries, end)}})

    def seen_until(self, job_id: str) -> int | None:
        return int(_known(self._units[job_id].folder)["position"]) * MICROS or None

    def stop(self, job_id: str) -> None:
        self._death.step(f"stop {job_id}")
        self.calls.append(("stop", job_id))
        unit = self._units[job_id]
        unit.state = JobState.STOPPED if unit.state is JobState.RUNNING else unit.state

    def status(self, job_id: str) -> JobState:
        return self._units[job_id].state

    def progress(self, job_id: str) -> Progress:
        unit = self._units.get(job_id)
        if unit is None:
            unit = [one for one in self._units.values() if job_id in one.members][-1]
        elif unit.state is JobState.RUNNING:
            self._death.step(f"batch of {job_id}")
            for _ in range(self._pace):
                self._second(unit)
        position = _known(unit.folder)["position"]
        watermark = position * MICROS if position else None
        made = unit.made() if job_id == unit.job.id else ()
        rows = int(unit.rows)
        return Progress(job_id, unit.state, batch=0, input_rows=rows, watermark=watermark, made=made)

    def _second(self, unit: _Unit) -> None:
        known = _known(unit.folder)
        now = known["position"] + 1
        bounds = [known["until"].get(member.query) for member in unit.job.members]
        if now > self._end or all(end is not None and end < now * MICROS for end in bounds):
            ended = all(end is not None for end in bounds) or self._drain
            unit.state = JobState.FINISHED if ended else unit.state
            return
        for member in unit.job.members:
            until = known["until"].get(member.query)
            after = -1 if member.after is None else member.after
            if after < now * MICROS and (until is None or now * MICROS <= until):
                results = unit.members[member.query].results
                results.mkdir(parents=True, exist_ok=True)
                (results / f"part-{unit.job.id}-{now:06d}.json").write_text("{}\n")
        unit.rows += self._rate(now)
        unit.passed += self._rate(now) * self._share(now)
        _write(unit.folder, {**known, "position": now})

    def close(self) -> None:
        if not self._death.dead:
            self.calls.append(("close", ""))


def _known(folder: Path) -> dict[str, Any]:
    file = folder / "engine.json"
    empty: dict[str, Any] = {"position": 0, "until": {}, "fingerprint": None}
    return json.loads(file.read_text()) if file.exists() else empty


def _write(folder: Path, known: Mapping[str, Any]) -> None:
    file = folder / "engine.json"
    file.with_suffix(".tmp").write_text(json.dumps(known))
    file.with_suffix(".tmp").rename(file)
