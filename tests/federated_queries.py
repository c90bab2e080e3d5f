"""Random queries over windows, for tests of federation: those of tests/property and more shapes that can be
split, over rows that come late, in batches that are cut anywhere."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from headrace.catalog.model import Stream, Table
from tests.property.generate_data import SECOND
from tests.property.generate_queries import Case, _Writer, random_case

Writes = Callable[[_Writer], str]
_OLD = (
    "window_aggregate",
    "join_then_window",
    "table_join_then_window",
    "nested",
    "window_join",
    "correlated",
)


@dataclass(frozen=True, slots=True)
class World:
    """A query, and micro-batches with the rows of every stream."""

    kind: str
    sqls: tuple[str, ...]
    """The queries that are members of one job."""
    streams: dict[str, Stream]
    tables: dict[str, Table]
    batches: list[dict[str, pa.Table]]
    table_rows: dict[str, pa.Table]


def _span(w: _Writer) -> tuple[str, str]:
    """Two windows that end together, of the same slide; also of milliseconds."""
    if w.chance(0.25):
        slide, unit = w.rng.choice((500, 700, 1500)), "MILLISECONDS"
    else:
        slide, unit = w.rng.choice((1, 2, 3, 5)), "SECONDS"
    step = 100 if unit == "MILLISECONDS" else 1
    size = slide + w.rng.randrange(slide * 3) // step * step
    other = size + slide * w.rng.randrange(0, 4)
    first, second = w.rng.sample((size, other), 2)
    return f"[RANGE {first} {unit} SLIDE {slide} {unit}]", f"[RANGE {second} {unit} SLIDE {slide} {unit}]"


def _rows_of_windows(w: _Writer) -> str:
    stream, (span, _) = w.stream(), _span(w)
    shown = ", ".join(["r.window_start", "r.window_end", "r.ts", f"{w.shown(stream, 'r.')} AS c"])
    return f"SELECT {shown} FROM {stream} {span} AS r{w.where(stream, 'r.', 0.7)}"


def _rows_with_rows(w: _Writer) -> str:
    one, other, (span, wider) = w.stream(), w.stream(), _span(w)
    on = w.pick(["a.k = b.k AND a.g = b.g", "a.k = b.k AND a.v < b.v", "a.g = b.g AND a.ts < b.ts"])
    shown = ", ".join([_ends(w), "a.k", "a.ts AS at_a", "b.ts AS at_b", f"{w.number(other, 'b.')} AS c"])
    return f"SELECT {shown} FROM {one} {span} AS a JOIN {other} {wider} AS b ON {on}{w.where(one, 'a.', 0.5)}"


def _ends(w: _Writer, at: str = "a.") -> str:
    return w.pick(
        [
            f"{at}window_start, {at}window_end",
            f"{at}window_end AS e",
            f"{at}window_start AS x, {at}window_end AS y",
        ]
    )


def _aggregated_join(w: _Writer) -> str:
    one, other, (span, wider) = w.stream(), w.stream(), _span(w)
    shown = [_ends(w), "a.k", *w.aggregates(other, "b."), "count(*) AS n"]
    where = w.where(one, "a.", 0.4)
    source = f"{one} {span} AS a JOIN {other} {wider} AS b ON a.k = b.k AND a.g = b.g"
    return f"SELECT {', '.join(shown)} FROM {source}{where} GROUP BY a.k{w.having('b.')}"


def _filtered_aggregates(w: _Writer) -> str:
    stream, (span, _) = w.stream(), _span(w)
    key = w.pick(
        ["k", "g % 2", "CASE WHEN v > 10 THEN 'high' ELSE k END", "v IS NULL", "date_trunc('minute', ts)"]
    )
    shown = ["window_start", "window_end", f"{key} AS key"]
    for i, call in enumerate(("sum(v)", "count(*)", "avg(v)", "min(k)", "stddev(v)", "max(ts)")):
        if w.chance(0.5):
            shown.append(f"{call} FILTER (WHERE {w.condition(stream, '')}) AS f{i}")
    shown.append("approx_count_distinct(v) AS d" if w.chance(0.3) else "count(v) AS d")
    group = w.pick(["key", "3"])
    return f"SELECT {', '.join(shown)} FROM {stream} {span}{w.where(stream, '', 0.4)} GROUP BY {group}"


def _with_table_above(w: _Writer) -> str:
    """A table joined with results of windows, and what passes that."""
    stream, (span, _) = w.stream(), _span(w)
    inner = f"SELECT window_start, window_end, g, {', '.join(w.aggregates(stream, ''))} FROM {stream} {span}"
    inner += f"{w.where(stream, '', 0.3)} GROUP BY g"
    kind = w.pick(["JOIN", "LEFT JOIN"])
    where = w.pick(["", " WHERE d.weight > 0", " WHERE d.label IS NULL", " WHERE t.a0 IS NOT NULL"])
    source = f"({inner}) AS t {kind} dims AS d ON d.g = t.g"
    if w.chance(0.4):
        by = "GROUP BY t.window_start, t.window_end, d.label"
        return f"SELECT t.window_start, t.window_end, d.label, count(t.a0) AS n FROM {source}{where} {by}"
    return f"SELECT t.window_start, t.window_end, t.g, t.a0, d.label FROM {source}{where}"


def _beside(w: _Writer) -> str:
    """Two or three aggregates joined, with conditions above."""
    span, wider = _span(w)
    spans = [span, wider, span][: w.rng.choice((2, 2, 3))]
    halves = []
    for i, one in enumerate(spans):
        stream = w.stream()
        call = w.pick(["sum(v)", "avg(v)", "count(*)", "max(v)", "min(v)", "stddev_pop(v)", "median(v)"])
        halves.append(
            f"(SELECT window_start, window_end, k, g, {call} AS m FROM {stream} {one}"
            f"{w.where(stream, '', 0.4)} GROUP BY k, g) AS h{i}"
        )
    text = halves[0]
    for i, half in enumerate(halves[1:], start=1):
        text += f" JOIN {half} ON h{i}.k = h0.k AND h{i}.g = h{i - 1}.g"
    where = w.pick(
        ["", " WHERE h0.m > 0", " WHERE h0.g + h1.g > 1", " WHERE h1.m IS NOT NULL AND h0.k <> ''"]
    )
    return f"SELECT {_ends(w, 'h0.')}, h0.k, h0.g, h0.m AS m0, h1.m AS m1 FROM {text}{where}"


def _counted_above(w: _Writer) -> str:
    """CQ1's shape: rows counted that stand out in their own window; sometimes by two comparisons."""
    stream, (span, wider) = w.stream(), _span(w)
    both = []
    for _ in range(w.rng.choice((1, 1, 2))):
        call = w.pick(["max(b.v)", "avg(b.v)", "min(b.v)", "sum(b.v)"])
        other, match = w.pick([span, wider]), w.pick(["b.k = a.k", "b.g = a.g AND b.k = a.k", "b.v > 0"])
        inner = f"(SELECT {call} FROM {stream} {other} AS b WHERE {match})"
        both.append(f"a.v {w.pick(['>', '<', '>='])} {w.pick(['0.5 * ', ''])}{inner}")
    both += [w.condition(stream, "a.")] if w.chance(0.5) else []
    shown = f"a.window_start, a.window_end, a.k, {', '.join(w.aggregates(stream, 'a.'))}"
    return f"SELECT {shown} FROM {stream} {span} AS a WHERE {' AND '.join(both)} GROUP BY a.k"


