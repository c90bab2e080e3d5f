"""The real command on Spark: text sources, every sink, verification, a second run, a changed query."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.spark

PROJECT = """
name: formats
streams:
  trips:
    columns: {ts: timestamp, car: string, km: double, stops: int, paid: boolean}
    time: ts
    watermark: 10 seconds
    source: {kind: files, path: trips, format: csv, files_per_batch: 1}
  calls:
    columns: {at: timestamp, car: string, level: bigint}
    time: at
    watermark: 10 seconds
    source: {kind: files, path: calls, format: json}
tables:
  cars:
    columns: {car: string, fleet: string}
    rows: [[a, north], ["b c", south], [d, null]]
queries:
  per_car:
    sql: |
      SELECT window_start, window_end, car, sum(km) AS km, max(stops) AS stops
      FROM trips GROUP BY window(ts, '30 seconds', '10 seconds'), car
    sink: csv
  fleets:
    sql: |
      SELECT window.end AS at, fleet, count(*) AS n, stddev(km) AS spread
      FROM TABLE(HOP(TABLE trips, DESCRIPTOR(ts), INTERVAL '20' SECONDS, INTERVAL '1' MINUTE)) AS t
      LEFT JOIN cars ON t.car = cars.car
      GROUP BY window_start, window_end, fleet
    sink: json
  calls_on_trips:
    sql: |
      SELECT t.ts, c.at, t.car, c.level, t.km * 2 AS twice
      FROM trips [RANGE 20 SECONDS] AS t JOIN calls [RANGE 5 SECONDS] AS c ON t.car = c.car
  unpaid:
    sql: SELECT ts, car, km FROM trips WHERE NOT paid AND km > 1
    sink: {kind: parquet, path: out/unpaid trips}
"""
CSV = [
    "ts,car,km,stops,paid\n2024-05-01 12:00:01,a,1.5,2,true\n2024-05-01T12:00:09.250Z,b c,2.25,0,false\n",
    'ts,car,km,stops,paid\n2024-05-01 12:00:05,a,4,1,false\n2024-05-01 12:00:31,"d",,3,\n,a,9,9,true\n',
    "ts,car,km,stops,paid\n2024-05-01 14:01:02+02:00,b c,-3,1,false\n2024-05-01 12:00:58,a,7.5,,true\n",
]
JSON = [
    {"at": "2024-05-01T12:00:03Z", "car": "a", "level": 1},
    {"at": "2024-05-01 12:00:12.000001", "car": "b c", "level": 9007199254740993},
    {"at": "2024-05-01T12:01:00Z", "car": "a"},
    {"car": "a", "level": 3},
]


def headrace(*args: str) -> tuple[int, Any]:
    """Exit code and the JSON on standard output."""
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", *args, "--json"], capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "headrace.yaml").write_text(PROJECT)
    for folder in ("trips", "calls"):
        (tmp_path / folder).mkdir()
    for number, text in enumerate(CSV):
        path = tmp_path / "trips" / f"{number}.csv"
        path.write_text(text)
        # Spark takes files in the order of their times; in another order some of these rows would be late.
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    (tmp_path / "calls" / "all.json").write_text("\n".join(map(json.dumps, JSON)) + "\n")
    return tmp_path


def test_run_verify_run_again_change(project: Path) -> None:
    where = str(project)
    code, outcome = headrace("run", where, "--drain")
    assert code == 0, outcome
    given = {job["query"] if "query" in job else job["job"]: job["output_rows"] for job in outcome["jobs"]}
    assert set(given) == {"per_car", "fleets", "calls_on_trips", "unpaid"}
    assert all(rows > 0 for rows in given.values())
    for query in given:
        code, verdict = headrace("results", query, where, "--verify")
        assert code == 0, verdict
    assert {p.suffix for p in (project / "out" / "unpaid trips").glob("part-*")} == {".parquet"}

    code, again = headrace("run", where, "--drain")
    assert code == 0
    assert {job["output_rows"] for job in again["jobs"]} == set(given.values())

    text = (project / "headrace.yaml").read_text()
    (project / "headrace.yaml").write_text(
        text.replace("km > 1", "km > 2").replace("'30 seconds'", "'40 seconds'")
    )
    code, refused = headrace("run", where, "--drain", "--only", "per_car")
    assert code == 2
    assert "changed since its last run" in json.dumps(refused)
    code, fresh = headrace("run", where, "--drain", "--fresh", "--only", "per_car")
    assert code == 0, fresh
    assert headrace("results", "per_car", where, "--verify")[0] == 0
