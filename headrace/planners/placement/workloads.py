"""Streams and queries to plan: the paper's synthetic and airline workloads (section 4.1.1).

The paper says "uniform" and gives no range, and of the airline only Fig. 5. What is left open is said here,
with the choice taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from headrace.errors import UserError
from headrace.planners.placement.problem import BaseStream, Filter, Network, PlacementProblem, Query, Site

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class RateModel:
    """Uniform ranges of the rates of base streams and of the selectivities of all pairs of streams.

    A joined set of k streams has k rates and k(k-1)/2 selectivities, so with typical values r and s its rate
    is r^k * s^(k(k-1)/2): it grows first and falls later, and the ranges say where it turns."""

    rates: Span
    selectivities: Span


STEADY = RateModel((1.0, 10.0), (0.2, 0.9))
"""The default. Typical rates (geometric means) of 1 to 6 joined streams: 4.7, 11, 14, 9, 3, 0.5. Joins of two
to four streams are somewhat more data than one stream, of five and six less: neither "always join at the
sink" nor "always join at the source" is right."""
SHRINKING = RateModel((1.0, 10.0), (0.01, 0.2))
"""4.7, 1.7, 0.05, ...: nearly every join filters, so joins belong near the sources."""
GROWING = RateModel((1.0, 10.0), (0.6, 1.0))
"""4.7, 18, 53, 129, 250, 390: nearly every join is more data than its inputs."""


def synthetic(
    network: Network,
    rng: np.random.Generator,
    *,
    streams: int = 10,
    queries: int = 100,
    joins: tuple[int, int] = (2, 5),
    model: RateModel = STEADY,
    reuse: bool = True,
) -> PlacementProblem:
    """Uniform rates, selectivities of all pairs, source sites and sinks; each query joins a random set of
    joins + 1 streams. Sources may share a site, as uniform placement has it."""
    if not 0 <= joins[0] <= joins[1] < streams:
        raise UserError(f"queries of {joins[0]} to {joins[1]} joins cannot be drawn from {streams} streams")
    names = [f"s{i}" for i in range(streams)]
    made = {
        name: BaseStream(name, int(rng.integers(network.size)), float(rng.uniform(*model.rates)))
        for name in names
    }
    pairs = {frozenset(pair): float(rng.uniform(*model.selectivities)) for pair in combinations(names, 2)}
    drawn = tuple(_synthetic_query(i, names, network.size, rng, joins) for i in range(queries))
    return PlacementProblem(network, made, pairs, drawn, reuse=reuse)


def _synthetic_query(
    number: int, names: list[str], sites: int, rng: np.random.Generator, joins: tuple[int, int]
) -> Query:
    count = int(rng.integers(joins[0], joins[1] + 1)) + 1
    chosen = sorted(rng.choice(len(names), size=count, replace=False).tolist())
    return Query(f"q{number}", tuple(names[i] for i in chosen), int(rng.integers(sites)))


FLIGHTS, CHECK_INS, BAGGAGE, WEATHER, SALES = "flights", "check-ins", "baggage", "weather", "sales"

AIRLINE_RATES = {FLIGHTS: 1500 / 5, CHECK_INS: 240.0, BAGGAGE: 500.0, WEATHER: 450 / 5, SALES: 70.0}
"""Fig. 5, rows per minute."""
FLIGHT_COUNT = 1500
"""1500 flight rows in 5 minutes, one per flight."""
DEPARTING = 125
"""Flights at a gate: 500 bags a minute, 4 per flight and minute (check-ins, 240 / 2, give 120)."""
DESTINATIONS = 450
"""450 weather rows in 5 minutes, one per destination."""
AIRLINE_RANGES = {FLIGHTS: 5.0, CHECK_INS: 1.0, BAGGAGE: 1.0, WEATHER: 5.0, SALES: 1.0}
"""Minutes, from the templates; sales, in none of them, like check-ins."""
TEMPLATES = (0.80, 0.15, 0.05)
"""Shares of gate, terminal and monitoring queries."""
GATE = (FLIGHTS, BAGGAGE, CHECK_INS)
TERMINAL = (FLIGHTS, WEATHER, CHECK_INS, BAGGAGE)


