"""Random queries for several sites: joins of up to four streams, windows above them, filters, few columns."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.unit.service.network_sample import HOMES

SITES = ("west", "north", "east", "mid", "south")


def random_queries(rng: random.Random, count: int) -> dict[str, tuple[str, str]]:
    """Site and SQL by name. Some join the same streams in the same way: such joins have several readers."""
    ways = [_joins(rng) for _ in range(2)]
    queries = {}
    for number in range(count):
        streams, text = rng.choice(ways) if rng.random() < 0.7 else _joins(rng)
        sql = _window(rng, streams, text) if rng.random() < 0.4 else _rows(rng, streams, text)
        queries[f"q{number}"] = (rng.choice(SITES), sql)
    return queries


def _joins(rng: random.Random) -> tuple[list[str], str]:
    streams = rng.sample(sorted(HOMES), rng.choice((1, 2, 3, 3, 4)))
    text = f"FROM {streams[0]}"
    for number, new in enumerate(streams[1:], start=1):
        old = rng.choice(streams[:number])
        low, high = rng.randint(-20, 5), rng.randint(6, 25)
        key = rng.choice(("k", "k", "m"))
        text += f"\nJOIN {new} ON {new}.{key} = {old}.{key} AND {new}.ts BETWEEN"
        text += f" {old}.ts {'-' if low < 0 else '+'} INTERVAL {abs(low)} SECONDS"
        text += f" AND {old}.ts + INTERVAL {high} SECONDS"
    return streams, text


def _where(rng: random.Random, streams: Sequence[str]) -> str:
    options = ["{}.s = 'x'", "{}.s <> 'z'", "{}.m < 12", "{}.v > 0", "{}.m + {}.k > 4"]
    parts = [rng.choice(options).replace("{}", name) for name in streams if rng.random() < 0.4]
    return "\nWHERE " + " AND ".join(parts) if parts else ""


def _rows(rng: random.Random, streams: Sequence[str], text: str) -> str:
    columns = [(name, column) for name in streams for column in ("ts", "k", "m", "v", "s")]
    kept = rng.sample(columns, rng.randint(1, min(4, len(columns))))
    items = ", ".join(f"{name}.{column} AS {name}_{column}" for name, column in kept)
    return f"SELECT {items} {text}{_where(rng, streams)}"


def _window(rng: random.Random, streams: Sequence[str], text: str) -> str:
    time, key = rng.choice(streams), rng.choice(streams)
    size, slide = rng.choice((("30", "10"), ("25", "10"), ("20", "20")))
    items = f"window.start, {key}.s, count(*) AS n, max({time}.m) AS top"
    grouped = f"GROUP BY window({time}.ts, '{size} seconds', '{slide} seconds'), {key}.s"
    return f"SELECT {items} {text}{_where(rng, streams)}\n{grouped}"
