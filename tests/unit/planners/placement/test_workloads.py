"""The paper's workloads: shares, ranges, and the airline's rates worked out by hand or by simulation."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest

from headrace.errors import UserError
from headrace.planners.placement.problem import Network, PlacementProblem, Query
from headrace.planners.placement.rates import by_subset, share
from headrace.planners.placement.topologies import paper_network
from headrace.planners.placement.workloads import (
    AIRLINE_RATES,
    GROWING,
    SHRINKING,
    STEADY,
    RateModel,
    airline,
    airline_selectivities,
    synthetic,
)

NETWORK = paper_network(0)


def test_synthetic_is_as_asked() -> None:
    problem = synthetic(NETWORK, np.random.default_rng(1), streams=10, queries=400, joins=(2, 5))
    assert len(problem.streams) == 10 and len(problem.selectivities) == 45 and len(problem.queries) == 400
    assert {len(query.streams) for query in problem.queries} == {3, 4, 5, 6}
    assert all(len(set(query.streams)) == len(query.streams) for query in problem.queries)
    assert all(1 <= stream.rate <= 10 for stream in problem.streams.values())
    assert all(0.2 <= value <= 0.9 for value in problem.selectivities.values())
    assert len({query.sink for query in problem.queries}) > 100
    assert Counter(len(query.streams) for query in problem.queries)[4] == pytest.approx(100, abs=35)


def test_synthetic_is_the_same_for_the_same_seed_only() -> None:
    one, two, other = (synthetic(NETWORK, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert one == two and one.streams != other.streams and one.queries != other.queries


@pytest.mark.parametrize(
    "model,wanted", [(STEADY, [4.7, 11, 14, 9, 3, 0.5]), (GROWING, [4.7, 18, 53, 129, 250, 390])]
)
def test_typical_rates_are_those_in_the_docstrings(model: RateModel, wanted: list[float]) -> None:
    found: list[list[float]] = [[] for _ in range(7)]
    for seed in range(60):
        problem = synthetic(
            NETWORK, np.random.default_rng(seed), streams=6, queries=1, joins=(5, 5), model=model
        )
        for mask, rate in enumerate(by_subset(problem, problem.queries[0])):
            found[mask.bit_count()].append(float(rate))
    for count, typical in enumerate(wanted, 1):
        assert np.exp(np.mean(np.log(found[count]))) == pytest.approx(typical, rel=0.35)


def test_shrinking_shrinks() -> None:
    problem = synthetic(
        NETWORK, np.random.default_rng(3), streams=6, queries=1, joins=(5, 5), model=SHRINKING
    )
    rates = by_subset(problem, problem.queries[0])
    assert rates[0b111111] < rates[0b111] < rates[0b1]


def test_too_many_joins() -> None:
    with pytest.raises(UserError, match="cannot be drawn"):
        synthetic(NETWORK, np.random.default_rng(0), streams=5, joins=(2, 5))


def test_airline_templates_are_80_15_5() -> None:
    problem = airline(NETWORK, np.random.default_rng(2), queries=300)
    kinds = Counter(query.id.split("-")[0] for query in problem.queries)
    assert kinds == {"gate": 240, "terminal": 45, "monitoring": 15}
    for query in problem.queries:
        assert len(query.streams) >= 2 and "flights" in query.streams
        assert bool(query.filters) == (not query.id.startswith("monitoring"))
    first = [query.id.split("-")[0] for query in problem.queries[:100]]
    assert len(set(first)) == 3, "kinds come mixed"


def test_a_flight_is_within_its_terminal_and_all_terminals_are_everything() -> None:
    problem = airline(NETWORK, np.random.default_rng(2), terminals=6)
    flights = [f for f in problem.filters.values() if f.within]
    terminals = frozenset(f.name for f in problem.filters.values() if not f.within)
    assert len(flights) == 125 and len(terminals) == 6
    assert share(problem, terminals) == pytest.approx(1.0)
    for flight in flights:
        assert flight.within < terminals and len(flight.within) == 1
        assert share(problem, frozenset({flight.name})) * 1500 == pytest.approx(1.0)


def test_airline_without_filters_and_with_cross_products() -> None:
    plain = airline(NETWORK, np.random.default_rng(2), filters=False)
    assert not plain.filters and not any(query.filters for query in plain.queries)
    cross = airline(NETWORK, np.random.default_rng(2), queries=2000, cross=True)
    assert any("flights" not in query.streams for query in cross.queries)


def test_airline_on_a_network_with_fewer_sites_than_sources() -> None:
    tiny = Network((0, 1), ((0, 1, 1.0),))
    assert {stream.site for stream in airline(tiny, np.random.default_rng(0)).streams.values()} <= {0, 1}


def test_rates_of_joins_are_those_in_the_docstring() -> None:
    names = tuple(AIRLINE_RATES)
    streams = airline(NETWORK, np.random.default_rng(0)).streams
    query = Query("all", names, 0)
    rates = by_subset(PlacementProblem(NETWORK, streams, airline_selectivities(), (query,)), query)

    def rate(*chosen: str) -> float:
        return float(rates[sum(1 << names.index(name) for name in chosen)])

    assert rate("flights", "check-ins") == pytest.approx(288)
    assert rate("flights", "baggage") == pytest.approx(600)
    assert rate("flights", "weather") == pytest.approx(600)
    assert rate("flights", "sales") == pytest.approx(280)
    assert rate("flights", "baggage", "check-ins") == pytest.approx(576)


def test_the_derivation_holds_in_a_simulated_hour() -> None:
    """Flights (1500 keys, range 5) joined with check-ins (range 1), rows at random times with random keys:
    count the pairs where each is within the other's range."""
    rng, minutes = np.random.default_rng(7), 60
    one, two = rng.uniform(0, minutes, 300 * minutes), rng.uniform(0, minutes, 240 * minutes)
    keys, others = rng.integers(1500, size=len(one)), rng.integers(1500, size=len(two))
    pairs = 0
    for key in range(1500):
        gaps = two[others == key][None, :] - one[keys == key][:, None]
        pairs += int(np.count_nonzero((gaps <= 5.0) & (gaps >= -1.0)))
    assert pairs / minutes == pytest.approx(288, rel=0.1)


def test_pairs_that_no_template_joins_have_no_selectivity() -> None:
    known = airline_selectivities()
    for pair in combinations(AIRLINE_RATES, 2):
        assert (frozenset(pair) in known) == ("flights" in pair)