def airline_selectivities() -> dict[frozenset[str], float]:
    """Of the four pairs that the templates and Fig. 5 join: by flight number or by destination.

    A row of a meets the rows of b in b's range and the other way round, and two rows have the same key with
    chance 1 / number of keys. So the rate of the join is  rate_a * rate_b * (range_a + range_b) / keys, and
    the selectivity  (range_a + range_b) / keys:

        flights, check-ins   (5 + 1) / 1500 = 0.004    288 rows a minute
        flights, baggage     (5 + 1) / 1500 = 0.004    600
        flights, weather     (5 + 5) / 450  = 0.0222   600
        flights, sales       (5 + 1) / 450  = 0.0133   280

    Check-ins and baggage of one flight have its number in common too, but that condition follows from the
    other two: counted as well it would make flights, baggage, check-ins 9 rows a minute, not 576. Pairs of
    which neither is flights therefore keep selectivity 1."""
    keys = {CHECK_INS: FLIGHT_COUNT, BAGGAGE: FLIGHT_COUNT, WEATHER: DESTINATIONS, SALES: DESTINATIONS}
    ranges = AIRLINE_RANGES
    return {frozenset({FLIGHTS, b}): (ranges[FLIGHTS] + ranges[b]) / keys[b] for b in keys}


def airline(
    network: Network,
    rng: np.random.Generator,
    *,
    queries: int = 300,
    terminals: int = 6,
    filters: bool = True,
    cross: bool = False,
    reuse: bool = True,
) -> PlacementProblem:
    """80 % gate, 15 % terminal and 5 % monitoring queries in random order, sources and sinks anywhere.

    With `filters`, a gate query takes one of the departing flights (1 in 1500 flight rows), a terminal query
    one terminal's flights; a flight's condition is within its terminal's, so a gate query may read a terminal
    query's joins. The carrier's condition is the same in all terminal queries and left out. Monitoring
    queries are any combination with flights of two and more sources; `cross` adds combinations without
    flights, which no condition joins: their cross products outweigh all else by orders of magnitude."""
    sites = rng.choice(network.size, size=len(AIRLINE_RATES), replace=network.size < len(AIRLINE_RATES))
    streams = {
        n: BaseStream(n, int(site), AIRLINE_RATES[n]) for n, site in zip(AIRLINE_RATES, sites, strict=True)
    }
    kinds = _kinds(queries, rng)
    sinks = rng.integers(network.size, size=queries).tolist()
    made = tuple(
        _airline_query(i, kind, sink, rng, terminals if filters else 0, cross)
        for i, (kind, sink) in enumerate(zip(kinds, sinks, strict=True))
    )
    known = _airline_filters(terminals) if filters else {}
    return PlacementProblem(network, streams, airline_selectivities(), made, reuse=reuse, filters=known)


def _kinds(queries: int, rng: np.random.Generator) -> list[int]:
    """0: gate, 1: terminal, 2: monitoring; in the paper's shares, in random order."""
    gate, terminal = round(TEMPLATES[0] * queries), round(TEMPLATES[1] * queries)
    kinds = [0] * gate + [1] * terminal + [2] * (queries - gate - terminal)
    return [int(kind) for kind in rng.permutation(kinds)]


def _airline_query(
    number: int, kind: int, sink: Site, rng: np.random.Generator, terminals: int, cross: bool
) -> Query:
    """`terminals` 0: no filters."""
    if kind == 2:
        choices = _combinations(cross)
        return Query(f"monitoring-{number}", choices[int(rng.integers(len(choices)))], sink)
    wanted = int(rng.integers(terminals or 1)) if kind else int(rng.integers(DEPARTING))
    name = _terminal(wanted) if kind else _flight(wanted)
    condition = {FLIGHTS: name} if terminals else {}
    template, title = (TERMINAL, "terminal") if kind else (GATE, "gate")
    return Query(f"{title}-{number}", template, sink, condition)


def _combinations(cross: bool) -> list[tuple[str, ...]]:
    names = tuple(AIRLINE_RATES)
    every = [one for size in range(2, len(names) + 1) for one in combinations(names, size)]
    return every if cross else [one for one in every if FLIGHTS in one]


def _airline_filters(terminals: int) -> dict[str, Filter]:
    """Departing flight i leaves from terminal i modulo their number."""
    found = {_terminal(t): Filter(_terminal(t), FLIGHTS, 1 / terminals) for t in range(terminals)}
    for i in range(DEPARTING):
        within = frozenset({_terminal(i % terminals)})
        found[_flight(i)] = Filter(_flight(i), FLIGHTS, 1 / FLIGHT_COUNT, within)
    return found


def _terminal(number: int) -> str:
    return f"terminal {number}"


def _flight(number: int) -> str:
    return f"flight {number}"
