"""Random continuous queries with random data: `random_case(rng)`, the same case for the same rng state.

Every query is inside the accepted dialect (DESIGN.md, windows in three forms). Conditions read only values
that every engine computes to the last bit: variances, logarithms and approximate counts are shown, never
compared.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from headrace.catalog.model import Stream, Table
from tests.property.generate_data import (
    KEYS,
    SECOND,
    STARTS,
    random_batches,
    random_stream,
    random_table,
    table_rows,
)

NAMES = ("bids", "asks", "trips")
NEAR = 8
"""Seconds: the longest range of a join."""


Window = tuple[int, int, str]
"""Range and slide in seconds, and the form it is written in."""


@dataclass(frozen=True, slots=True)
class Case:
    """A query and its world. `batches` holds, per stream, the rows in order of arrival."""

    kind: str
    sql: str
    streams: dict[str, Stream]
    tables: dict[str, Table]
    batches: dict[str, list[pa.Table]]
    table_rows: dict[str, pa.Table]

    def inputs(self) -> dict[str, pa.Table]:
        """All input by name, as the reference takes it."""
        whole = {name: pa.concat_tables(parts) for name, parts in self.batches.items()}
        return {**whole, **self.table_rows}


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes one query over the streams of a case."""

    rng: random.Random
    streams: dict[str, Stream]

    def stream(self) -> str:
        return self.rng.choice(sorted(self.streams))

    def has(self, stream: str, column: str) -> bool:
        return column in self.streams[stream].columns

    def pick(self, options: list[str]) -> str:
        return self.rng.choice(options)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # Expressions over the columns of one item; `at` is its prefix, "" or "a.".

    def number(self, stream: str, at: str) -> str:
        """A number that every engine computes exactly."""
        options = [f"{at}v", f"{at}v", f"{at}v * 2 - {at}g", f"abs({at}v)", f"coalesce({at}v, 0.5)"]
        options += [f"floor({at}v / 4)", f"round({at}v, 1)", f"{at}v + 0.25", f"greatest({at}v, {at}g)"]
        options += [f"CASE WHEN {at}v > 10 THEN {at}v WHEN {at}k = 'red' THEN -1 ELSE {at}g END"]
        options += [f"nullif({at}g, 2)", f"{at}g % 3", f"CAST({at}v AS INT)"]
        options += [f"{at}n + 1", f"{at}n % 4"] if self.has(stream, "n") else []
        options += [f"{at}x", f"least({at}x, 1000)", f"-{at}x"] if self.has(stream, "x") else []
        return self.pick(options)

    def shown(self, stream: str, at: str) -> str:
        """Anything that can stand in a select list."""
        if self.chance(0.4):
            return self.number(stream, at)
        options = [f"{at}k", f"upper({at}k)", f"concat({at}k, '-')", f"length({at}k)", f"{at}g IS NULL"]
        options += [f"{at}v / {at}g", f"sqrt({at}v)", f"ln({at}v)", f"exp({at}v / 100)", f"power({at}v, 2)"]
        options += [f"substring({at}k, 2, 2)", f"{at}k LIKE '%e%'", f"{at}ts + INTERVAL '90' SECOND"]
        options += [f"second({at}ts)", f"date_trunc('minute', {at}ts)", f"{at}k IN ('red', 'it\\'s')"]
        options += [f"NOT {at}flag", f"{at}flag OR {at}v > 0"] if self.has(stream, "flag") else []
        return self.pick(options)

    def condition(self, stream: str, at: str) -> str:
        options = [f"{at}v > {self.rng.randrange(-20, 60)}", f"{at}k = '{self.key()}'", f"{at}g <> 1"]
        options += [f"{at}k IS NOT NULL", f"{at}v BETWEEN -10 AND 70.5", f"{at}g IN (0, 1, 3)"]
        options += [f"{at}k NOT LIKE 'g%'", f"({at}v < 0 OR {at}g = 2)", f"NOT ({at}v > 50)"]
        options += [f"{at}flag", f"{at}flag IS NOT TRUE"] if self.has(stream, "flag") else []
        options += [f"{at}n < 5"] if self.has(stream, "n") else []
        return self.pick(options)

    def key(self) -> str:
        return self.rng.choice(KEYS).replace("'", "\\'")

    def where(self, stream: str, at: str, probability: float = 0.5) -> str:
        parts = [self.condition(stream, at) for _ in range(2) if self.chance(probability)]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def aggregate(self, stream: str, at: str) -> str:
        number = self.number(stream, at)
        options = ["count(*)", f"count({at}v)", f"sum({number})", f"avg({number})", f"min({number})"]
        options += [
            f"max({number})",
            f"min({at}k)",
            f"max({at}ts)",
            f"count({at}k)",
            f"sum({number}) / count(*)",
        ]
        options += [f"{f}({number})" for f in ("var_samp", "var_pop", "stddev_samp", "stddev_pop", "median")]
        options += [
            f"approx_count_distinct({at}{self.pick(['k', 'g', 'v'])})",
            f"max({number}) - min({number})",
        ]
        return self.pick(options)

    def aggregates(self, stream: str, at: str) -> list[str]:
        count = self.rng.randrange(1, 4)
        return [f"{self.aggregate(stream, at)} AS a{i}" for i in range(count)]

    def having(self, at: str) -> str:
        if not self.chance(0.35):
            return ""
        options = ["count(*) > 1", f"sum({at}v) > 20", f"avg({at}v) <= 30", f"max({at}v) IS NOT NULL"]
        options += [f"min({at}g) < 2 AND count({at}v) > 0", f"max({at}v) > min({at}v)"]
        return f" HAVING {self.pick(options)}"

    # Windows.

    def window(self) -> Window:
        """Often the range is no multiple of the slide."""
        slide = self.rng.choice((1, 2, 3, 5, 7, 10, 20))
        longest = min(60, slide * 12)
        size = slide if self.chance(0.2) else self.rng.randrange(slide, longest + 1)
        return size, slide, self.form()

    def grouped(self, stream: str, keys: list[str], shown: list[str], window: Window) -> str:
        """A window aggregate in one of the three forms."""
        size, slide, form = window
        ends, by = ["window_start", "window_end"], list(keys)
        match form:
            case "spark":
                source = stream
                ends = ["window.start AS window_start", "window.end AS window_end"]
                by = [f"window(ts, '{size} seconds', '{slide} seconds')", *by]
            case "cql":
                source = f"{stream} [RANGE {size} SECONDS SLIDE {slide} SECONDS]"
            case _:
                lengths = f"INTERVAL '{slide}' SECOND, INTERVAL '{size}' SECOND"
                source = f"TABLE(HOP(TABLE {stream}, DESCRIPTOR(ts), {lengths}))"
                by = ["window_start", "window_end", *by]
        listed = ", ".join([*ends, *keys, *shown])
        group = f" GROUP BY {', '.join(by)}" if by else ""
        return f"SELECT {listed} FROM {source}{self.where(stream, '')}{group}{self.having('')}"

    def form(self) -> str:
        return self.pick(["spark", "cql", "hop"])

    def keys(self) -> list[str]:
        return self.rng.choice(([], ["k"], ["g"], ["k", "g"]))

    # Joins.

    def interval(self, seconds: int) -> str:
        return self.pick([f"INTERVAL {seconds} SECONDS", f"INTERVAL '{seconds}' SECOND"])

    def bounds(self, left: str, right: str) -> str:
        before, after = self.rng.randrange(0, 4), self.rng.randrange(1, NEAR)
        low, high = self.interval(before), self.interval(after)
        forms = [f"{right}.ts BETWEEN {left}.ts - {low} AND {left}.ts + {high}"]
        forms += [f"{right}.ts >= {left}.ts AND {right}.ts < {left}.ts + {high}"]
        forms += [f"{left}.ts <= {right}.ts + {low} AND {right}.ts <= {left}.ts + {high}"]
        return self.pick(forms)

    def joined(self, count: int, *, cql: bool) -> tuple[str, list[tuple[str, str]]]:
        """FROM and WHERE of a join of `count` streams, and its (stream, alias) items."""
        items = [(self.stream(), alias) for alias in "abcd"[:count]]
        text = ""
        for number, (stream, alias) in enumerate(items):
            span = f" [RANGE {self.rng.randrange(1, NEAR)} SECONDS]" if cql else ""
            item = f"{stream}{span} AS {alias}"
            if number == 0:
                text = item
                continue
            other = items[self.rng.randrange(number)][1]
            keys = self.rng.choice((("k", "g"), ("k",), ("g",)))
            on = [f"{alias}.{key} = {other}.{key}" for key in keys]
            on += [] if cql else [self.bounds(items[number - 1][1], alias)]
            on += [f"{alias}.v > {other}.v"] if self.chance(0.2) else []
            text += f" JOIN {item} ON {' AND '.join(on)}"
        first = items[0]
        return text + self.where(first[0], f"{first[1]}.", 0.3), items

    def with_table(self, stream: str) -> tuple[str, bool]:
        """A stream joined with the table, and whether rows without a match stay."""
        outer = self.chance(0.5)
        on = "d.g = s.g" + (" AND d.weight > 0" if self.chance(0.3) else "")
        return f"{stream} AS s {'LEFT ' if outer else ''}JOIN dims AS d ON {on}", outer


