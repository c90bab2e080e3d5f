"""What the check of moves compares with: the batch evaluation, whether it is made in slices or at once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.runtime.compare import multiset_difference
from headrace.runtime.duckdb.reference import evaluate
from tests import moves_load
from tests.moves_load import plans, reference
from tests.spark.plans import SECOND, random_batches


@pytest.mark.parametrize("query", ["join", "window", "tops"])
def test_slices_of_time_give_what_all_pairs_of_rows_give(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves_load, "_SLICE", 37 * SECOND)
    monkeypatch.setattr(moves_load, "_REACH", 20 * SECOND)
    rows = pa.concat_tables(random_batches(seed=8, batches=5))
    whole = evaluate(plans()[query], {"s": rows})
    assert whole.num_rows > 40
    assert not multiset_difference(whole, reference(query, rows))
