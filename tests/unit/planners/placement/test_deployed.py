"""The table of advertisements against the recomputation from trees; telescoped filters worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.planners.placement.deployed import Deployed, Distance
from headrace.planners.placement.network import prepare
from headrace.planners.placement.problem import (
    BaseStream,
    Filter,
    Join,
    Leaf,
    Network,
    PlacementProblem,
    Query,
    Reused,
    Tree,
)
from headrace.planners.placement.rates import by_subset, data_rate, wanted
from headrace.planners.placement.recompute import WrongDeployment, recompute

LINE = Network(("a", "b", "c", "d"), ((0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)))
"""Four sites in a row; streams A and B at the left, sinks at the right."""
STREAMS = {"A": BaseStream("A", 0, 10.0, 4.0), "B": BaseStream("B", 1, 2.0, 4.0)}
HALF = Filter("half", "A", 0.5)
TENTH = Filter("tenth", "A", 0.1, frozenset({"half"}))
OTHER = Filter("other", "A", 0.2)


def line(*queries: Query) -> PlacementProblem:
    filters = {one.name: one for one in (HALF, TENTH, OTHER)}
    return PlacementProblem(LINE, STREAMS, {frozenset("AB"): 0.5}, queries, filters=filters)


def join_at_b() -> Join:
    return Join(Leaf("A", 0), Leaf("B", 1), 1)


def test_a_stronger_filter_reads_what_a_weaker_one_made_for_nothing() -> None:
    weak = Query("weak", ("A", "B"), 2, {"A": "half"})
    strong = Query("strong", ("A", "B"), 3, {"A": "tenth"})
    problem = line(weak, strong)
    deployed = Deployed(problem, prepare(LINE).distance)
    deployed.add(weak, join_at_b())
    # A: 10 * 0.5 over one link, B is there; 5 * 2 * 0.5 over the link to c.
    assert deployed.total_cost() == pytest.approx(5 + 5)
    (offer,) = deployed.offers(strong)
    assert (offer.site, offer.extra) == (1, 0.0)
    deployed.add(strong, offer.as_leaf())
    # 10 * 0.1 * 2 * 0.5 over two links: cut out where the join is made.
    assert deployed.total_cost() == pytest.approx(10 + 2)


def test_a_weaker_filter_pays_for_what_the_join_must_read_more() -> None:
    strong = Query("strong", ("A", "B"), 2, {"A": "tenth"})
    whole = Query("whole", ("A", "B"), 3)
    apart = Query("apart", ("A", "B"), 3, {"A": "other"})
    problem = line(strong, whole, apart)
    deployed = Deployed(problem, prepare(LINE).distance)
    deployed.add(strong, join_at_b())
    assert [offer.extra for offer in deployed.offers(whole)] == [pytest.approx(10 - 1)]
    # Filters of which none is within the other add up: 0.1 + 0.2.
    assert [offer.extra for offer in deployed.offers(apart)] == [pytest.approx(3 - 1)]


def test_more_columns_are_paid_for_above_and_given_back_when_the_reader_goes() -> None:
    narrow = Query("narrow", ("A", "B"), 2, widths={"A": 1.0})
    whole = Query("whole", ("A", "B"), 3)
    problem = line(narrow, whole)
    deployed = Deployed(problem, prepare(LINE).distance)
    deployed.add(narrow, join_at_b())
    before = deployed.total_cost()
    assert before == pytest.approx(10 / 4 + 10 * 5 / 8)
    (offer,) = deployed.offers(whole)
    assert offer.extra == pytest.approx(10 - 10 / 4)
    deployed.add(whole, offer.as_leaf())
    deployed.remove("whole")
    assert deployed.total_cost() == pytest.approx(before)


def test_an_operator_stays_while_somebody_reads_it() -> None:
    first, second = Query("first", ("A", "B"), 2), Query("second", ("A", "B"), 3)
    problem = line(first, second)
    deployed = Deployed(problem, prepare(LINE).distance)
    deployed.add(first, join_at_b())
    deployed.add(second, deployed.offers(second)[0].as_leaf())
    deployed.remove("first")
    assert len(deployed.derived) == 1
    assert deployed.total_cost() == pytest.approx(10 + 10 * 2)
    deployed.remove("second")
    assert not deployed.derived
    assert deployed.total_cost() == 0


def test_a_result_read_at_a_sink_is_paid_for_after_its_query_is_gone() -> None:
    first, second = Query("first", ("A", "B"), 2), Query("second", ("A", "B"), 3)
    problem = replace(line(first, second), sinks=True)
    deployed = Deployed(problem, prepare(LINE).distance)
    deployed.add(first, join_at_b())
    (at_sink,) = [offer for offer in deployed.offers(second) if offer.site == 2]
    deployed.add(second, at_sink.as_leaf())
    # A to b, the result to c, and from there to d.
    assert deployed.total_cost() == pytest.approx(10 + 10 + 10)
    deployed.remove("first")
    assert deployed.total_cost() == pytest.approx(10 + 10 + 10)


def test_without_reuse_there_are_no_offers() -> None:
    first, second = Query("first", ("A", "B"), 2), Query("second", ("A", "B"), 3)
    problem = replace(line(first, second), reuse=False)
    deployed = Deployed(problem, prepare(LINE).distance)
    deployed.add(first, join_at_b())
    assert deployed.offers(second) == []


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        (Leaf("A", 0), "exactly its streams"),
        (Join(Leaf("A", 0), Leaf("A", 0), 1), "exactly its streams"),
        (Join(Leaf("A", 2), Leaf("B", 1), 1), "not at site 2"),
        (Reused(0, "nobody", frozenset("AB"), 1), "nobody made"),
        (Join(Leaf("A", 0), Leaf("B", 1), 3), "must not"),
    ],
)
def test_what_is_no_deployment_is_refused(tree: Tree, why: str) -> None:
    problem = replace(line(Query("q", ("A", "B"), 2)), forbidden=frozenset({3}))
    with pytest.raises(WrongDeployment, match=why):
        recompute(problem, [("q", tree)], prepare(LINE).distance)


def random_tree(
    rng: np.random.Generator, query: Query, deployed: Deployed, problem: PlacementProblem
) -> Tree:
    """Any tree for the query: some offers, the rest base streams, joined in any order anywhere."""
    left = set(query.streams)
    parts: list[Tree] = []
    for offer in rng.permutation(np.array(deployed.offers(query), dtype=object)):
        if offer.streams <= left and rng.random() < 0.7:
            parts.append(offer.as_leaf())
            left -= offer.streams
    parts += [Leaf(name, problem.streams[name].site) for name in sorted(left)]
    while len(parts) > 1:
        first, second = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        parts.append(Join(first, second, int(rng.integers(problem.network.size))))
    return parts[0]


def random_problem(rng: np.random.Generator) -> PlacementProblem:
    size = int(rng.integers(2, 6))
    costs = rng.uniform(0, 10, (size, size))
    names = "ABCD"
    streams = {
        n: BaseStream(n, int(rng.integers(size)), rng.uniform(0.1, 9), rng.uniform(1, 9)) for n in names
    }
    filters = {f"{n}{i}": Filter(f"{n}{i}", n, rng.uniform(0, 1)) for n in names for i in range(2)}
    filters |= {
        f"{n}2": Filter(f"{n}2", n, filters[f"{n}0"].selectivity / 3, frozenset({f"{n}0"})) for n in names
    }
    queries = []
    for number in range(5):
        chosen = tuple(rng.permutation(list(names))[: int(rng.integers(1, 5))].tolist())
        wanted_filters = {n: f"{n}{rng.integers(3)}" for n in chosen if rng.random() < 0.5}
        widths = {n: streams[n].width * float(rng.uniform(0.1, 1)) for n in chosen if rng.random() < 0.5}
        queries.append(Query(f"q{number}", chosen, int(rng.integers(size)), wanted_filters, widths))
    pairs = {
        frozenset((a, b)): rng.uniform(0, 2) for a in names for b in names if a < b and rng.random() < 0.7
    }
    network = Network(tuple(range(size)), costs=costs)
    return PlacementProblem(
        network, streams, pairs, tuple(queries), sinks=bool(rng.random() < 0.3), filters=filters
    )


@given(st.integers(0, 2**32))
def test_the_table_and_the_recomputation_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    distance = prepare(problem.network).distance
    deployed = Deployed(problem, distance)
    trees: list[tuple[str, Tree]] = []
    for query in problem.queries:
        tree = random_tree(rng, query, deployed, problem)
        before = deployed.total_cost()
        promised = sum(node.extra for node in _reused(tree))
        deployed.add(query, tree)
        trees.append((query.id, tree))
        total, added = recompute(problem, trees, distance)
        assert deployed.total_cost() == pytest.approx(total)
        # A difference of two large sums is as exact as they are.
        assert added[-1] == pytest.approx(total - before, abs=1e-12 * (1 + total))
        assert added[-1] == pytest.approx(promised + _edges(problem, query, tree, distance))


def _reused(tree: Tree) -> list[Reused]:
    if isinstance(tree, Join):
        return _reused(tree.left) + _reused(tree.right)
    return [tree] if isinstance(tree, Reused) else []


def _edges(problem: PlacementProblem, query: Query, tree: Tree, distance: Distance) -> float:
    """The query's own edges, at its own rates."""
    holding = wanted(problem, query)

    def into(part: Tree, site: int) -> float:
        streams = {part.stream} if isinstance(part, Leaf) else part.streams
        own = data_rate(problem, holding, streams) * distance(part.site, site)
        inner = into(part.left, part.site) + into(part.right, part.site) if isinstance(part, Join) else 0.0
        return float(own + inner)

    return into(tree, query.sink)


@given(st.integers(0, 2**32))
def test_rates_of_all_subsets_at_once_are_those_of_each(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed))
    for query in problem.queries:
        every = by_subset(problem, query)
        for mask in range(1, len(every)):
            names = [name for i, name in enumerate(query.streams) if mask >> i & 1]
            assert every[mask] == pytest.approx(data_rate(problem, wanted(problem, query), names))
