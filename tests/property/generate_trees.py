"""Random trees: `random_tree(seed)` is a stream, 2 to 12 window queries over it that fit one TreeJob, and its
rows as they arrive.

Queries differ in ranges and slides (coprime, multiples, tumbling, ranges that are no multiple of the slide),
aggregates, filters, keys (all, some, none), HAVING and projections. Rows come out of order, a few later than
the watermark, some twice, in bursts with gaps longer than any range, in uneven batches. Numbers are multiples
of 1/4 and small, so that sums are exact in any order and a HAVING cannot hold in one engine only.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from headrace.catalog.model import FileSource, Format, Project, Query, Stream
from headrace.plan.placed import TreeMember
from headrace.plan.types import DataType
from headrace.service import members
from tests.property.generate_data import ARROW, offset

SECOND = 1_000_000
STREAM = "s"
_NAMES = ("red", "green", "it's", "")
_WORDS = ("a", "bb", "ünï", "zebra", "")
_STARTS = (-20, 1, int(datetime(2024, 2, 28, 23, 59, tzinfo=UTC).timestamp()), 1_000_000_007, 1_700_000_000)
"""Seconds: rows, or only windows, reach back before the epoch, Spark's first watermark; a leap day; no
multiple of much."""
_OPTIONAL = {"h": DataType.BIGINT, "n": DataType.INT, "x": DataType.BIGINT, "flag": DataType.BOOLEAN}
_SLIDES = (1, 2, 3, 4, 5, 6, 7, 10, 12, 15, 30, 60)
OPENED, CLOSED = ("window_start", "opened"), ("window_end", "closed")
"""What the ends of a window are called in a result; there is always one of them."""


@dataclass(frozen=True, slots=True)
class TreeCase:
    """What a seed stands for."""

    seed: int
    stream: Stream
    sql: dict[str, str]
    """By query, in the order in which they may be added."""
    batches: tuple[pa.Table, ...]

    def members(self) -> dict[str, TreeMember]:
        return {name: member_of(self.stream, name, text) for name, text in self.sql.items()}

    def told(self) -> str:
        """For whoever has to look into it."""
        sizes = ", ".join(str(b.num_rows) for b in self.batches)
        head = f"seed {self.seed}: watermark {self.stream.watermark} us, batches of {sizes} rows"
        return "\n".join([head, *(f"  {name}: {text}" for name, text in self.sql.items())])


def member_of(stream: Stream, name: str, sql: str) -> TreeMember:
    empty = Project(name="trees", root=Path(), streams={}, tables={}, sites={}, links=(), queries={})
    project = empty.model_copy(update={"streams": {stream.name: stream}})
    member = members.member_of(project, Query(name=name, sql=sql))
    assert isinstance(member, TreeMember), f"{sql}: {member}"
    return member


def random_tree(seed: int, rows: int = 160, batches: int = 8) -> TreeCase:
    """At most `rows` rows (and some twice) in at most `batches` batches."""
    rng = random.Random(seed)
    stream = _stream(rng)
    writer = _Writer(rng, frozenset(stream.columns))
    # Cases that run at once in one executor must not share names.
    sql = {f"q{i}_{seed}": writer.query() for i in range(rng.choice((2, 2, 3, 3, 4, 5, 6, 8, 12)))}
    arrived = _arrivals(rng, stream, rng.randrange(min(20, rows), rows + 1), writer.longest)
    return TreeCase(seed, stream, sql, _split(rng, stream, arrived, batches))


def _stream(rng: random.Random) -> Stream:
    columns = {
        "ts": DataType.TIMESTAMP,
        "k": DataType.STRING,
        "g": DataType.INT,
        "v": DataType.DOUBLE,
        "s": DataType.STRING,
    }
    columns |= {c: t for c, t in _OPTIONAL.items() if rng.random() < 0.6}
    source = FileSource(path="in", format=Format.PARQUET)
    delay = rng.choice((0, 1, 2, 5, 20)) * SECOND
    return Stream(name=STREAM, columns=columns, time="ts", watermark=delay, source=source)


class _Writer:
    """Writes queries over one stream, from pools small enough that they often have something in common."""

    def __init__(self, rng: random.Random, columns: frozenset[str]) -> None:
        self._rng, self._columns = rng, columns
        self._keys = rng.sample(self._all_keys(), rng.choice((1, 2, 2, 3, 3)))
        self._core = self._keys[:1] if rng.random() < 0.6 else []
        self._filters = rng.sample(self._all_filters(), rng.randrange(5))
        self._slides = rng.sample(_SLIDES, rng.choice((1, 2, 3, 5)))
        self._arguments = [self._number() for _ in range(rng.choice((1, 2, 4)))]
        self.longest = 1
        """Seconds: the longest range so far."""

    def _pick(self, options: list[str]) -> str:
        return self._rng.choice(options)

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _has(self, column: str, *texts: str) -> list[str]:
        return list(texts) if column in self._columns else []

    def _all_keys(self) -> list[str]:
        found = ["k", "g", "k", "g", "upper(k)", "g % 2", "coalesce(g, -1)", "length(s)"]
        found += ["CASE WHEN v > 10 THEN 'high' ELSE k END", "v > 0", *self._has("h", "h", "h", "h + g")]
        # 0.0 and -0.0 are one key, and so are all NaNs.
        found += ["CASE WHEN v > 10 THEN 0.5 ELSE v * 0 END"]
        return list(dict.fromkeys(found + self._has("flag", "flag")))

    def _all_filters(self) -> list[str]:
        found = ["v > 10", "v <= 10", "v IS NULL", "v IS NOT NULL", "k = 'red'", "(v < 0 OR g = 2)"]
        found += ["g IN (0, 1, 3)", "NOT (v > 50)", "s LIKE '%b%'", "k IS NULL OR s = ''", "k = 'it\\'s'"]
        found += ["v BETWEEN -10 AND 70.5", "g > 9", *self._has("flag", "flag", "flag IS NOT TRUE")]
        return found + self._has("n", "n < 5") + self._has("h", "h <> 1")

    def _number(self) -> str:
        found = ["v", "v", "g", "v * 2 - g", "abs(v)", "coalesce(v, 0.5)", "floor(v / 4)", "nullif(g, 2)"]
        found += ["CASE WHEN v > 10 THEN v WHEN k = 'red' THEN -1 ELSE g END", "CAST(v AS INT)", "-v"]
        return self._pick(found + self._has("n", "n", "n % 4") + self._has("x", "x", "least(x, 1000)"))

    def _aggregate(self) -> str:
        number = self._pick(self._arguments)
        found = ["count(*)", f"count({number})", f"sum({number})", f"avg({number})", f"min({number})"]
        found += [f"max({number})", "min(s)", "max(s)", "max(ts)", "count(k)", f"sum({number}) / count(*)"]
        found += [f"{f}({number})" for f in ("var_samp", "var_pop", "stddev_samp", "stddev_pop")]
        found += [f"approx_count_distinct({c})" for c in (number, "s")]
        return self._pick([*found, f"max({number}) - min({number})", f"sum({number}) * 2 + count(*)"])

    def _having(self) -> str:
        if not self._chance(0.3):
            return ""
        found = ["count(*) > 1", "sum(v) > 20", "avg(v) <= 30", "max(v) IS NOT NULL", "max(v) > min(v)"]
        return f" HAVING {self._pick([*found, 'min(g) < 2 AND count(v) > 0', 'count(*) > 1000'])}"

    def _where(self) -> str:
        count = min(len(self._filters), self._rng.choice((0, 0, 1, 1, 2)))
        chosen = self._rng.sample(self._filters, count)
        return f" WHERE {' AND '.join(f'({c})' for c in chosen)}" if chosen else ""

    def _own_keys(self) -> list[str]:
        kind = self._rng.random()
        if kind < 0.5:
            return self._rng.sample(self._keys, len(self._keys))
        if kind < 0.6:
            return list(self._core)
        return [*self._core, *(k for k in self._keys if k not in self._core and self._chance(0.5))]

    def _window(self) -> tuple[int, int]:
        """Range and slide in milliseconds. The ratio is bounded: the reference copies every row as often."""
        slide = self._rng.choice(self._slides) * (1000 if self._chance(0.95) else 250)
        kind = self._rng.random()
        if kind < 0.2:
            size = slide
        elif kind < 0.5:
            size = slide * self._rng.randrange(1, 13)
        else:
            size = self._rng.randrange(slide // 250, slide // 250 * 12 + 1) * 250
            size = size if self._chance(0.3) else max(slide, size // 1000 * 1000)
        size = slide * 70 if kind > 0.97 else size
        self.longest = max(self.longest, -(-size // 1000))
        return size, slide

    def query(self) -> str:
        size, slide = self._window()
        if self._keys and self._chance(0.07):
            return self._nested(size, slide)
        keys, ends = self._own_keys(), self._ends()
        named = [
            f"{k} AS k{i}" if not k.isidentifier() or self._chance(0.2) else k for i, k in enumerate(keys)
        ]
        shown = [f"{self._aggregate()} AS a{i}" for i in range(self._rng.randrange(1, 5))]
        # A key need not be shown; a row may then stand twice in the answer.
        listed = [*ends, *(n for n in named if self._chance(0.9)), *shown]
        self._rng.shuffle(listed)
        source, by = self._source(size, slide)
        group = f" GROUP BY {', '.join([*by, *keys])}" if by or keys else ""
        return f"SELECT {', '.join(listed)} FROM {source}{self._where()}{group}{self._having()}"

    def _nested(self, size: int, slide: int) -> str:
        """An aggregate of aggregates: all groups of a window must be there at once."""
        source, by = self._source(size, slide)
        key, total = self._keys[0], self._pick(self._arguments)
        ends = ["window.start AS window_start", "window.end AS window_end"]
        inner = [*(ends if source == STREAM else ("window_start", "window_end")), f"{key} AS kk"]
        group = f"GROUP BY {', '.join([*by, key])}"
        rows = f"SELECT {', '.join(inner)}, sum({total}) AS total FROM {source}{self._where()} {group}"
        shown = "window_end, max(total) AS top, count(*) AS n, min(kk) AS least"
        return f"SELECT {shown} FROM ({rows}) AS p GROUP BY window_start, window_end"

    def _ends(self) -> list[str]:
        start, end = f"window_start AS {OPENED[1]}", f"window_end AS {CLOSED[1]}"
        return self._rng.choice(
            (["window_start"], ["window_start", "window_end"], ["window_end"], [start], [end])
        )

    def _source(self, size: int, slide: int) -> tuple[str, list[str]]:
        """FROM, and what of the window stands in GROUP BY."""
        whole = size % 1000 == 0 and slide % 1000 == 0
        unit, per = ("SECOND", 1000) if whole else ("MILLISECOND", 1)
        a, b = size // per, slide // per
        match self._pick(["spark", "cql", "hop"]):
            case "spark":
                return STREAM, [f"window(ts, '{a} {unit.lower()}s', '{b} {unit.lower()}s')"]
            case "cql":
                return f"{STREAM} [RANGE {a} {unit}S SLIDE {b} {unit}S]", []
        lengths = f"INTERVAL '{b}' {unit}, INTERVAL '{a}' {unit}"
        return f"TABLE(HOP(TABLE {STREAM}, DESCRIPTOR(ts), {lengths}))", ["window_start", "window_end"]


Row = dict[str, object]


def _arrivals(rng: random.Random, stream: Stream, count: int, longest: int) -> list[Row]:
    """Rows in order of arrival: in bursts, delayed by less than the watermark's delay, some by more."""
    length = max(10, min(240, longest * 2)) * SECOND
    bursts = [rng.choice(_STARTS) * SECOND]
    for _ in range(rng.choice((0, 0, 1, 2))):
        bursts.append(bursts[-1] + length + rng.randrange(1, 3 * longest + 1) * SECOND)
    made: list[tuple[int, Row]] = []
    late = rng.choice((0.0, 0.05, 0.2))
    for number in range(count):
        time = bursts[number * len(bursts) // count] + offset(rng, length)
        delay = rng.randrange(stream.watermark + 1) if rng.random() < 0.5 else 0
        delay += rng.randrange(2 * length) if rng.random() < late else 0
        made.append((time + delay, _row(rng, stream, time)))
    made += [(when + rng.randrange(3), dict(row)) for when, row in rng.sample(made, count // 12)]
    made += [(rng.choice(made)[0], _row(rng, stream, None)) for _ in range(rng.choice((0, 0, 0, 2)))]
    return [row for _, row in sorted(made, key=lambda pair: pair[0])]


def _row(rng: random.Random, stream: Stream, time: int | None) -> Row:
    return {c: time if c == "ts" else _value(rng, c) for c in stream.columns}


def _value(rng: random.Random, column: str) -> object:
    if rng.random() < 0.07:
        return None
    match column:
        case "k":
            return rng.choice(_NAMES)
        case "s":
            return rng.choice(_WORDS)
        case "v":
            return rng.choice((math.nan, -0.0)) if rng.random() < 0.01 else rng.randrange(-200, 400) / 4
        case "n":
            return rng.choice((0, 1, 2, 3, 7, -5, 2**31 - 1))
        case "x":
            return rng.randrange(-(10**12), 10**12)
        case "flag":
            return rng.random() < 0.5
    return rng.randrange(4)


def _split(rng: random.Random, stream: Stream, rows: list[Row], most: int) -> tuple[pa.Table, ...]:
    cuts = sorted(rng.randrange(len(rows) + 1) for _ in range(rng.randrange(most)))
    cuts = [c for c in cuts if rng.random() < 0.8 or c == 0]
    return tuple(table_of(stream, rows[a:b]) for a, b in pairwise([0, *cuts, len(rows)]))


def table_of(stream: Stream, rows: list[Row]) -> pa.Table:
    return pa.table({c: pa.array([row[c] for row in rows], ARROW[t]) for c, t in stream.columns.items()})