def _stateless(w: _Writer) -> str:
    stream = w.stream()
    at = w.pick(["", "s."])
    shown = [f"{w.shown(stream, at)} AS c{i}" for i in range(w.rng.randrange(1, 4))]
    if w.chance(0.15):
        shown = ["*"]
    return f"SELECT {', '.join(shown)} FROM {stream}{' AS s' if at else ''}{w.where(stream, at)}"


def _window_aggregate(w: _Writer) -> str:
    stream = w.stream()
    return w.grouped(stream, w.keys(), w.aggregates(stream, ""), w.window())


def _stream_join(w: _Writer) -> str:
    text, items = w.joined(w.rng.choice((2, 2, 2, 3, 4)), cql=w.chance(0.5))
    shown = [f"{alias}.ts AS t{i}, {alias}.v AS v{i}" for i, (_, alias) in enumerate(items)]
    shown += [f"{w.shown(*_qualified(w, items))} AS c{i}" for i in range(2)]
    return f"SELECT {', '.join(shown)} FROM {text}"


def _qualified(w: _Writer, items: list[tuple[str, str]]) -> tuple[str, str]:
    stream, alias = w.rng.choice(items)
    return stream, f"{alias}."


def _join_then_window(w: _Writer) -> str:
    text, items = w.joined(w.rng.choice((2, 2, 3)), cql=False)
    size, slide, _ = w.window()
    stream, at = _qualified(w, items)
    shown = ["window.end AS at", f"{at}k AS k", *w.aggregates(stream, at)]
    timed = w.rng.choice(items)[1]
    window = f"window({timed}.ts, '{size} seconds', '{slide} seconds')"
    return f"SELECT {', '.join(shown)} FROM {text} GROUP BY {window}, {at}k{w.having(at)}"


