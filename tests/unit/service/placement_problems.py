"""Placement problems as JSON, drawn at random: links and matrices, texts and numbers, filters and widths."""

from __future__ import annotations

import random
from typing import Any

Json = Any


def drawn(seed: int, *, sites: int = 6, queries: int = 4, streams: int = 4, plain: bool = False) -> Json:
    rng = random.Random(seed)
    names = [f"s{i}" if rng.random() < 0.5 else i for i in range(sites)]
    problem: dict[str, Json] = {"sites": names}
    if seed % 2:
        problem["links"] = _links(rng, names)
    else:
        problem["costs"] = _costs(rng, sites)
    known = [chr(ord("A") + i) for i in range(streams + 1)]
    problem["streams"] = {
        name: {"site": rng.choice(names), "rate": rng.uniform(1, 50), "width": rng.choice([1, 4])}
        for name in known
    }
    pairs = [(a, b) for i, a in enumerate(known) for b in known[:i] if rng.random() < 0.8]
    problem["selectivities"] = [[a, b, rng.uniform(0.001, 0.2)] for a, b in pairs]
    problem["queries"] = [
        {"id": i if rng.random() < 0.3 else f"x{i}", "sink": rng.choice(names)}
        | {"streams": rng.sample(known, rng.randint(1, streams))}
        for i in range(queries)
    ]
    if not plain:
        _cut(rng, problem)
    return problem


def _links(rng: random.Random, names: list[Json]) -> Json:
    """A tree and a few more, some for nothing, some twice."""
    found = [[names[i], names[rng.randrange(i)], rng.choice([0, 1, 2.5, 7])] for i in range(1, len(names))]
    found += [[*rng.choices(names, k=2), rng.uniform(0, 9)] for _ in names]
    return found + [[a, b, cost + 1] for b, a, cost in found[:2]]


def _costs(rng: random.Random, size: int) -> Json:
    """One way dearer than the other; a ring keeps all connected."""
    rows = [[rng.choice([None, None, 0, 3, rng.uniform(0, 9)]) for _ in range(size)] for _ in range(size)]
    for i in range(size):
        rows[i][(i + 1) % size] = rng.uniform(0.1, 4)
    return rows


def _cut(rng: random.Random, problem: Json) -> None:
    """Filters inside each other, and columns that some queries do not want."""
    problem["filters"] = {}
    for name in problem["streams"]:
        wide, other = f"{name}-wide", f"{name}-other"
        problem["filters"][f"{name}-few"] = {"stream": name, "selectivity": 0.1, "within": [f"{name}-half"]}
        problem["filters"][f"{name}-half"] = {"stream": name, "selectivity": 0.5, "within": [wide]}
        problem["filters"][wide] = {"stream": name, "selectivity": 0.8}
        problem["filters"][other] = {"stream": name, "selectivity": 0.15}
    for query in problem["queries"]:
        query["filters"] = {
            name: rng.choice([f for f in problem["filters"] if f.startswith(name)])
            for name in query["streams"]
            if rng.random() < 0.6
        }
        query["widths"] = {
            name: rng.choice([0.25, 0.5, 1]) * problem["streams"][name]["width"]
            for name in query["streams"]
            if rng.random() < 0.4
        }
