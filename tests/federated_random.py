"""Random windowed queries, every split of them, batch by batch against the reference:

    python -m tests.federated_random --cases 200 --seed 1 --splits 12

No JVM: DuckDB stands in Spark's place, as in tests/federated_cases.py. A case has one to three streams with
their own watermarks, rows out of order and late, NULLs, NaN, rows on the edges of windows, empty batches, a
leap of time; batches are repeated, fail half-way and are done again, and the job is started again in between.
Several queries may be members of one job. Prints what differs, exits 1 if anything does.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog.model import Query, Stream
from headrace.errors import HeadraceError
from headrace.plan import logical as lp
from headrace.plan.federated import Engine, FederatedJob, FederatedMember
from headrace.plan.federated_parts import Part
from headrace.rewrite.driver import rewrite
from headrace.runtime.compare import inexact_columns, multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from headrace.runtime.duckdb.window_sql import Ends
from headrace.runtime.duckdb.window_tables import WindowDatabase
from headrace.runtime.federated.engine import Federation, Rows
from headrace.runtime.federated.ledger import Done, Ledger, read_given
from headrace.runtime.federated.program import Program, program_of
from headrace.service.federating_problem import not_federated
from headrace.sql.bind import bind_query
from tests.federated_cases import letters, splits
from tests.federated_queries import World, random_world

Split = tuple[Engine, ...]
Batch = Mapping[str, pa.Table]
"""The rows of each stream."""
SECOND = 1_000_000
_ARRIVAL = "arrival"
_END = 253_000_000_000 * SECOND


@dataclass(frozen=True)
class Fed:
    """Rows as they come: micro-batches, and the watermark in force in each. The last one closes all."""

    batches: Sequence[Batch]
    marks: Sequence[int]
    tables: Mapping[str, pa.Table]
    known: dict[tuple[lp.LogicalPlan, int], pa.Table] = field(default_factory=dict)
    """What feeds give in a batch, for all splits over the same rows."""

    def before(self, number: int) -> int:
        return self.marks[number - 1] if number else 0

    def taken(self, upto: int) -> dict[str, pa.Table]:
        """The input up to a batch. A row may be late by the watermark of the batch before its own."""
        streams = {
            name: pa.concat_tables(
                [_arriving(batch[name], self.before(k)) for k, batch in enumerate(self.batches[:upto])]
                or [_arriving(self.batches[0][name].slice(0, 0), 0)]
            )
            for name in self.batches[0]
        }
        return {**streams, **self.tables}

    def answer(self, plan: lp.LogicalPlan, upto: int) -> pa.Table:
        return evaluate(plan, self.taken(upto), arrival_watermark=dict.fromkeys(self.batches[0], _ARRIVAL))

    def given(self, node: lp.LogicalPlan, number: int) -> pa.Table:
        """What Spark would give in a batch: new rows, or the windows that its watermark closes."""
        if (node, number) not in self.known:
            self.known[node, number] = self._given(node, number)
        return self.known[node, number]

    def _given(self, node: lp.LogicalPlan, number: int) -> pa.Table:
        if node.shape is lp.Shape.STREAM and not any(isinstance(n, lp.IntervalJoin) for n in lp.nodes(node)):
            return evaluate(node, {**self.batches[number], **self.tables})
        now = self.answer(node, number + 1)
        if node.shape is lp.Shape.STREAM:
            return _more(now, self.answer(node, number)) if number else now
        assert node.window is not None
        ends = pc.cast(now[node.window.end], pa.int64())
        after = pc.greater(ends, self.before(number))
        return now.filter(pc.and_(after, pc.less_equal(ends, self.marks[number])))


def _arriving(rows: pa.Table, mark: int) -> pa.Table:
    return rows.append_column(_ARRIVAL, pa.array([mark] * rows.num_rows, pa.int64()))


def _more(now: pa.Table, before: pa.Table) -> pa.Table:
    """The rows that came, as multisets: a stream only grows."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("now", now)
        connection.register("before", before)
        found = connection.sql("SELECT * FROM now EXCEPT ALL SELECT * FROM before").to_arrow_table()
        return found.cast(now.schema)


