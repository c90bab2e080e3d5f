"""A day of event time through a tree, without a JVM: what is kept is looked at every hour.

Keys come and go, so whatever is kept for a key that is gone would show as growth.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pyarrow as pa

from headrace.catalog.model import FileSource, Format, Stream
from headrace.plan.placed import shape_of
from headrace.plan.types import DataType
from tests.property.generate_trees import SECOND, STREAM, member_of, table_of
from tests.property.tree_judge import Judge
from tests.property.tree_loop import Loop

HOUR = 3600 * SECOND
START = 1_700_000_000 * SECOND
_EVERY = 600 * SECOND
KEYS_AT_ONCE, NEW_KEYS = 40, 40
"""A key lives for an hour; every hour has as many new ones."""
DAY_STREAM = Stream(
    name=STREAM,
    columns={"ts": DataType.TIMESTAMP, "k": DataType.INT, "v": DataType.DOUBLE, "s": DataType.STRING},
    time="ts",
    watermark=30 * SECOND,
    source=FileSource(path="in", format=Format.PARQUET),
)
DAY_QUERIES = {
    "longest": (
        f"SELECT window_start, k, avg(v) AS m FROM {STREAM} [RANGE 2 HOURS SLIDE 15 MINUTES] GROUP BY k"
    ),
    "uneven": (
        f"SELECT window_start, k, max(v) AS top, count(*) AS n FROM {STREAM} "
        "[RANGE 25 MINUTES SLIDE 7 MINUTES] WHERE v > 5 GROUP BY k"
    ),
    "spread": f"SELECT window_end, stddev_samp(v) AS sd FROM {STREAM} [RANGE 10 MINUTES SLIDE 3 MINUTES]",
    "distinct": (
        f"SELECT window_end, approx_count_distinct(k) AS n FROM {STREAM} [RANGE 30 MINUTES SLIDE 10 MINUTES]"
    ),
    "words": f"SELECT window_end, k, min(s) AS s FROM {STREAM} [RANGE 5 MINUTES SLIDE 5 MINUTES] GROUP BY k",
}
LONGEST = 2 * HOUR


@dataclass(frozen=True, slots=True)
class Sample:
    """What is kept at the end of an hour: entries and bytes of the stores, keys that have a code."""

    hour: int
    entries: int
    bytes: int
    keys: int


def day_batches(hours: int, rng: random.Random, rows_an_hour: int = 900) -> list[pa.Table]:
    """Batches of ten minutes, rows out of order by less than the watermark's delay."""
    found = []
    per_batch = rows_an_hour * _EVERY // HOUR
    for number in range(hours * HOUR // _EVERY):
        start = START + number * _EVERY
        oldest = (start - START) * NEW_KEYS // HOUR
        times = sorted(start + rng.randrange(_EVERY) for _ in range(per_batch))
        rows: list[dict[str, object]] = [
            {
                "ts": time - rng.randrange(20 * SECOND),
                "k": oldest + rng.randrange(KEYS_AT_ONCE),
                "v": rng.randrange(400) / 4,
                "s": rng.choice(("a", "b", None)),
            }
            for time in times
        ]
        found.append(table_of(DAY_STREAM, rows))
    return found


def play_day(hours: int = 24, *, restores: bool = True) -> tuple[list[Sample], list[str]]:
    """What was kept every hour, and what was wrong with the answers."""
    rng = random.Random(24)
    members = {name: member_of(DAY_STREAM, name, sql) for name, sql in DAY_QUERIES.items()}
    loop = Loop(shape_of(tuple(members.values())), STREAM, DAY_STREAM.watermark, buckets=2, rng=rng)
    loop.start(tuple(members.values()))
    batches, marks, samples = day_batches(hours, rng), list[int](), list[Sample]()
    for number, batch in enumerate(batches, start=1):
        marks.append(loop.watermark.before)
        loop.batch(batch)
        if number * _EVERY % HOUR == 0:
            samples.append(Sample(number * _EVERY // HOUR, *loop.kept(), loop.known_keys()))
            if restores and rng.random() < 0.2:
                loop.restore()
    loop.close()
    judge = Judge(DAY_STREAM, batches, marks)
    wrong = [judge.problems(m, loop.given(m), loop.late[name])[2] for name, m in members.items()]
    return samples, [problem for problems in wrong for problem in problems]
