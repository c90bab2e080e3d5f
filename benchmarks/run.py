"""`python -m benchmarks.run`: three queries on three engines, in one run, in one table.

    data -> warm-up of every query -> rounds: each query on each engine, the order turned every round
         -> answers checked after every run -> medians, ratios

Exit code 1: an answer was wrong. 2: the run could not be made.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from benchmarks.engines import Bench, open_executor
from benchmarks.machine import Machine, describe
from benchmarks.report import Cell, Engine, Sample, as_data, table
from benchmarks.workload import SQL, project
from headrace.errors import HeadraceError

ROWS = 300_000
QUICK_ROWS = 20_000
WARM_UP_ROWS = 5_000
ROUNDS = 3
RESULTS = Path(__file__).parent / "results"

Say = Callable[[str], None]


def order(number: int) -> tuple[Engine, ...]:
    """Who runs first changes every round: the JVM gets warmer all the time."""
    engines = (Engine.PLAIN, Engine.HEADRACE, Engine.DUCKDB)
    return engines if number % 2 == 0 else engines[::-1]


def measure(root: Path, rows: int, say: Say) -> tuple[Cell, ...]:
    """Every query on every engine, `ROUNDS` times."""
    say(f"Writing {rows:,} rows.")
    small, full = project(root / "warm-up", min(rows, WARM_UP_ROWS)), project(root / "data", rows)
    executor = open_executor(full, os.environ)
    try:
        # Headrace comes first here: it opens the session that plain Spark then uses.
        warm = Bench(small, executor)
        for query in SQL:
            say(f"Warming up: {query}.")
            for engine in (Engine.HEADRACE, Engine.PLAIN, Engine.DUCKDB):
                warm.measure(query, engine)
        return _rounds(Bench(full, executor), say)
    finally:
        executor.close()


def _rounds(bench: Bench, say: Say) -> tuple[Cell, ...]:
    samples: dict[tuple[str, Engine], list[Sample]] = {(q, e): [] for q in SQL for e in Engine}
    for number in range(ROUNDS):
        for query in SQL:
            for engine in order(number):
                sample = bench.measure(query, engine)
                samples[query, engine].append(sample)
                say(f"Round {number + 1} of {ROUNDS}: {query}, {engine}: {sample.wall:.2f} s.")
    return tuple(
        Cell(q, e, bench.input_rows(q), bench.reference(q).num_rows, tuple(taken))
        for (q, e), taken in samples.items()
    )


def destination(text: str) -> Path:
    """Where the figures go: a bare name means a file in benchmarks/results."""
    path = Path(text)
    if path.suffix or path.parent != Path():
        return path
    return RESULTS / f"{path.name}.json"


def show(cells: tuple[Cell, ...], machine: Machine, seconds: float, out: Console) -> None:
    for line in machine.lines():
        out.print(line)
    out.print()
    out.print(table(cells))
    out.print(f"\nMedians of {ROUNDS} rounds; the whole run took {seconds:.0f} s.")
    for cell in cells:
        for text in cell.problems:
            out.print(f"\nWRONG: {cell.query}, {cell.engine}: {text}")


def write(path: Path, cells: tuple[Cell, ...], machine: Machine, rows: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {"rows": rows, "rounds": ROUNDS, "machine": asdict(machine), "cells": as_data(cells)}
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run", description="Headrace beside plain Spark."
    )
    parser.add_argument("--rows", type=int, help=f"rows of the larger stream (by default {ROWS:,})")
    parser.add_argument("--quick", action="store_true", help=f"a short run over {QUICK_ROWS:,} rows")
    parser.add_argument(
        "--json", metavar="FILE", help="also write the figures; NAME: benchmarks/results/NAME.json"
    )
    arguments = parser.parse_args(given)
    if arguments.rows is not None and arguments.rows < WARM_UP_ROWS:
        parser.error(f"--rows must be at least {WARM_UP_ROWS:,}")
    return arguments


def main(given: Sequence[str] | None = None) -> int:
    arguments = _arguments(given)
    rows = arguments.rows or (QUICK_ROWS if arguments.quick else ROWS)
    out, err = _console(sys.stdout.isatty()), Console(stderr=True, highlight=False, markup=False)
    machine, began = describe(datetime.now(UTC), os.environ), time.perf_counter()

    def say(text: str) -> None:
        err.print(f"{time.perf_counter() - began:4.0f} s  {text}")

    try:
        with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
            cells = measure(Path(folder), rows, say)
    except HeadraceError as error:
        err.print(error.render())
        return 2
    show(cells, machine, time.perf_counter() - began, out)
    if arguments.json:
        write(destination(arguments.json), cells, machine, rows)
        err.print(f"Wrote {destination(arguments.json)}")
    return int(any(cell.problems for cell in cells))


def _console(terminal: bool) -> Console:
    """The table is not cut where nobody looks at a terminal."""
    return Console(highlight=False, markup=False, width=None if terminal else 180)


if __name__ == "__main__":
    sys.exit(main())
