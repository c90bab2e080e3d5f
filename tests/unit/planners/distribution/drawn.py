"""Distribution problems at random: shared operators, streams at home somewhere, sites that differ."""

from __future__ import annotations

from random import Random

from headrace.planners.distribution.problem import Link, Operator, Problem, Query, Site, Stream


def drawn(
    rng: Random, operators: int, sites: int, *, alike: bool = False, limits: bool = False, tree: bool = False
) -> Problem:
    """`alike`: sites do not differ. `limits`: some memory and connections are scarce. `tree`: nothing is
    shared and nothing is at home at a site."""
    names = [f"s{i}" for i in range(sites)]
    streams = tuple(
        Stream(f"in{i}", rng.uniform(1, 100), None if tree else rng.choice([None, *names]))
        for i in range(rng.randint(1, 3))
    )
    found: list[Operator] = []
    free: list[str] = []
    for i in range(operators):
        count = min(rng.choice([0, 1, 1, 2]), len(free))
        inputs = rng.sample(free, count)
        free = [name for name in free if name not in inputs or (not tree and rng.random() < 0.3)]
        if not inputs or rng.random() < 0.2:
            inputs.append(rng.choice(streams).id)
        free.append(f"o{i}")
        found.append(
            Operator(
                f"o{i}",
                tuple(inputs),
                cpu=rng.choice([0.1, 0.5, 1.0, rng.uniform(0, 2)]),
                rate=rng.uniform(0, 100),
                state_bytes=rng.choice([0.0, rng.uniform(0, 1000)]),
                kind=rng.choice(["filter", "join"]),
            )
        )
    read = {name for one in found for name in one.inputs}
    queries = tuple(
        Query(f"q{i}", (one.id,), None if tree else rng.choice([None, *names]))
        for i, one in enumerate(one for one in found if one.id not in read)
    )
    return Problem(
        tuple(_site(name, rng, alike=alike, limits=limits) for name in names),
        tuple(found),
        queries,
        streams,
        (Link(names[0], names[-1], rng.uniform(50, 300)),) if limits and sites > 1 else (),
        connection_cpu=0.0 if tree else rng.choice([0.0, 0.05]),
        row_cpu=0.0 if tree else rng.choice([0.0, 0.001]),
    )


def _site(name: str, rng: Random, *, alike: bool, limits: bool) -> Site:
    if alike:
        return Site(name)
    cpu = rng.choice([1.0, 2.0, rng.uniform(0.5, 4)])
    if not limits:
        return Site(name, cpu, cpu_other=rng.choice([0.0, 0.2]))
    return Site(
        name,
        cpu,
        memory=rng.uniform(500, 6000),
        connections=rng.randint(4, 20),
        network=rng.uniform(100, 900),
    )