def watermarks(batches: Sequence[Batch], streams: Mapping[str, Stream]) -> list[int]:
    """Spark's, of all streams: the least of what each has seen before the batch, less its delay."""
    found, seen = list[int](), dict.fromkeys(streams, 0)
    for batch in batches:
        found.append(max(min(seen.values()), found[-1] if found else 0))
        for name, rows in batch.items():
            newest = pc.max(pc.cast(rows[streams[name].time], pa.int64())).as_py()
            if newest is not None:
                seen[name] = max(seen[name], (newest - streams[name].watermark) // 1000 * 1000)
    return found


class Stumble(Exception):
    """A batch that was told to fail."""


class _Stumbling(Ledger):
    def write_done(self, done: Done) -> None:
        raise Stumble


@dataclass
class Driven:
    """A job fed batch by batch, with DuckDB in Spark's place, stumbling on the way."""

    job: FederatedJob
    folder: Path
    fed: Fed
    rng: random.Random
    pairs: int
    program: Program = field(init=False)

    def __post_init__(self) -> None:
        self.program = program_of(self.job)
        self.federation = self._opened()

    def _opened(self) -> Federation:
        return Federation(
            self.program, self.folder, self.fed.tables, self._on_spark, threads=1, pairs=self.pairs
        )

    def _on_spark(self, part: Part, rows: Rows, ends: Ends | None) -> pa.Table:
        database = WindowDatabase(threads=1)
        try:
            for name in lp.tables_of(part.root):
                database.add_table(name, self.fed.tables[name])
            given = {node: database.put(str(k), table) for k, (node, table) in enumerate(rows.items())}
            return database.evaluate(part.root, given, ends)
        finally:
            database.close()

    def run(self) -> None:
        for number in range(len(self.fed.batches)):
            if self.rng.random() < 0.2:
                self._stumble(number)
            self._do(number)
            if self.rng.random() < 0.2:
                self._again()
                self._do(number)
        self.federation.close()

    def _do(self, number: int) -> None:
        feeds = {feed.number: self.fed.given(feed.node, number) for feed in self.program.feeds}
        self.federation.batch(number, self.fed.marks[number], feeds)

    def _stumble(self, number: int) -> None:
        """The batch is killed right before it is complete: its rows and results are on disk already."""
        self.federation._ledger = _Stumbling(self.folder)
        with suppress(Stumble):
            self._do(number)
        self._again()

    def _again(self) -> None:
        self.federation.close()
        self.federation = self._opened()

    def answers(self, query: str, plan: lp.LogicalPlan) -> pa.Table:
        given = Ledger(self.folder).given(10**9)
        parts = [read_given(path) for _, name, path in given if name == query]
        return pa.concat_tables([self.fed.answer(plan, 0), *parts])


@dataclass(frozen=True)
class Outcome:
    """What became of one case."""

    kind: str
    sql: str
    splits: int = 0
    rows: int = 0
    refused: str = ""
    problems: tuple[str, ...] = ()


def run_case(seed: int, most: int, kind: str | None = None) -> Outcome:
    """At most so many splits of one random query, or of several that are one job; all, where there are no
    more."""
    rng = random.Random(seed)
    world = random_world(rng, kind)
    sql = "\n-- ".join(world.sqls)
    try:
        bound = [bind_query(Query(name="q", sql=one), world.streams, world.tables) for one in world.sqls]
    except HeadraceError as error:
        return Outcome(world.kind, sql, problems=(f"not bound: {error.render()}",))
    made = [rewrite(plan) for plan in bound]
    plans = {f"q{k}": plan for k, plan in enumerate(made) if not not_federated(plan)}
    refused = next(filter(None, map(not_federated, made)), "")
    if not plans:
        return Outcome(world.kind, sql, refused=refused)
    fed = _fed(world, plans.values())
    wanted = {query: fed.answer(plan, len(fed.batches)) for query, plan in plans.items()}
    problems = []
    tried = list(_tried(list(plans.values()), most, rng))
    for each in tried:
        problem = run_split(plans, dict(zip(plans, each, strict=True)), fed, wanted, rng)
        if problem:
            problems.append(f"seed {seed}, {world.kind} {' '.join(map(letters, each))}: {problem}")
    rows = sum(one.num_rows for one in wanted.values())
    return Outcome(world.kind, sql, len(tried), rows, refused, tuple(problems))


def _fed(world: World, plans: Iterable[lp.LogicalPlan]) -> Fed:
    names = dict.fromkeys(name for plan in plans for name in lp.streams_of(plan))
    batches = [{name: batch[name] for name in names} for batch in world.batches]
    nothing = {name: rows.slice(0, 0) for name, rows in batches[0].items()}
    marks = watermarks(batches, {name: world.streams[name] for name in names})
    return Fed([*batches, nothing], [*marks, _END], world.table_rows)


def _tried(plans: Sequence[lp.LogicalPlan], most: int, rng: random.Random) -> Iterator[tuple[Split, ...]]:
    """Splits of the first query, each with one of every other."""
    every = [[split for split in splits(plan) if Engine.DUCKDB in split] for plan in plans]
    first = every[0]
    if len(first) > most:
        first = [first[-1], *rng.sample(first[:-1], most - 1)]
    return ((split, *map(rng.choice, every[1:])) for split in first)


def run_split(
    plans: Mapping[str, lp.LogicalPlan],
    split: Mapping[str, Split],
    fed: Fed,
    wanted: Mapping[str, pa.Table],
    rng: random.Random,
) -> str:
    """How the answers of a split differ; empty: not at all. Some are two jobs, one of which takes over."""
    pairs = rng.choice((400, 4000, 16_000_000, 16_000_000))
    turns = {query: _turn(plan, wanted[query], rng) for query, plan in plans.items()}
    found: dict[str, list[pa.Table]] = {query: [] for query in plans}
    with tempfile.TemporaryDirectory() as folder:
        for new in (False, True):
            here = [query for query in plans if not new or turns[query] is not None]
            if not here:
                continue
            root = Path(folder) / str(new)
            bounds = {query: turn for query, turn in turns.items() if turn is not None and not new}
            Ledger(root).write_until(bounds)
            members = [FederatedMember(q, plans[q], split[q], after=turns[q] if new else None) for q in here]
            driven = Driven(FederatedJob("job", "local", tuple(members)), root, fed, rng, pairs)
            driven.run()
            for query in here:
                found[query].append(driven.answers(query, plans[query]))
            if driven.federation.done.kept:
                return f"{driven.federation.done.kept} rows are kept after the end"
    differences = (_difference(plans[q], wanted[q], pa.concat_tables(parts)) for q, parts in found.items())
    return "\n".join(filter(None, differences))


def _difference(plan: lp.LogicalPlan, wanted: pa.Table, got: pa.Table) -> str:
    approximate, spread = inexact_columns(plan)
    found = multiset_difference(wanted, got, approximate=approximate, spread=spread)
    return found.text() if found else ""


def _turn(plan: lp.LogicalPlan, wanted: pa.Table, rng: random.Random) -> int | None:
    if plan.window is None or not wanted.num_rows or rng.random() < 0.7:
        return None
    end: int = pc.cast(wanted[plan.window.end], pa.int64())[rng.randrange(wanted.num_rows)].as_py()
    return end + rng.choice((0, 0, 1, -1))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.federated_random")
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--splits", type=int, default=8)
    parser.add_argument("--kind")
    asked = parser.parse_args(arguments)
    began, wrong, tried, rows, empty = time.monotonic(), 0, 0, 0, 0
    refused: dict[str, int] = {}
    for seed in range(asked.seed, asked.seed + asked.cases):
        outcome = run_case(seed, asked.splits, asked.kind)
        tried, rows = tried + outcome.splits, rows + outcome.rows
        empty += not outcome.rows and not outcome.refused
        if outcome.refused:
            refused[outcome.refused] = refused.get(outcome.refused, 0) + 1
        if outcome.problems:
            wrong += 1
            print(f"-- {outcome.sql}\n" + "\n".join(outcome.problems), flush=True)
    seconds = time.monotonic() - began
    print(f"{asked.cases} cases, {tried} splits, {rows} rows: {wrong} differ ({seconds:.0f} s)")
    print(f"  {empty} without rows")
    for reason, count in refused.items():
        print(f"  {count} not split: {reason}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