def _renamed(w: _Writer) -> str:
    """A window over a subquery with another name for the event time, and a table below it."""
    stream, (size, slide, _) = w.stream(), w.window()
    source, _ = w.with_table(stream)
    inner = f"SELECT s.ts AS t, s.k || '!' AS kk, s.v * 2 AS vv, d.weight AS w FROM {source}"
    inner += w.where(stream, "s.", 0.5)
    calls = w.pick(
        ["sum(vv) AS a, max(w) AS b", "avg(vv * w) AS a, count(kk) AS b", "median(vv) AS a, min(t) AS b"]
    )
    shown = w.pick(["window.start AS s, window.end AS e, ", "window.end AS e, ", ""])
    having = w.pick(["", " HAVING count(*) > 2", " HAVING max(vv) > 5"])
    by = f"GROUP BY window(t, '{size} seconds', '{slide} seconds'), kk{having}"
    return f"WITH i AS ({inner}) SELECT {shown}kk, {calls} FROM i WHERE vv > -50 {by}"


def _twice(w: _Writer) -> str:
    """An aggregate of an aggregate of an aggregate, with conditions between."""
    stream, (span, _) = w.stream(), _span(w)
    one = f"SELECT window_start, window_end, k, g, sum(v) AS s, count(*) AS n FROM {stream} {span}"
    one += f"{w.where(stream, '', 0.4)} GROUP BY k, g"
    two = f"SELECT window_start, window_end, k, max(s) AS top, sum(n) AS n FROM ({one}) AS x"
    two += w.pick(["", " WHERE s > 0", " WHERE n > 1"]) + " GROUP BY window_start, window_end, k"
    if w.chance(0.5):
        return two
    three = w.pick(["avg(top)", "stddev_pop(top)", "min(k)", "count(*)"])
    return (
        f"SELECT window_start, window_end, {three} AS z FROM ({two}) AS y GROUP BY window_start, window_end"
    )


