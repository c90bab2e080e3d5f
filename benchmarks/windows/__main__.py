"""`python -m benchmarks.windows`: sets of window queries on five engines, one run, one table.

Exit code 1: an answer was wrong. 2: the run could not be made.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.machine import describe
from benchmarks.windows import kept, plots, tables
from benchmarks.windows import options as chosen
from benchmarks.windows.cells import Bench, Case, Cell
from benchmarks.windows.data import Input
from benchmarks.windows.engines import ROOT, Engine, Places
from benchmarks.windows.kept import Kept, Made
from benchmarks.windows.options import Options
from benchmarks.windows.spec import NONE
from headrace.errors import HeadraceError, UserError
from headrace.runtime.java import find_java

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks-windows.md"
FIGURES = ROOT / "docs" / "benchmarks-windows"
BEGIN, END = "<!-- made by make bench-windows -->", "<!-- end -->"
_DAY = Input(events=4_320_000, span=86_400, keys=8, files=288)
_DAY_QUERIES = 10
Say = Callable[[str], None]


def cases(wanted: Options) -> Iterator[tuple[Engine, Case]]:
    """Everything that is run, in the order it is run: fewer queries first, since they foretell more."""
    for workload in wanted.workloads:
        for count in wanted.counts(workload):
            case = Case(workload, count, wanted.input(workload), wanted.files_per_batch)
            if chosen.TABLE in wanted.parts:
                yield from ((engine, case) for engine in wanted.engines)
            if chosen.APART in wanted.parts and workload == wanted.workloads[0]:
                yield from _apart(wanted, replace(case, sink=NONE))
    if chosen.RANGE in wanted.parts:
        yield from _ranges(wanted)
    if chosen.DAY in wanted.parts and Engine.HEADRACE in wanted.engines:
        yield Engine.HEADRACE, Case("low", _DAY_QUERIES, _DAY, 1)


def _apart(wanted: Options, case: Case) -> Iterator[tuple[Engine, Case]]:
    for engine in (Engine.HEADRACE, Engine.FLINK):
        if engine in wanted.engines:
            yield engine, case
    if Engine.FLINK in wanted.engines and case.queries == wanted.queries[0]:
        yield Engine.READING, case


def _ranges(wanted: Options) -> Iterator[tuple[Engine, Case]]:
    """Ten times the hours and a tenth of the keys: as many results, and the windows that the end of the
    input cuts short are few, whatever the range."""
    first = wanted.workloads[0]
    usual = wanted.input(first)
    longer = replace(usual, span=usual.span * 10, keys=max(usual.keys // 10, 1))
    for stretch in (1, 10):
        case = Case(first, wanted.others, longer, wanted.files_per_batch, stretch=stretch)
        yield from ((e, case) for e in wanted.engines if e in (Engine.HEADRACE, Engine.DUCKDB))


def better_store(bench: Bench, case: Case, say: Say) -> str:
    """Plain Spark's users have two state stores to choose from: the one that takes less CPU for one query
    over one batch."""
    taken: dict[str, float] = {}
    for store in ("rocksdb", "default"):
        bench.store = store
        sample = bench.run(Engine.PLAIN, case, case.files_per_batch, bench.limit)
        taken[store] = float("inf") if sample.problem else sample.usage.cpu
    best = min(taken, key=lambda store: taken[store])
    say(f"plain Spark's state store: {best} ({', '.join(f'{s} {c:.1f} CPU-s' for s, c in taken.items())})")
    return best


def measure(wanted: Options, made: Made, say: Say, keep: Callable[[Kept], None]) -> Kept:
    """All cells: those of earlier runs that are wanted again, and the others measured, each kept at once."""
    places = Places(wanted.cache, Path(find_java(os.environ).home), os.environ)
    bench = Bench(places, wanted.limit, wanted.memory, wanted.cores, say, prefixes=wanted.prefixes)
    earlier = [kept.read(path) for path in wanted.earlier]
    known = {(cell.engine, cell.case): (cell, run.made) for run in earlier for cell in run.cells}
    every = list(cases(wanted))
    first = wanted.workloads[0]
    missing = {engine for engine, case in every if (engine, case) not in known}
    if missing & {Engine.FLINK, Engine.READING} and not places.flink.exists():
        raise UserError(
            f"Flink has no environment here: {places.flink}",
            hint='Make it with `make bench-windows ARGS="..."`, or leave it out with --engines.',
        )
    if Engine.PLAIN in missing and chosen.TABLE in wanted.parts:
        tried = Case(first, 1, wanted.input(first), wanted.files_per_batch)
        bench.store = better_store(bench, tried, say) if wanted.store == "try" else wanted.store
        made = replace(made, store=bench.store)
    found = Kept((made,), ())
    for engine, case in every:
        cell, makers = known.get((engine, case), (None, ()))
        if cell is None:
            cell = bench.cell(engine, case)
        else:
            bench.learn(cell)
        new = [one for one in makers if one not in found.made]
        found = Kept((*found.made, *new), (*found.cells, cell))
        keep(found)
    return found


def document(found: Kept) -> str:
    lines = [f"`{one.command}`, {one.machine.lines()[0]}." for one in found.made]
    lines += found.made[0].machine.lines()[1:]
    stores = dict.fromkeys(one.store for one in found.made if one.store)
    lines += [f"Plain Spark's state store: {', '.join(stores)}."] if stores else []
    return "\n\n".join([*lines, tables.markdown(found.cells)])


def publish(text: str, cells: Sequence[Cell]) -> list[Path]:
    """Put the tables between the marks of the page, and the plots beside it."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    made = plots.draw(cells, FIGURES)
    for cell in cells:
        if cell.case.input == _DAY and cell.sample and len(cell.sample.state) > 1:
            made += plots.over_day(cell.sample.state, FIGURES / "state-day")
    shown = [f"![{p.stem}](benchmarks-windows/{p.name})" for p in made if p.suffix == ".svg"]
    PAGE.write_text(
        "\n\n".join([before + BEGIN, text, *shown, END + rest.partition(END)[2]]), encoding="utf-8"
    )
    return [PAGE, *made]


def command_of(given: Sequence[str]) -> str:
    """As it was given, but for folders of this machine."""
    told = (Path(one).name if "/" in one else one for one in given)
    return " ".join(["python -m benchmarks.windows", *told])


def main(given: Sequence[str] | None = None) -> int:
    wanted = chosen.parse(given)
    command = command_of(sys.argv[1:] if given is None else given)
    machine, began = describe(datetime.now(UTC), os.environ), time.perf_counter()
    wanted.cache.mkdir(parents=True, exist_ok=True)
    # The folder may lie in a repository, and is nobody's to commit.
    (wanted.cache / ".gitignore").write_text("*\n", encoding="utf-8")

    def say(text: str) -> None:
        print(f"{time.perf_counter() - began:5.0f} s  {text}", file=sys.stderr, flush=True)

    # As an exception, so that the engine that runs is ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    path = Path(wanted.json) if wanted.json.endswith(".json") else RESULTS / f"{wanted.json}.json"
    try:
        found = measure(wanted, Made(command, machine), say, lambda cells: kept.write(path, cells))
    except HeadraceError as error:
        print(error.render(), file=sys.stderr)
        return 2
    text = document(found)
    print(text)
    for made in [path, *(publish(text, found.cells) if wanted.publish else [])]:
        say(f"wrote {made}")
    return int(any(cell.wrong for cell in found.cells))


if __name__ == "__main__":
    sys.exit(main())
