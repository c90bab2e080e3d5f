"""The queries of the example project that `make check` leaves out: the rewrite changes no answer."""

from __future__ import annotations

import pytest

from headrace.catalog.model import Query
from tests.unit.rewrite.test_example import QUERIES, compare_answers


@pytest.mark.parametrize(
    "query", [q for number, q in enumerate(QUERIES) if number % 4], ids=lambda query: query.name
)
def test_the_rewrite_changes_no_answer(query: Query) -> None:
    compare_answers(query)