def _joined_streams(w: _Writer) -> str:
    """A join of streams below two windows that are joined, or compared with themselves."""
    text, items = w.joined(2, cql=w.chance(0.5))
    (_, first), (_, at) = items
    size, slide, _ = w.window()
    inner = f"SELECT {first}.ts AS t, {at}.ts AS u, {at}.k AS k, {at}.v AS v, {first}.g AS g FROM {text}"
    time, few = w.pick(["t", "t", "u"]), w.pick(["", " WHERE g > 0"])
    one = f"SELECT window_start, window_end, k, sum(v) AS s FROM i GROUP BY {_opened('t', size, slide)}, k"
    two = f"SELECT window_start, window_end, k, count(*) AS n FROM i{few}"
    two += f" GROUP BY {_opened(time, size + slide, slide)}, k"
    if w.chance(0.3):
        return f"WITH i AS ({inner}) {two}"
    on = "x.k = y.k AND x.window_end = y.window_end"
    shown = f"{_ends(w, 'x.')}, x.k, x.s, y.n"
    return f"WITH i AS ({inner}) SELECT {shown} FROM ({one}) AS x JOIN ({two}) AS y ON {on}"


def _opened(time: str, size: int, slide: int) -> str:
    return f"window({time}, '{size} seconds', '{slide} seconds')"


NEW: dict[str, Writes] = {
    "rows_of_windows": _rows_of_windows,
    "rows_with_rows": _rows_with_rows,
    "aggregated_join": _aggregated_join,
    "filtered_aggregates": _filtered_aggregates,
    "with_table_above": _with_table_above,
    "beside": _beside,
    "counted_above": _counted_above,
    "renamed": _renamed,
    "twice": _twice,
    "joined_streams": _joined_streams,
}
KINDS = (*_OLD, *NEW)


def random_world(rng: random.Random, kind: str | None = None) -> World:
    chosen = kind or rng.choice(KINDS)
    case = random_case(rng, chosen if chosen in _OLD else "window_join")
    writer = _Writer(rng, case.streams)
    sqls = [NEW[chosen](writer) if chosen in NEW else case.sql]
    while rng.random() < 0.3 and len(sqls) < 3:
        sqls.append(NEW[rng.choice(list(NEW))](writer))
    return World(chosen, tuple(sqls), case.streams, case.tables, _batches(rng, case), case.table_rows)


def _batches(rng: random.Random, case: Case) -> list[dict[str, pa.Table]]:
    """The rows of all streams by when they come, cut at common instants; some batches are empty. Rows may be
    later than the watermark allows, and time may leap."""
    late, leap = rng.choice((0.0, 1.0, 1.0, 4.0)), rng.choice((0, 0, 0, 100_000 * SECOND))
    come = {
        name: _coming(rng, stream, pa.concat_tables(case.batches[name]), late, leap)
        for name, stream in case.streams.items()
    }
    first = min(times[0] for _, times in come.values())
    last = max(times[-1] for _, times in come.values())
    cuts = sorted(rng.choice((rng.randint(first, last), first, last)) for _ in range(rng.randrange(1, 9)))
    edges = [first - 1, *cuts, last]
    return [
        {name: _between(rows, times, low, high) for name, (rows, times) in come.items()}
        for low, high in pairwise(edges)
    ]


def _coming(
    rng: random.Random, stream: Stream, rows: pa.Table, late: float, leap: int
) -> tuple[pa.Table, list[int]]:
    """The rows in the order in which they come, and when each comes."""
    known = pc.cast(rows[stream.time], pa.int64()).to_pylist()
    instants = [one for one in known if one is not None]
    middle = (min(instants) + max(instants)) // 2
    moved = [None if one is None else one + (leap if one > middle else 0) for one in known]
    rows = rows.set_column(
        rows.column_names.index(stream.time), stream.time, pa.array(moved, rows[stream.time].type)
    )
    spread = int(stream.watermark * late)
    come = [(rng.choice(instants) if one is None else one) + rng.randrange(spread + 1) for one in moved]
    order = sorted(range(len(come)), key=come.__getitem__)
    return rows.take(pa.array(order, pa.int64())), [come[k] for k in order]


def _between(rows: pa.Table, times: list[int], low: int, high: int) -> pa.Table:
    return rows.filter(pa.array([low < one <= high for one in times], pa.bool_()))
