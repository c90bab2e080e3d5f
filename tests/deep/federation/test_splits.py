"""Splits of the paper's queries against the reference, with late rows, restarts and repeated batches. All of
them are tried by tests/federated_check.py; here a few of each query."""

from __future__ import annotations

import random

import pytest

from tests.federated_cases import QUERIES, plan_of, splits
from tests.federated_check import engine_splits


@pytest.mark.parametrize("query", QUERIES)
def test_a_split_gives_the_answer(query: str) -> None:
    every = list(splits(plan_of(QUERIES[query])))
    tried = [every[-1], *random.Random(query).sample(every, 2)]
    assert set(engine_splits(query, seed=1, restarts=True)(tried)) == {""}
