"""Weavers against every window by itself over the raw rows: rows out of order and late, in micro-batches,
with restarts that bring other queries."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pyarrow as pa

from headrace.plan.expr import AggregateCall, Cast, ColumnRef, Expr
from headrace.plan.types import Column, DataType
from headrace.runtime.results import ARROW
from headrace.runtime.windows import QuerySpec, Span, TreeSpec, needs_of, valid_from
from headrace.runtime.windows.opening import Argument, arguments_of, partial_table
from headrace.runtime.windows.rows import wire_type
from headrace.runtime.windows.spec import FRAGMENT
from headrace.runtime.windows.weaver import Weaver
from tests.unit.runtime.windows.plain import (
    COLUMNS,
    SPREADS,
    Row,
    call,
    evaluate,
    last_edge,
    next_edge,
    random_rows,
    read,
    same,
)

KEYS = (Column("k", DataType.STRING), Column("n", DataType.BIGINT), Column("d", DataType.DOUBLE))
CALLS = (
    call("count"),
    *(call(f, c) for f in ("count", "sum", "avg") for c in ("i", "l", "x")),
    *(call(f, c) for f in ("min", "max") for c in COLUMNS),
    *(call(f, "x") for f in SPREADS),
    *(call("approx_count_distinct", c) for c in COLUMNS),
)
NAMES: list[tuple[object, ...]] = [
    ("a", 1, 0.5),
    ("a", 2, 0.5),
    (None, 1, None),
    ("b", None, float("nan")),
    ("", 2, -0.0),
    ("", 2, 0.0),
    ("c", 3, float("nan")),
]
Answer = dict[object, list[object]]


@dataclass(frozen=True)
class Member:
    """A query; `only` wants only the rows whose column b is TRUE."""

    name: str
    range: int
    slide: int
    calls: tuple[AggregateCall, ...]
    keys: tuple[int, ...] | None = None
    only: bool = False
    valid_from: int | None = None

    def asked(self) -> list[tuple[str, AggregateCall]]:
        named = [(f"o{k}", self._masked(c)) for k, c in enumerate(self.calls)]
        return [*named, ("mine", self._masked(call("count")))] if self.only else named

    def _masked(self, one: AggregateCall) -> AggregateCall:
        """In place of CASE WHEN b THEN ... END, which Spark computes: a column of that content."""
        if not self.only:
            return one
        name, kind = ("i", DataType.INT) if one.arg is None else (_source(one.arg), one.arg.type)
        return AggregateCall(one.function, ColumnRef(f"only {'*' if one.arg is None else name}", kind))

    def windows(self, row: Row) -> Iterator[int]:
        """The starts of the windows that hold a row and that the query is to give."""
        start = row.time // self.slide * self.slide
        while start + self.range > row.time:
            if self.valid_from is None or start >= self.valid_from:
                yield start
            start -= self.slide


def _source(expr: Expr) -> str:
    if isinstance(expr, Cast):
        return _source(expr.arg)
    assert isinstance(expr, ColumnRef)
    return expr.name


def edges_of(members: list[Member]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted({(m.slide, o) for m in members for o in (0, m.range % m.slide)}))


@dataclass
class Tree:
    """Members as a spec, with what level 1 has to do for them."""

    members: list[Member]
    keys: tuple[Column, ...]
    spec: TreeSpec = field(init=False)
    arguments: tuple[Argument, ...] = field(init=False)
    columns: dict[str, Expr] = field(init=False)

    def __post_init__(self) -> None:
        asked = [m.asked() for m in self.members]
        needs = needs_of(asked)
        self.arguments, self.columns = arguments_of(one for named in asked for _, one in named)
        queries = []
        for m, outputs in zip(self.members, needs.outputs, strict=True):
            mine = next((o.partials[0] for o in outputs if o.name == "mine"), None)
            shown = tuple(o for o in outputs if o.name != "mine")
            queries.append(QuerySpec(m.name, m.range, m.slide, shown, m.valid_from, m.keys, mine))
        spec = TreeSpec(self.keys, needs.partials, tuple(queries))
        self.spec = TreeSpec.from_json(spec.to_json())

    def partials(self, rows: list[Row]) -> pa.Table:
        edges = edges_of(self.members)
        columns = {FRAGMENT: pa.array([last_edge(edges, r.time) for r in rows], pa.int64())}
        for place, key in enumerate(self.keys):
            columns[key.name] = pa.array([r.key[place] for r in rows], ARROW[key.type])
        for name, expr in self.columns.items():
            columns[name] = pa.array([_cell(r, _source(expr)) for r in rows], ARROW[_type(expr)])
            columns[name] = columns[name].cast(ARROW[expr.type], safe=False)
        keys = [k.name for k in self.keys]
        made = partial_table(pa.record_batch(columns), self.arguments, keys, self.spec)
        for partial in self.spec.partials:
            assert made.schema.field(partial.name).type == wire_type(partial)
        return made


def _type(expr: Expr) -> DataType:
    return _type(expr.arg) if isinstance(expr, Cast) else expr.type


def _cell(row: Row, column: str) -> object:
    if not column.startswith("only "):
        return row.values[column]
    if not row.values["b"]:
        return None
    return 1 if column == "only *" else row.values[column.removeprefix("only ")]


def key_of(member: Member, row: Row) -> tuple[object, ...]:
    own = row.key if member.keys is None else tuple(row.key[k] for k in member.keys)
    return tuple(map(_equal, own))


def _equal(value: object) -> object:
    """NaN is one key, though it is not equal to itself."""
    return "NaN" if value != value else value


def _named(at: object) -> object:
    assert isinstance(at, tuple)
    return (at[0], tuple(map(_equal, at[1])))


class Run:
    """One stream through one weaver, and what it should have given."""

    def __init__(
        self, members: list[Member], keys: tuple[Column, ...], chance: random.Random, delay: int
    ) -> None:
        self.tree, self.chance, self.delay = Tree(members, keys), chance, delay
        self.weaver = Weaver(self.tree.spec)
        self.store: dict[str, bytes] = {}
        self.arrived: list[tuple[Row, int | None]] = []
        """Rows with the watermark of the batch before theirs."""
        self.newest: int | None = None
        self.born: dict[str, int] = {m.name: 0 for m in members}
        """How many rows had come when a member came."""
        self.made: list[tuple[Span, frozenset[str]]] = []
        self.found: dict[str, Answer] = {m.name: {} for m in members}
        self.late: Counter[str] = Counter()
        self.given: list[tuple[QuerySpec, int, pa.RecordBatch, str]] = []

    def batch(self, rows: list[Row]) -> None:
        """Spark's order: rows, then the watermark that the rows before this batch have made."""
        watermark = None if self.newest is None else self.newest - self.delay
        before = self.weaver.watermark
        self.arrived += [(row, before) for row in rows]
        half = self.chance.randint(0, len(rows))
        for part in (rows[:half], rows[half:]):
            if part:
                self.weaver.take(self.tree.partials(part))
        if watermark is not None:
            self.advance(max(watermark, watermark if before is None else before))
        self.save()
        self.newest = max([row.time for row in rows] + ([] if self.newest is None else [self.newest]))

    def advance(self, watermark: int) -> None:
        advanced = self.weaver.advance(watermark)
        self.late.update(advanced.late)
        for name, batch in advanced.results:
            spec = next(q for q in self.tree.spec.queries if q.id == name)
            keys = len(self.tree.keys) if spec.keys is None else len(spec.keys)
            more = {_named(at): values for at, values in read(spec, keys, batch).items()}
            assert batch.num_rows and not self.found[name].keys() & more.keys(), "given twice, or nothing"
            self.found[name] |= more
            self.given.append((spec, keys, batch, repr(more)))
        self.save()

    def save(self) -> None:
        puts, deletes = self.weaver.changes()
        assert not set(puts) & set(deletes)
        for one in deletes:
            del self.store[one]
        self.store |= puts

    def restart(self, members: list[Member] | None = None) -> None:
        if members is not None:
            self.tree = Tree(members, self.tree.keys)
        items = list(self.store.items())
        self.chance.shuffle(items)
        self.weaver = Weaver.restore(self.tree.spec, items)

    def change(self, gone: set[str], fresh: list[Member]) -> None:
        """Restart without some members and with new ones; the new ones are valid as early as can be."""
        assert self.newest is not None and self.weaver.watermark is not None
        for name in gone:
            self.check(next(m for m in self.tree.members if m.name == name))
        kept = self.weaver._bucket.kept_from
        assert kept is not None
        edges = edges_of(self.tree.members)
        names = frozenset(p.name for p in self.tree.spec.partials)
        # Rows that come under these edges may be as old as the oldest that was kept when they came in force.
        self.made = [(replace(s, start=max(kept, s.start)), c) for s, c in self.made if s.end > kept]
        self.made.append((Span(kept, next_edge(edges, self.newest), edges), names))
        stay = [m for m in self.tree.members if m.name not in gone]
        self.restart(stay + [self._valid(m) for m in fresh])
        self.born |= {m.name: len(self.arrived) for m in fresh}
        self.found |= {m.name: {} for m in fresh}

    def _valid(self, member: Member) -> Member:
        watermark = self.weaver.watermark
        assert watermark is not None
        alone = Tree([member], self.tree.keys).spec
        ends = [span.end for span, _ in self.made]
        lacking = [s.end for s, columns in self.made if not {p.name for p in alone.partials} <= columns]
        spans = [span for span, _ in self.made]
        start = max(
            [valid_from(alone.queries[0], spans, max(ends))]
            + [-(-end // member.slide) * member.slide for end in lacking]
            + [alone.queries[0].first_after(watermark) * member.slide]
        )
        return replace(member, valid_from=start)

    def check(self, member: Member) -> None:
        """All windows that have ended by now."""
        upto = self.weaver.watermark
        groups: dict[tuple[int, tuple[object, ...]], list[Row]] = {}
        late = 0
        for number, (row, before) in enumerate(self.arrived):
            if member.only and not row.values["b"]:
                continue
            missed = False
            for start in member.windows(row):
                if before is not None and start + member.range <= before:
                    missed = True
                elif upto is not None and start + member.range <= upto:
                    groups.setdefault((start, key_of(member, row)), []).append(row)
            late += missed and number >= self.born[member.name]
        found = self.found[member.name]
        assert found.keys() == groups.keys()
        for at, group in groups.items():
            for one, got in zip(member.calls, found[at], strict=True):
                assert near(one, got, group), (member, at, one, got)
        assert self.late[member.name] == late

    def finish(self) -> None:
        assert self.newest is not None
        self.advance(self.newest + 10**5)
        for member in self.tree.members:
            self.check(member)
        for spec, keys, batch, before in self.given:
            now = {_named(at): values for at, values in read(spec, keys, batch).items()}
            assert repr(now) == before, "a batch changed after it was given"
        assert list(self.store) == ["marks"], "state of windows that are over is left"


def near(one: AggregateCall, got: object, group: list[Row]) -> bool:
    if one.arg is None:
        return got == len(group)
    there = [v for v in (r.values[_source(one.arg)] for r in group) if v is not None]
    if one.function == "approx_count_distinct":
        exact = len({"nan" if v != v else v for v in there})
        return isinstance(got, int) and abs(got - exact) <= 0.2 * exact + 2 and (got > 0) == (exact > 0)
    return same(got, evaluate(one.function, there), one.function in SPREADS)


def random_members(chance: random.Random, count: int, name: str) -> list[Member]:
    """Half of the time all have the slide and the calls of the first: these are answered together."""
    found: list[Member] = []
    alike = chance.random() < 0.5
    for number in range(count):
        slide = found[0].slide if found and alike else chance.randint(1, 30)
        size = chance.choice([chance.randint(1, 60), slide * chance.randint(1, 70), chance.randint(1, 900)])
        keys: tuple[int, ...] | None = chance.choice([None, None, (0,), (1,), (0, 2), ()])
        calls = tuple(chance.sample(CALLS, chance.randint(1, 4)))
        only = chance.random() < 0.3
        if found and alike:
            calls, keys, only = found[0].calls, found[0].keys, found[0].only
        found.append(Member(f"{name}{number}", size, slide, calls, keys, only))
    return found


def arrivals(chance: random.Random, count: int, delay: int) -> list[list[Row]]:
    """Rows in micro-batches, out of order, some of them later than the delay. In every second stream times
    are multiples of 5, so that watermarks meet the ends of windows."""
    rows = random_rows(chance, count, NAMES, chance.choice([200, 1000]), chance.choice([0.0, 0.2]))
    if chance.random() < 0.5:
        rows = [replace(row, time=row.time // 5 * 5) for row in rows]
    reach = chance.choice([0, delay, 50, 300])
    shifted = sorted((r.time + chance.randint(0, reach), k) for k, r in enumerate(rows))
    order = [rows[k] for _, k in shifted]
    cuts = sorted(chance.sample(range(1, count), chance.choice([3, 15])))
    return [order[a:b] for a, b in pairwise([0, *cuts, count])]


def steady_with_late_rows(
    windows: Sequence[tuple[int, int, tuple[int, ...] | None]], until: int, keys: int
) -> None:
    """A row of each of so many keys each instant (0: of one of three), in batches of 12, each with three rows
    that are late for some windows."""
    chance, calls = random.Random(until), (call("count"), call("sum", "i"), call("max", "l"))
    named = [Member(f"q{k}", size, slide, calls, by) for k, (size, slide, by) in enumerate(windows)]
    run, back = Run(named, KEYS, chance, 0), max(size for size, _, _ in windows) - 10
    for low in range(0, until, 12):
        at = [(t, k) for t in range(low, low + 12) for k in range(keys) or [t % 3]]
        at += [(max(0, low - chance.randint(1, back)), chance.randrange(3)) for _ in range(3)]
        run.batch([Row(t, NAMES[k], {"i": t, "l": -t}) for t, k in at])
    run.finish()
    assert all(until // 8 < run.late[m.name] <= until // 4 for m in named)