def _table_join(w: _Writer) -> str:
    stream = w.stream()
    source, outer = w.with_table(stream)
    shown = [f"{w.shown(stream, 's.')} AS c{i}" for i in range(2)]
    where = w.where(stream, "s.") or (" WHERE d.label IS NULL" if outer and w.chance(0.5) else "")
    return f"SELECT s.ts, s.g, d.label, d.weight * s.v AS wv, {', '.join(shown)} FROM {source}{where}"


def _table_join_then_window(w: _Writer) -> str:
    stream, (size, slide, _) = w.stream(), w.window()
    source, _ = w.with_table(stream)
    shown = ["window.end AS at", "d.label", "max(d.weight) AS heavy", *w.aggregates(stream, "s.")]
    window = f"window(s.ts, '{size} seconds', '{slide} seconds')"
    by = f" GROUP BY {window}, d.label{w.having('s.')}"
    return f"SELECT {', '.join(shown)} FROM {source}{w.where(stream, 's.')}{by}"


def _nested(w: _Writer) -> str:
    """An aggregate over the rows of an aggregate, in the same window."""
    total = w.pick(["sum(v)", "max(v)", "count(*)", "avg(v)"])
    inner = w.grouped(w.stream(), ["k", "g"], [f"{total} AS total"], w.window())
    outer = w.pick(["max(total)", "min(total)", "sum(total)", "avg(total)", "count(total)"])
    key = w.pick(["k", "g"])
    by = f"GROUP BY window_start, window_end, {key}"
    return f"SELECT window_end AS at, {key}, {outer} AS top, count(*) AS n FROM ({inner}) AS p {by}"


