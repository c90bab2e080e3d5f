"""`python -m benchmarks.federation`: the highest throughput of splits of CQ1-CQ6 on this machine.

    python -m benchmarks.federation --queries cq1,cq2 --splits chosen,spark,duckdb --rates 1000,10000,40000

Measures as `headrace experiment federation` does (headrace/service/throughput*.py) and prints, for every
rate, which splits keep up, what they take, which one the planner chooses, and how far that is from the best.
Exit code 1: an answer was wrong, or a choice is more than 5 % below the best. `--again FILE` prices the
choices anew, with `--costs`, over runs that were made before: to try other prices without running anything.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.federation.again import priced_again
from benchmarks.machine import describe
from headrace.errors import HeadraceError
from headrace.experiments.federation.bars import WITHIN
from headrace.experiments.federation.board import Board
from headrace.experiments.federation.report import text_tables
from headrace.experiments.federation.results import Results, read_results
from headrace.experiments.federation.runs import run_all
from headrace.experiments.federation.tables import Tables, make_tables
from headrace.experiments.shown import TextTable
from headrace.service.experiment_federation import setting_of

SHOWN = ("Figure 5", "Highest", "Every run")


def table_lines(table: TextTable) -> list[str]:
    widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    lines = [table.title]
    for cells in (table.columns, *table.rows):
        padded = [
            cell.ljust(width) if number < table.left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def lost(tables: Tables) -> list[str]:
    """Where a choice is more than a little below the best, and where a cheaper split keeps up as well."""
    lines = [
        f"{one.query} at {one.rate:,} rows/s: {one.split} gives {one.throughput:,.0f}, {one.best} "
        f"{one.best_throughput:,.0f}: {one.short:.1f} % short"
        for one in tables.at_rates
        if one.short > WITHIN
    ]
    return lines + [
        f"{one.query} at {one.rate:,} rows/s: {one.split} takes {one.dearer:.0f} % more CPU than {one.best}"
        for one in tables.at_rates
        if one.dearer is not None and one.dearer > WITHIN
    ]


def is_good(tables: Tables) -> bool:
    wrong = any(point.problem.startswith("wrong") for point in tables.points)
    return not wrong and all(one.short <= WITHIN for one in tables.at_rates)


def made_by(said: argparse.Namespace, seconds: float) -> dict[str, str | float]:
    machine = describe(datetime.now(UTC), os.environ)
    return {
        "command": " ".join(["python -m benchmarks.federation", *sys.argv[1:]]),
        "date": machine.date,
        "machine": machine.lines()[1],
        "seconds": round(seconds, 1),
        "clock": said.clock,
    }


def results_of(said: argparse.Namespace) -> Results:
    if said.again:
        return priced_again(read_results(said.again.read_text(encoding="utf-8"), str(said.again)), said.costs)
    setting = setting_of(
        quick=said.quick,
        rates=said.rates,
        queries=said.queries,
        splits=said.splits,
        costs=said.costs,
        limit=said.limit,
    )
    began = time.perf_counter()
    said.out.mkdir(parents=True, exist_ok=True)

    def say(done: int, total: int) -> None:
        print(f"{time.perf_counter() - began:6.0f} s  {done} of {total}", file=sys.stderr, flush=True)

    rows = run_all(setting, said.out, time.process_time, say)
    results = Results(rows, made_by(said, time.perf_counter() - began))
    (said.out / "results.json").write_text(results.to_json(), encoding="utf-8")
    return results


def parsed(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.federation", description=__doc__.split("\n")[0]
    )
    add = parser.add_argument
    add("--queries", help="cq1 to cq6, with commas between (all)")
    add("--splits", help="chosen, spark, duckdb, select, root, upper, lower, all")
    add("--rates", help="rows a second, with commas between")
    add("--costs", help="default, calibrate, or a calibration.json (calibrate; with --quick: default)")
    add("--limit", type=float, help="seconds for one split")
    add("--quick", action="store_true", help="3 rates, 3 splits, 3 batches")
    add("--clock", choices=("wall", "cpu"), default="wall", help="cpu: where the machine has other work")
    add("--out", type=Path, default=Path(".bench/federation"), help="default %(default)s")
    add("--again", type=Path, metavar="FILE", help="choose anew over the runs of a results.json")
    add("--json", type=Path, help="write the tables there, too")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    said = parsed(given)
    # As an exception, so that the engine that runs is ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        results = results_of(said)
    except HeadraceError as error:
        print(error.render(), file=sys.stderr)
        return 2
    tables = make_tables(Board(results))
    for table in text_tables(tables, (), ()):
        if table.title.startswith(SHOWN):
            print("\n".join(table_lines(table)) + "\n")
    print("\n".join(lost(tables)) or "every choice is the best measured, or within 5 % of it")
    if said.json:
        said.json.write_text(json.dumps(asdict(tables), indent=1) + "\n", encoding="utf-8")
    return 0 if is_good(tables) else 1


if __name__ == "__main__":
    sys.exit(main())
