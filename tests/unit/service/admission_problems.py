"""Admission problems as JSON, drawn at random: texts and numbers, rates and selectivities, tight limits."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

Json = Any


def drawn(seed: int, *, hosts: int = 4, streams: int = 5, queries: int = 8, zeros: bool = False) -> Json:
    """`zeros`: some rates, selectivities and costs are 0."""
    rng = random.Random(seed)
    machines = [f"h{i}" if rng.random() < 0.5 else i for i in range(hosts)]
    names = [f"s{i}" if rng.random() < 0.5 else 10 + i for i in range(streams)]
    problem: dict[str, Json] = {
        "hosts": [_host(rng, name, memory=seed % 4 == 0) for name in machines],
        "link_bandwidth": _links(rng, hosts) if seed % 2 else rng.choice([8, 100]),
        "streams": [
            {"id": name, "host": rng.choice(machines), "rate": rng.choice([0 if zeros else 2, 1, 3.5, 4])}
            for name in names
        ],
        "queries": [_query(rng, names, i) for i in range(queries)],
    }
    if seed % 4 == 0:
        problem["memory_cost"] = 0.5
    if seed % 5:
        problem["operator_cost"] = rng.choice([0 if zeros else 1.5, 0.5, 2])
    _add_rates(rng, problem, names, seed % 3, least=0 if zeros else 0.01)
    return problem


def _host(rng: random.Random, name: Json, *, memory: bool) -> Json:
    host = {"id": name, "cpu": rng.uniform(0, 20), "in": rng.choice([0, 6, 12]), "out": rng.uniform(2, 12)}
    return host | ({"memory": rng.uniform(2, 10)} if memory and rng.random() < 0.7 else {})


def _links(rng: random.Random, size: int) -> Json:
    return [[None if i == j else rng.choice([0, 3, 5, 9]) for j in range(size)] for i in range(size)]


def _query(rng: random.Random, names: list[Json], number: int) -> Json:
    query: dict[str, Json] = {"streams": rng.sample(names, rng.choice([1, 2, 2, 2, 3, 3, 4]))}
    if rng.random() < 0.8:
        query["id"] = number if rng.random() < 0.3 else f"x{number}"
    if rng.random() < 0.3:
        query["priority"] = rng.uniform(0.1, 5)
    return query


def _add_rates(rng: random.Random, problem: Json, names: list[Json], kind: int, least: float) -> None:
    """Rates, selectivities, or one selectivity for all; of the first two, some sets that no query needs are
    left out."""
    if kind == 2:
        problem["selectivities"] = rng.choice([0.1, least])
        return
    sets = [some for size in range(2, len(names) + 1) for some in combinations(names, size)]
    wanted = {frozenset(query["streams"]) for query in problem["queries"]}
    kept = [some for some in sets if len(some) == 2 or frozenset(some) in wanted or rng.random() < 0.5]
    # A four-way join needs some three-way one, or two pairs: those are all there.
    value = [[rng.sample(some, len(some)), rng.choice([least, 0.2, 0.5, 2])] for some in kept]
    problem["rates" if kind else "selectivities"] = value