def _window_join(w: _Writer) -> str:
    """Two aggregates whose windows end together: the same slide, ranges that differ by slides."""
    slide = w.rng.choice((2, 3, 5, 10))
    size = w.rng.randrange(slide, slide * 4)
    other = size + slide * w.rng.randrange(0, 4)
    form = w.form()
    sizes = w.rng.sample((size, other), 2)
    measures = [w.pick(["sum(v)", "avg(v)", "count(*)"]) for _ in sizes]
    halves = [
        w.grouped(w.stream(), ["k"], [f"{m} AS m"], (s, slide, form))
        for s, m in zip(sizes, measures, strict=True)
    ]
    on = "a.k = b.k AND a.window_end = b.window_end" if form != "cql" or w.chance(0.5) else "a.k = b.k"
    where = " WHERE a.m > b.m" if w.chance(0.3) else ""
    shown = "a.window_end AS at, a.k, a.m AS am, b.m AS bm, a.m - b.m AS gap"
    return f"SELECT {shown} FROM ({halves[0]}) AS a JOIN ({halves[1]}) AS b ON {on}{where}"


def _correlated(w: _Writer) -> str:
    """Rows compared with an aggregate of their own window."""
    stream, (size, slide, _) = w.stream(), w.window()
    span = f"[RANGE {size} SECONDS SLIDE {slide} SECONDS]"
    own = w.pick(["max(p.v)", "avg(p.v)", "min(p.v)", "sum(p.v)"])
    match = w.pick([" WHERE p.k = r.k", " WHERE p.g = r.g AND p.v > -20", "", " WHERE p.v > 0"])
    share = w.pick(["0.5 * ", "", "2 * "])
    comparison = w.pick([">", ">=", "<"])
    inner = f"(SELECT {own} FROM {stream} {span} AS p{match})"
    shown = "r.window_end AS at, r.ts, r.k, r.g, r.v"
    return f"SELECT {shown} FROM {stream} {span} AS r WHERE r.v {comparison} {share}{inner}"


KINDS: dict[str, tuple[Callable[[_Writer], str], int]] = {
    "stateless": (_stateless, 1),
    "window_aggregate": (_window_aggregate, 5),
    "stream_join": (_stream_join, 3),
    "join_then_window": (_join_then_window, 2),
    "table_join": (_table_join, 1),
    "table_join_then_window": (_table_join_then_window, 1),
    "nested": (_nested, 1),
    "window_join": (_window_join, 2),
    "correlated": (_correlated, 2),
}
"""How each kind of query is written, and how often it is drawn."""


def random_case(rng: random.Random, kind: str | None = None) -> Case:
    """A query of the given kind (or of any) with its streams, its table and their rows."""
    names = NAMES[: rng.randrange(2, 4)]
    streams = {name: random_stream(rng, name) for name in names}
    table = random_table(rng)
    chosen = kind or rng.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
    sql = KINDS[chosen][0](_Writer(rng, streams))
    start, length = rng.choice(STARTS) * SECOND, rng.randrange(60, 300) * SECOND
    most = 100 if "join" in chosen else 200
    batches = {
        name: random_batches(rng, stream, rng.randrange(30, most), start, length)
        for name, stream in streams.items()
    }
    return Case(chosen, sql, streams, {"dims": table}, batches, {"dims": table_rows(table)})
