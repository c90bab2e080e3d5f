"""Two ways to the real entry point: in this process (fast), and as a process of its own (exact)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.cli.main import main


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """All of standard output, which must be JSON and nothing else."""
        return json.loads(self.out)


def call(capsys: pytest.CaptureFixture[str], *args: str | Path) -> Done:
    """`headrace ARGS` in this process."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([str(a) for a in args])
    shown = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return Done(ended.value.code, shown.out, shown.err)


def spawn(*args: str | Path, cwd: Path | None = None, **environ: str) -> Done:
    """`headrace ARGS` as a process."""
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", *map(str, args)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
        timeout=120,
        check=False,
        env={**os.environ, **environ},
    )
    return Done(done.returncode, done.stdout, done.stderr)


PROJECT = """\
name: small
streams:
  s:
    columns: {ts: timestamp, k: int, v: double}
    time: ts
    watermark: 5 seconds
    source: {kind: files, path: input, format: json}
  endless:
    source: {kind: rate, rows_per_second: 5}
queries:
  counts:
    sql: |
      SELECT window_start, window_end, k, count(*) AS n, sum(v) AS total
      FROM s [RANGE 10 SECONDS SLIDE 5 SECONDS]
      GROUP BY k
    sink: json
  high:
    sql: SELECT ts, k, v FROM s WHERE v > 2
  shown:
    sql: SELECT ts, v FROM s
    sink: console
  beats:
    sql: SELECT timestamp, value FROM endless
"""

ROWS = [
    ("2024-05-01T12:00:01Z", 1, 1.0),
    ("2024-05-01T12:00:06Z", 1, 2.5),
    ("2024-05-01T12:00:06Z", 2, 4.0),
]

COUNTS = [
    ("2024-05-01T11:59:55", "2024-05-01T12:00:05", 1, 1, 1.0),
    ("2024-05-01T12:00:00", "2024-05-01T12:00:10", 1, 2, 3.5),
    ("2024-05-01T12:00:00", "2024-05-01T12:00:10", 2, 1, 4.0),
    ("2024-05-01T12:00:05", "2024-05-01T12:00:15", 1, 1, 2.5),
    ("2024-05-01T12:00:05", "2024-05-01T12:00:15", 2, 1, 4.0),
]
"""The answer of `counts` over ROWS, worked out by hand."""


def make_project(folder: Path, text: str = PROJECT) -> Path:
    (folder / "input").mkdir(parents=True)
    (folder / "headrace.yaml").write_text(text)
    lines = [json.dumps({"ts": ts, "k": k, "v": v}) for ts, k, v in ROWS]
    (folder / "input" / "a.json").write_text("\n".join(lines) + "\n")
    return folder


def publish_counts(folder: Path, rows: list[tuple[str, str, int, int, float]]) -> None:
    """What a finished run of `counts` leaves behind."""
    results = folder / "results" / "counts"
    results.mkdir(parents=True)
    names = ("window_start", "window_end", "k", "n", "total")
    lines = [json.dumps(dict(zip(names, row, strict=True)) | {"window_start": row[0] + "Z"}) for row in rows]
    (results / "part-000000.json").write_text("".join(line + "\n" for line in lines))
