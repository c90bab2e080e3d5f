"""Headrace as its users run it: a project file and `headrace run --drain`.

The planner decides how many trees there are. The project file is JSON, which is YAML too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

from benchmarks.windows.headrace_trees import sql
from benchmarks.windows.spec import NONE, Report, RunSpec, given
from benchmarks.windows.workloads import KEY, TIME, VALUES, WATERMARK_SECONDS
from headrace.errors import NotSupported


def project_file(spec: RunSpec) -> dict[str, object]:
    columns = {TIME: "timestamp", KEY: "int"} | dict.fromkeys(VALUES, "double")
    source = {
        "kind": "files",
        "path": spec.parquet,
        "format": "parquet",
        "files_per_batch": spec.files_per_batch,
    }
    stream = {"columns": columns, "time": TIME, "watermark": f"{WATERMARK_SECONDS} seconds", "source": source}
    return {
        "name": "benchmark",
        "streams": {"s": stream},
        "sites": {"local": {"endpoint": f"local[{spec.cores}]", "memory": spec.memory}},
        "planner": {"shuffle_partitions": spec.cores},
        "queries": {query.name: {"sql": sql(query)} for query in spec.queries},
    }


def main() -> None:
    began, spec, report = time.perf_counter(), given(), Report()
    if spec.sink == NONE:
        raise NotSupported("a project file cannot say yet that rows are thrown away")
    (spec.folder / "headrace.yaml").write_text(json.dumps(project_file(spec), indent=1), encoding="utf-8")
    run = ["-m", "headrace.cli.main", "run", str(spec.folder), "--drain", "--json"]
    with (spec.folder / "run.json").open("w") as out:
        subprocess.run([sys.executable, *run], stdout=out, check=True)
    report.seconds = time.perf_counter() - began
    found = sorted((spec.folder / ".headrace" / "jobs").glob("*/checkpoint"))
    report.checkpoints = [str(path) for path in found]
    report.notes = [f"{len(found)} jobs"]
    report.write(spec.folder)


if __name__ == "__main__":
    main()
