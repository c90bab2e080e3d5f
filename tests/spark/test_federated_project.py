"""Projects with split queries on a real Spark: the command on the example, and a split that is chosen again
while rows flow."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace.catalog.model import FileSource, Format, Project
from headrace.cost.federation import FederationCosts
from headrace.runtime.executor import ENDED
from headrace.runtime.spark.executor import SparkExecutor
from headrace.service.federated_records import job_of
from headrace.service.layout import results_folder, state_file
from headrace.service.planning import plan_project
from headrace.service.rechoosing import Rules
from headrace.service.results import verify_results
from headrace.service.run import Hooks, Options, Outcome, Runner, Snapshot
from headrace.state.store import Store
from tests.deep.service.test_federating_joins import DEAR_JOINS, WORSE
from tests.spark.harness import write_batches
from tests.unit.service.federated_sample import PRICES, TOP, calibrated, write

pytestmark = pytest.mark.spark

EXAMPLE = Path(__file__).parents[2] / "examples" / "smart-plugs-federated"


def headrace(*args: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", *args, "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    return json.loads(done.stdout)


def test_the_example_with_a_tiny_input(tmp_path: Path) -> None:
    """Every query as the planner splits it, all in one job, against the reference."""
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".headrace", "results"))
    text = (folder / "headrace.yaml").read_text()
    text = text.replace("rows: 14400", "rows: 1440").replace("files: 20", "files: 3")
    (folder / "headrace.yaml").write_text(text)
    for file in (folder / "queries").glob("*.sql"):
        sql = file.read_text().replace("5 MINUTES", "20 SECONDS").replace("3 MINUTES", "12 SECONDS")
        file.write_text(sql.replace("1 MINUTE", "4 SECONDS"))
    ran = headrace("run", str(folder), "--drain")
    assert [job["state"] for job in ran["jobs"]] == ["finished"] * 6
    assert len({job["tree"] for job in ran["jobs"]}) == 1 and ran["jobs"][0]["tree"].startswith("fed-")
    for job in ran["jobs"]:
        verdict = headrace("results", job["job"], str(folder), "--verify")
        assert verdict["equal"] and verdict["published"] > 0, verdict


class Borrowed:
    """The session of all tests: closed by nobody, its jobs by everybody."""

    def __init__(self, executor: SparkExecutor) -> None:
        self._executor, self._own = executor, set[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    def start_federated(self, job: Any, *args: Any, **how: Any) -> None:
        self._executor.start_federated(job, *args, **how)
        self._own.add(job.id)

    def close(self) -> None:
        for name in self._own:
            if self._executor.status(name) not in ENDED:
                self._executor.stop(name)


FILES, LATER, LOW, SECONDS, START = 20, 8, 6, 3, 1_700_000_000


def readings(root: Path, first: int, count_of_files: int) -> None:
    """Few rows, then many: `LOW` files of 10 rows a second, the others of 1,000."""
    rng, batches = np.random.default_rng([7, first]), []
    for number in range(first, first + count_of_files):
        count = SECONDS * (10 if number < LOW else 1_000)
        begin = (START + number * SECONDS) * 1_000_000
        times = np.sort(rng.integers(begin, begin + SECONDS * 1_000_000, count))
        columns = {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": pa.array(rng.integers(0, 10, count), pa.int32()),
            "p": pa.array(rng.choice(["load", "work"], count)),
            # Whole numbers: sums are the same in every order.
            "v": pa.array(rng.integers(0, 100, count).astype(np.float64)),
        }
        batches.append(pa.table(columns))
    write_batches(root / "input", batches, first)


def with_parquet(project: Project) -> Project:
    source = FileSource(path="input", format=Format.PARQUET, files_per_batch=1)
    stream = project.streams["readings"].model_copy(update={"source": source})
    return project.model_copy(update={"streams": {"readings": stream}})


def run(project: Project, executor: SparkExecutor, options: Options, until: Any) -> tuple[Outcome, list[str]]:
    notes: list[str] = []
    with Store(state_file(project)) as store:
        deadline = time.monotonic() + 600

        def watch(snapshot: Snapshot) -> None:
            if until(notes, snapshot) or time.monotonic() > deadline:
                runner.request_stop()

        rules = Rules(every=0.2, looks=2, span=5.0, least=0.01)
        hooks = Hooks(watch, notes.append, rules=rules)
        runner = Runner(project, store, lambda: datetime.now(UTC), time.sleep, options, hooks)
        runner.prepare()
        return runner.run(Borrowed(executor)), notes


# Moving rows is dear here, and a micro-batch of Spark's own windows less so: few rows go to DuckDB.
BETWEEN_SPLITS = replace(PRICES, spark_batch=0.02, spark_state=1e-7, spark_copy=1e-8, transfer_in=5e-6)
# A statement is dear, and so is a row in each of its windows on Spark: few rows stay there.
FROM_SPARK = replace(PRICES, spark_batch=1e-4, spark_state=1e-7, spark_copy=1e-4, statement=0.1)


@pytest.mark.parametrize(
    ("costs", "begins_on_spark"), [(BETWEEN_SPLITS, False), (FROM_SPARK, True)], ids=["split", "on spark"]
)
def test_a_jump_of_the_rate_moves_a_query_to_another_split(
    tmp_path: Path, executor: SparkExecutor, costs: FederationCosts, begins_on_spark: bool
) -> None:
    project = with_parquet(write(tmp_path, top=f"{TOP.replace('10 SECONDS', '6 SECONDS')}#engine: auto"))
    calibrated(project, costs)
    (first,) = plan_project(project).federated
    assert first.on_spark is begins_on_spark
    readings(tmp_path, 0, FILES)
    here = Options(master="local[2]")
    _, notes = run(project, executor, here, lambda notes, _: any("are given by" in n for n in notes))
    assert any("another split is better" in note for note in notes), notes
    with Store(state_file(project)) as store:
        old, new = map(job_of, store.deployment().federated)
    assert (old.id, old.on_spark, new.on_spark) == (first.id, begins_on_spark, False)
    # However far the first job had come when it handed over, these windows are all beyond that instant.
    readings(tmp_path, FILES, LATER)
    outcome, _ = run(project, executor, replace(here, drain=True), lambda *_: False)
    assert outcome.exit_code == 0, outcome.failures
    verdict = verify_results(project, "top")
    assert verdict.equal and verdict.published > 50, verdict
    files = results_folder(project, project.queries["top"]).glob("part-*")
    assert len({path.stem.rpartition("-")[2] for path in files}) == 2, "both jobs have given windows"


@pytest.mark.parametrize(
    ("costs", "on_spark"), [(DEAR_JOINS, False), (replace(DEAR_JOINS, statement=1000.0), True)]
)
def test_joins_in_another_order(
    tmp_path: Path, executor: SparkExecutor, costs: FederationCosts, on_spark: bool
) -> None:
    """The results are read again by the query as it is written."""
    # A threshold that many results pass.
    sql = WORSE.replace("0.5 * c.x", "0.01 * c.x")
    project = with_parquet(write(tmp_path, q=f"{sql}#engine: auto"))
    calibrated(project, costs)
    (job,) = plan_project(project).federated
    assert job.members[0].written is not None and job.on_spark is on_spark
    readings(tmp_path, 0, 3)
    outcome, _ = run(project, executor, Options(master="local[2]", drain=True), lambda *_: False)
    assert outcome.exit_code == 0, outcome.failures
    verdict = verify_results(project, "q")
    assert verdict.equal and verdict.published > 20, verdict
