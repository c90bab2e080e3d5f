"""The project that `headrace init` writes: small, commented, complete, needing nothing from outside.

Each file stands here whole, not put together from fragments, so that what a newcomer reads is what a
maintainer edits. headrace.yaml is put in place last: a folder has one only when the rest
of the project is there.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from headrace.catalog.load import PROJECT_FILE
from headrace.errors import UserError

_PROJECT = """\
# A Headrace project: streams, tables and the continuous queries over them.
# `headrace check` checks this file, `headrace plan` shows what would run,
# `headrace run --drain` runs it to the end of its input, `headrace results <query>` shows the answers.
name: {name}

streams:
  # Rows made by a seeded generator, the same on every machine: four readings a second, each from one of four
  # sensors, about ten minutes in all.
  readings:
    columns:
      ts: timestamp
      sensor: string
      temperature: double
      humidity: double
    time: ts # the event time: windows and joins go by it, not by the time of arrival
    watermark: 10 seconds # how late a row may come; later ones are dropped, and counted
    rate: 4 # rows per second of event time
    source:
      kind: generator
      seed: 7
      start: 2024-05-01 12:00:00
      rows: 2400
      files: 8
      disorder: 5 seconds # rows arrive out of order by up to this much
      columns: # how each column is drawn; the event time advances by 1/rate
        sensor: {{kind: choice, values: [attic, cellar, kitchen, garden]}}
        temperature: {{kind: normal, mean: 20, stddev: 4}}
        humidity: {{kind: uniform, low: 30, high: 90, null_share: 0.02}}
  # Your own data: a folder where files appear.
  #   source: {{kind: files, path: data/readings, format: parquet}}

tables:
  # A static table, written here. A table can also be read from files, like a stream.
  sensors:
    columns: {{sensor: string, floor: int, warm_above: double}}
    rows:
      - [attic, 2, 26.0]
      - [cellar, -1, 18.5]
      - [kitchen, 0, 25.0]

queries:
  # Windows can be written in three ways; they mean the same. First, Spark's own:
  temperature_1m:
    sql: |
      SELECT window.start, window.end, sensor, avg(temperature) AS mean, max(temperature) AS highest
      FROM readings
      GROUP BY window(ts, '1 minute', '10 seconds'), sensor

  # Second, CQL: the range and slide stand behind the stream. The answers go to JSON files.
  humidity_2m:
    sql: |
      SELECT window_start, window_end, sensor, count(humidity) AS known, avg(humidity) AS mean
      FROM readings [RANGE 2 MINUTES SLIDE 30 SECONDS]
      GROUP BY sensor
    sink: json

  # Third, the SQL standard's table functions; this one is in a file of its own.
  spread_5m:
    file: queries/spread_5m.sql

  # A join with the static table: readings above what is warm for that room.
  too_warm:
    sql: |
      SELECT r.ts, r.sensor, s.floor, r.temperature
      FROM readings AS r
      JOIN sensors AS s ON r.sensor = s.sensor
      WHERE r.temperature > s.warm_above
    sink: {{kind: csv, path: results/too_warm}}
"""
_SPREAD = """\
-- How far the temperatures of each room spread, every five minutes.
SELECT window_start, window_end, sensor, stddev(temperature) AS spread, count(*) AS readings
FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '5' MINUTE))
GROUP BY window_start, window_end, sensor
"""
_IGNORE = """\
# What Headrace makes while it runs: checkpoints and state, then the results.
.headrace/
results/
"""


def write_starter(folder: Path, name: str) -> list[Path]:
    """Write the starter project; the files written, headrace.yaml last. Raises UserError, nothing written,
    where one of them is there already."""
    if not name.strip():
        raise UserError("a project needs a name", hint="For example: headrace init my-project")
    texts = {
        ".gitignore": _IGNORE,
        "queries/spread_5m.sql": _SPREAD,
        PROJECT_FILE: _PROJECT.format(name=_as_yaml(name.strip())),
    }
    # An own .gitignore is the user's, and says nothing against a project beside it.
    if (folder / ".gitignore").exists():
        del texts[".gitignore"]
    _refuse_existing(folder, texts)
    try:
        return [_write_whole(folder / path, text) for path, text in texts.items()]
    except OSError as error:
        raise UserError(f"{folder} cannot be written to: {error.strerror}") from None


def _refuse_existing(folder: Path, texts: dict[str, str]) -> None:
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file, not a folder")
    for path in reversed(texts):
        if (folder / path).exists():
            hint = "Choose another folder; nothing was written."
            raise UserError(f"{folder / path} is there already", hint=hint)


def _write_whole(path: Path, text: str) -> Path:
    """Write a file so that it is either not there or complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def _as_yaml(name: str) -> str:
    """The name as YAML: bare where it is a plain word, else quoted (a JSON text is a YAML text)."""
    plain = name.replace("-", "").replace("_", "").isalnum() and name.isascii() and name[0].isalpha()
    words = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
    return name if plain and name.lower() not in words else json.dumps(name, ensure_ascii=False)
