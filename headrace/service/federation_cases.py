"""The runs that tell what operators cost on Spark and on DuckDB: queries over made-up rows, on given engines.

Most cases have much of one kind of work. How much of each there is, is counted by the planner's own model at
the case's rates (cost/federation.py): a price is then right for what the model counts, which is all that a
choice depends on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headrace.catalog.model import (
    FileSource,
    Format,
    PlannerChoices,
    Project,
    Query,
    Site,
    Stream,
)
from headrace.cost.federation import DEFAULTS, FederationCosts
from headrace.plan.federated import Engine, FederatedJob, FederatedMember, operators
from headrace.plan.placed import Job
from headrace.plan.types import DataType
from headrace.planners.federation.recount import Recount
from headrace.planners.federation.sizes import sizes_of
from headrace.service.binding import plan_query
from headrace.service.federating_problem import problem_of

STREAM = "rows"
_START, _OLD, _MICROS = 1_700_000_000, 1_600_000_000, 1_000_000
_OVER = "FROM rows [RANGE {range} SECONDS SLIDE {slide} SECONDS]"
_HALF = _OVER.replace("{range}", "{half}")
_ONE = f"SELECT a.window_start, a.window_end, a.k, avg(a.v) AS m {_OVER} AS a WHERE a.p = 'x' GROUP BY a.k"
_BOTH = f"""
SELECT l.window_start, l.window_end, l.k, l.m AS m1, s.m AS m2
FROM (SELECT k, avg(v) AS m {_OVER} WHERE p = 'x' GROUP BY k) AS l
JOIN (SELECT k, avg(v) AS m {_HALF} WHERE p = 'x' GROUP BY k) AS s ON l.k = s.k
"""
_OWN = f"""
SELECT a.window_start, a.window_end, a.k, count(*) AS n {_OVER} AS a
WHERE a.p = 'x' AND a.v > 0.9 * (SELECT max(b.v) {_OVER} AS b WHERE b.p = 'x' AND b.k = a.k) GROUP BY a.k
"""
FORMS = {"one": _ONE, "both": _BOTH, "own": _OWN}
"""One aggregate; two of different ranges joined; rows compared with an aggregate of their own window."""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    form: str
    engines: str
    """A letter for each operator: s, d. `plain`: all on Spark, as an ordinary job."""
    rows: int
    seconds: int
    keys: int
    batches: int
    range: int
    slide: int

    def scaled(self, by: float) -> Case:
        return replace(self, rows=int(self.rows * by))


CASES = (
    Case("spark: few batches", "one", "plain", 1_000, 60, 10, 2, 10, 10),
    Case("spark: batches", "one", "plain", 4_000, 120, 10, 8, 10, 10),
    Case("spark: rows", "one", "plain", 3_000_000, 120, 10, 2, 10, 10),
    Case("spark: copies", "one", "plain", 200_000, 120, 10, 2, 60, 1),
    Case("spark: state", "one", "plain", 60_000, 60, 600, 2, 20, 1),
    Case("spark: two joined", "both", "plain", 60_000, 60, 100, 2, 20, 2),
    Case("spark: own window", "own", "plain", 200_000, 60, 10, 2, 20, 1),
    Case("duckdb: few batches", "one", "sd", 1_000, 60, 10, 2, 10, 10),
    Case("duckdb: batches", "one", "sd", 4_000, 160, 10, 12, 10, 10),
    Case("no duckdb: batches", "one", "ss", 4_000, 160, 10, 8, 10, 10),
    Case("duckdb: rows", "one", "sd", 4_000_000, 120, 10, 3, 10, 10),
    Case("duckdb: filter", "one", "dd", 4_000_000, 120, 10, 20, 110, 5),
    Case("duckdb: scan", "one", "sd", 5_000_000, 120, 10, 24, 110, 5),
    Case("duckdb: panes", "one", "sd", 1_000_000, 400, 2_000, 4, 200, 1),
    Case("duckdb: results", "one", "sd", 1_000_000, 100, 5_000, 3, 1, 1),
    Case("duckdb: two joined", "both", "sdsdd", 600_000, 120, 4_000, 3, 40, 1),
    Case("duckdb: own window", "own", "ssddd", 2_000_000, 120, 100, 3, 100, 1),
)
HELD_OUT = Case("not in the fit", "own", "ssddd", 500_000, 120, 50, 5, 100, 1)
QUICK = ("spark: few batches", "spark: copies", "duckdb: batches", "duckdb: rows", "duckdb: own window")
"""One for each kind in KINDS, and one for the start of a job."""
WARM_UPS = (
    Case("warm-up", "own", "ssddd", 20_000, 60, 10, 3, 20, 1),
    Case("warm-up", "one", "plain", 20_000, 60, 10, 2, 20, 2),
)
KINDS = (
    ("job",),
    ("batch", "spark_batch"),
    ("spark_filter", "spark_row", "spark_copy", "spark_state", "spark_join"),
    ("duck_filter", "duck_scan", "duck_pane", "duck_join", "statement"),
    ("transfer_in", "transfer_out"),
)
"""Prices that move together from machine to machine."""
FIXED = {"job": 1.0, "batch": 0.2}
"""What starting a job and a micro-batch cost, about: part of every run, and of no choice between engines."""


def write_rows(case: Case, folder: Path) -> None:
    """One file a batch, in order of time; half of the rows pass the filter."""
    rng = np.random.default_rng(1)
    times = np.sort(rng.integers(0, case.seconds * _MICROS, case.rows)) + _START * _MICROS
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array(rng.integers(0, case.keys, case.rows), pa.int32()),
            "p": pa.array(np.where(rng.integers(0, 2, case.rows) == 1, "x", "y")),
            "v": pa.array(rng.normal(50, 10, case.rows)),
        }
    )
    folder.mkdir(parents=True)
    each = -(-table.num_rows // case.batches)
    for number in range(case.batches):
        path = folder / f"{number:04d}.parquet"
        pq.write_table(table.slice(number * each, each), path)
        os.utime(path, (_OLD + 10 * number, _OLD + 10 * number))


def project_of(case: Case, rows: Path, site: Site, batches: int | None = None) -> Project:
    """With the rates of the case; its trigger is the event time of one batch, as the model wants it."""
    columns = {"ts": DataType.TIMESTAMP, "k": DataType.INT, "p": DataType.STRING, "v": DataType.DOUBLE}
    stream = Stream(
        name=STREAM,
        columns=columns,
        time="ts",
        rate=case.rows / case.seconds,
        distinct={"k": case.keys, "p": 2},
        source=FileSource(path=str(rows), format=Format.PARQUET, files_per_batch=1),
    )
    half = case.range // 2 // case.slide * case.slide or case.slide
    sql = FORMS[case.form].format(range=case.range, slide=case.slide, half=half)
    trigger = case.seconds * _MICROS // (batches or case.batches)
    return Project(
        name="calibration",
        root=rows,
        streams={STREAM: stream},
        tables={},
        sites={site.name: site},
        links=(),
        queries={"q": Query(name="q", sql=sql, site=site.name)},
        planner=PlannerChoices(trigger=trigger),
    )


def job_of(project: Project) -> Job:
    return plan_query(project, project.queries["q"])


def split_of(case: Case, project: Project, name: str) -> FederatedJob:
    job = job_of(project)
    return FederatedJob(name, job.site, (FederatedMember("q", job.plan, engines_of(case, job)),))


def engines_of(case: Case, job: Job) -> tuple[Engine, ...]:
    if case.engines == "plain":
        return (Engine.SPARK,) * len(operators(job.plan))
    return tuple(Engine.SPARK if letter == "s" else Engine.DUCKDB for letter in case.engines)


def work_of(case: Case, rows: Path, site: Site, batches: int) -> Mapping[str, float]:
    """How much of each kind of work the case has: what it would cost if a unit of that kind cost one second
    and all others nothing."""
    project = project_of(case, rows, site, batches)
    job = job_of(project)
    work: dict[str, float] = {"job": 1.0, "batch": float(batches)}
    nothing = dict.fromkeys(DEFAULTS.to_dict(), 0.0)
    for kind in nothing:
        costs = FederationCosts.from_dict({**nothing, kind: 1.0})
        plan = problem_of(project, site.name, job.plan, costs)
        split = Recount(plan, sizes_of(plan)).split(engines_of(case, job))
        if split.utilisation:
            work[kind] = split.utilisation * case.seconds
    return work
