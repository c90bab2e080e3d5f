"""`python -m benchmarks.federation.spark_alone`: what a query on Spark alone costs as a split job, which can
be handed over when rates change, beside an ordinary job: CPU seconds of a drained run, in turn.

The planner is led to Spark alone by a price of statements that DuckDB cannot win with. Windows are short, so
that the input holds many of them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import describe
from headrace.cost.federation import DEFAULTS
from headrace.service.calibration_file import FederationCalibration, MeasuredCase, save_federation
from headrace.service.project import open_project

EXAMPLE = Path(__file__).parents[2] / "examples" / "smart-plugs-federated"
QUERIES = ("cq4", "cq5")
ROUNDS = 2
_DEAR = 1000.0
"""CPU seconds of a statement in DuckDB."""


def made(root: Path, query: str, engine: str) -> None:
    """The example with one query, 20,000 readings and windows of 60 and 20 s."""
    shutil.copytree(EXAMPLE, root, ignore=shutil.ignore_patterns(".headrace", "results"))
    file = root / "headrace.yaml"
    head, _, _ = file.read_text(encoding="utf-8").replace("rows: 14400", "rows: 20000").partition("queries:")
    asked = f"queries:\n  {query}: {{file: queries/{query}.sql, engine: {engine}}}\n"
    file.write_text(head + asked, encoding="utf-8")
    sql = root / "queries" / f"{query}.sql"
    text = sql.read_text(encoding="utf-8").replace("5 MINUTES", "60 SECONDS")
    sql.write_text(text.replace("1 MINUTE", "20 SECONDS"), encoding="utf-8")


def led_to_spark(root: Path) -> None:
    project = open_project(root)
    site = project.default_site
    prices = replace(DEFAULTS, statement=_DEAR).to_dict()
    case = MeasuredCase(case="none: a price for this benchmark", measured=1.0, predicted=1.0)
    endpoint = project.sites[site].endpoint
    found = FederationCalibration(
        endpoint=endpoint,
        machine="",
        date="",
        headrace="",
        seconds=0.0,
        cases=(),
        held_out=case,
        costs=prices,
    )
    save_federation(project, site, found)


def cpu_of(query: str, *, split: bool) -> float:
    """CPU seconds of a run; its job must be of the kind that was asked for."""
    folder = Path(tempfile.mkdtemp(prefix="headrace-spark-alone-"))
    try:
        root = folder / "project"
        made(root, query, "auto" if split else "spark")
        if split:
            led_to_spark(root)
        command = [sys.executable, "-m", "headrace.cli.main", "run", str(root), "--drain", "--json"]
        done = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        is_split = any(path.name.startswith("fed-") for path in (root / ".headrace" / "jobs").iterdir())
        if is_split != split:
            raise RuntimeError(f"{query} did not run as it should have")
        return float(sum(site["measured_cpu_seconds"] for site in done["costs"]))
    finally:
        shutil.rmtree(folder)


def main() -> None:
    print("\n".join(describe(datetime.now(UTC), os.environ).lines()))
    print("query  ordinary CPU-s  split CPU-s")
    for query in QUERIES:
        for _ in range(ROUNDS):
            ordinary, split = cpu_of(query, split=False), cpu_of(query, split=True)
            print(f"{query:5}  {ordinary:14.1f}  {split:11.1f}", flush=True)


if __name__ == "__main__":
    main()
