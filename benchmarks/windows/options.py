"""The command line of `python -m benchmarks.windows`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.windows.data import Input
from benchmarks.windows.engines import Engine
from benchmarks.windows.workloads import FEATURE, WORKLOADS

TABLE, APART, RANGE, DAY = "table", "apart", "range", "day"
PARTS = {
    TABLE: "every workload, number of queries and engine, results written to files",
    APART: "Headrace and Flink once more, results made and dropped; Flink only reading",
    RANGE: "ranges as they are and ten times as long, at the same slide",
    DAY: "24 h of event time in 288 batches: state must not grow",
}
_ENGINES = tuple(engine for engine in Engine if engine is not Engine.READING)
_BY_DEFAULT = tuple(engine for engine in _ENGINES if engine is not Engine.SERVICE)


@dataclass(frozen=True, slots=True)
class Options:
    workloads: tuple[str, ...]
    queries: tuple[int, ...]
    others: int
    """Queries of workloads other than the first."""
    engines: tuple[Engine, ...]
    events: int
    span: int
    files: int
    files_per_batch: int
    keys: int | None
    prefixes: tuple[int, ...]
    """Files of the two prefixes that slow engines are run over first; none: chosen by the limit."""
    limit: float
    memory: str
    cores: int
    cache: Path
    parts: tuple[str, ...]
    store: str
    json: str
    publish: bool
    earlier: tuple[Path, ...]
    """Files of earlier runs, whose cells are not measured again."""

    def input(self, workload: str) -> Input:
        return Input(self.events, self.span, self.keys or WORKLOADS[workload].keys, self.files)

    def counts(self, workload: str) -> tuple[int, ...]:
        return self.queries if workload == self.workloads[0] else (self.others,)


def parse(given: Sequence[str] | None) -> Options:
    parser = _parser()
    said = parser.parse_args(given)
    if said.quick:
        # What was said beside --quick holds.
        parser.set_defaults(queries="1,3", workload=FEATURE, events=20_000, span=400, files=4, batch=4)
        parser.set_defaults(limit=90, parts=TABLE, store="rocksdb", json="windows-quick")
        said = parser.parse_args(given)
    workloads = tuple(WORKLOADS) if said.workload == "all" else _names(said.workload)
    if unknown := [name for name in workloads if name not in WORKLOADS]:
        parser.error(f"no workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}, all")
    if unknown := [part for part in _names(said.parts) if part not in PARTS]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    if unknown := [name for name in _names(said.engines) if name not in set(_ENGINES)]:
        parser.error(f"no engine {', '.join(unknown)}; there are {', '.join(_ENGINES)}")
    counts = _names(said.queries)
    if not all(count.isdecimal() and int(count) > 0 for count in counts):
        parser.error("--queries wants whole numbers above 0, with commas between")
    prefixes = _names(said.prefixes)
    if prefixes and not (len(prefixes) == 2 and all(one.isdecimal() for one in prefixes)):
        parser.error("--prefixes wants two numbers of files")
    if prefixes and not 0 < int(prefixes[0]) < int(prefixes[1]) <= said.files:
        parser.error(f"--prefixes wants the shorter one first, and there are {said.files} files")
    if not 0 < said.batch <= said.files or said.events < said.files or said.span < said.files:
        parser.error("each file needs an event and a second, each batch a file, and there must be as many")
    return Options(
        workloads=workloads,
        queries=tuple(map(int, counts)),
        others=said.others,
        engines=tuple(Engine(name) for name in _names(said.engines)),
        events=-(-said.events // said.files) * said.files,
        span=said.span,
        files=said.files,
        files_per_batch=said.batch,
        keys=said.keys,
        prefixes=tuple(map(int, prefixes)),
        limit=said.limit,
        memory=said.memory,
        cores=said.cores,
        cache=said.cache.resolve(),
        parts=_names(said.parts),
        store=said.store,
        json=said.json,
        publish=said.publish,
        earlier=tuple(map(Path, said.earlier)),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.windows",
        description="Sets of window queries on plain Spark, fragments, Headrace, Flink SQL and DuckDB.",
        epilog="; ".join(f"{name}: {about}" for name, about in PARTS.items()),
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="20,000 events, 1 and 3 queries: about five minutes")
    add("--queries", default="1,10,50,200", help="numbers of queries (default %(default)s)")
    add("--others", type=int, default=50, help="queries of workloads after the first (default %(default)s)")
    add("--workload", default="all", help=f"{', '.join(WORKLOADS)}; all by default")
    add("--engines", default=",".join(_BY_DEFAULT), help="default %(default)s; there is also service")
    add("--events", type=int, default=5_000_000, help="default %(default)s")
    add("--span", type=int, default=3600, help="seconds of event time (default %(default)s)")
    add("--files", type=int, default=60, help="files of the input (default %(default)s)")
    add("--batch", type=int, default=6, help="files in a micro-batch (default %(default)s)")
    add("--prefixes", default="", help="1,4: run the first set of slow engines over that many files")
    add("--keys", type=int, help="keys, instead of the workload's own number (20000: many keys)")
    add("--limit", type=float, default=600, help="seconds for one run; see the table's marks (%(default)s)")
    add("--memory", default="4g", help="heap of a JVM (default %(default)s)")
    add("--cores", type=int, default=2, help="default %(default)s")
    add("--cache", type=Path, default=Path(".bench"), help="inputs and runs (default %(default)s)")
    add("--parts", default=",".join(PARTS), help="default %(default)s")
    add("--store", default="try", choices=("try", "rocksdb", "default"), help="state store of plain Spark")
    add("--json", default="windows", help="NAME: benchmarks/results/NAME.json, or a path (%(default)s)")
    add("--from", dest="earlier", nargs="+", default=[], metavar="FILE", help="take what these --json have")
    add("--publish", action="store_true", help="put the tables and plots into docs/")
    return parser
