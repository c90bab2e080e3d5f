"""The search within a cluster against plain enumeration of all join orders and placements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import comb, prod

import numpy as np
import pytest

from headrace.planners.placement.drafts import Draft, Input, Make, Read, Search, halves
from headrace.planners.placement.problem import Floats
from headrace.planners.placement.views import join_orders, plans_of

Sent = tuple[int, int | None, float]
"""Streams, the source they are read from (None: made), the cost so far."""


class Case:
    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.streams, self.size = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        self.members = sorted(int(m) for m in rng.choice(50, self.size, replace=False))
        self.costs = rng.uniform(0, 9, (self.size, self.size))
        np.fill_diagonal(self.costs, 0)
        self.allowed = np.ones(self.size, dtype=np.bool_)
        self.allowed[1:] = rng.random(self.size - 1) < 0.7
        self.rates = rng.uniform(0.1, 5, 1 << self.streams)
        masks = [1 << i for i in range(self.streams)]
        masks += [int(m) for m in rng.integers(1, 1 << self.streams, 3)]
        self.inputs = [
            Input(m, rng.uniform(0, 9, self.size), float(rng.uniform(0, 3)) if i >= self.streams else 0.0)
            for i, m in enumerate(masks)
        ]
        self.reads = rng.uniform(0, 9, len(masks)).tolist()
        self.ways = rng.uniform(0, 9, self.size)

    def search(self) -> Search:
        return Search(self.members, self.costs, self.allowed, self.rates, self.inputs)

    def priced(self, draft: Draft, ways: Floats, reads: list[float]) -> float:
        """What a draft costs, edge by edge, delivered over these ways."""
        rate = float(self.rates[draft.streams])
        if isinstance(draft, Read):
            return self.inputs[draft.source].extra + rate * reads[draft.source]
        at = self.members.index(draft.member)
        below = [float(one.ways[at]) for one in self.inputs]
        inner = sum(self.priced(one, self.costs[:, at], below) for one in (draft.left, draft.right))
        return inner + rate * float(ways[at])


def every_draft(case: Case, streams: int) -> Iterator[Draft]:
    yield from (Read(i, streams) for i, one in enumerate(case.inputs) if one.streams == streams)
    part = streams - 1 & streams
    while part:
        if part > streams ^ part:
            for left, right in product(every_draft(case, part), every_draft(case, streams ^ part)):
                for i, member in enumerate(case.members):
                    if case.allowed[i]:
                        yield Make(streams, member, left, right)
        part = part - 1 & streams


@pytest.mark.parametrize("seed", range(25))
def test_the_best_draft_is_the_best_of_all(seed: int) -> None:
    case = Case(seed)
    if case.streams == 4 and case.size > 2:
        case = Case(seed + 1000) if Case(seed + 1000).streams < 4 else Case(6)
    whole = (1 << case.streams) - 1
    best = case.search().best(whole, case.reads, case.ways)
    assert best is not None
    draft, cost = best
    assert cost == pytest.approx(case.priced(draft, case.ways, case.reads))
    least = min(case.priced(one, case.ways, case.reads) for one in every_draft(case, whole))
    assert cost == pytest.approx(least)


def test_equal_costs_go_to_the_lowest_site() -> None:
    nothing = np.zeros(3)
    inputs = [Input(1, nothing, 0.0), Input(2, nothing, 0.0)]
    search = Search([4, 7, 9], np.zeros((3, 3)), np.array([False, True, True]), np.ones(4), inputs)
    assert search.best(3, [0.0, 0.0], nothing) == (Make(3, 7, Read(1, 2), Read(0, 1)), 0.0)


def test_no_way_is_none_even_for_a_stream_without_rows() -> None:
    inputs = [Input(1, np.array([np.inf]), 0.0), Input(2, np.zeros(1), 0.0)]
    search = Search([0], np.zeros((1, 1)), np.ones(1, dtype=np.bool_), np.zeros(4), inputs)
    assert search.best(3, [np.inf, 0.0], np.zeros(1)) is None
    assert search.best(1, [np.inf, 0.0], np.zeros(1)) is None


def test_pieces_are_the_most_sources_a_plan_can_join() -> None:
    inputs = [Input(mask, np.zeros(1), 0.0) for mask in (0b001, 0b110, 0b010)]
    search = Search([0], np.zeros((1, 1)), np.ones(1, dtype=np.bool_), np.ones(8), inputs)
    assert [search.pieces(mask) for mask in range(8)] == [0, 1, 1, 2, 0, 0, 1, 2]


def test_halves_are_every_way_to_part_a_set() -> None:
    for streams in (0b1, 0b101, 0b1111, 0b110110):
        parts = {frozenset((int(part), streams ^ int(part))) for part in halves(streams)}
        assert len(parts) == len(halves(streams)) == 2 ** (streams.bit_count() - 1) - 1


def test_plans_are_counted_as_in_lemma_1() -> None:
    for k in range(2, 8):
        assert join_orders(k) == prod(comb(left, 2) for left in range(2, k + 1))
    assert plans_of(5, 64) == 3_019_898_880  # section 1: nearly 3.02e9
    assert plans_of(5, 128) == 48_318_382_080  # section 4.2: approximately 4.83e10
    assert plans_of(4, 57) == pytest.approx(3.3e6, rel=0.02)  # section 4.2.1
    assert plans_of(1, 57) == 0
