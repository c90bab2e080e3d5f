"""A federated job batch by batch, with DuckDB in Spark's place: late rows, restarts, handing over,
sharing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.errors import InternalError
from headrace.plan import logical as lp
from headrace.plan.federated import FederatedJob, FederatedMember, operators
from headrace.runtime.duckdb.window_sql import Ends
from headrace.runtime.duckdb.window_tables import NoRoom, WindowDatabase
from headrace.runtime.federated.engine import Federation
from headrace.runtime.federated.ledger import Ledger
from headrace.runtime.federated.program import program_of
from tests.federated_cases import (
    BATCHES,
    CQ1,
    CQ3,
    FILTERS,
    SECOND,
    START,
    D,
    Driven,
    S,
    answer,
    assert_answer,
    difference,
    job_of,
    plan_of,
    readings,
)


def test_a_job_goes_on_from_its_files(tmp_path: Path) -> None:
    driven = Driven(job_of({"q": (CQ1, FILTERS)}), tmp_path, BATCHES)
    for number in range(len(driven.marks)):
        driven.federation.close()
        driven.federation = driven.opened()
        driven.run(number + 1, number)
        # Spark repeats a batch that it has not committed; it is done already.
        driven.run(number + 1, number)
    assert_answer(driven, "q", answer(CQ1, pa.concat_tables(BATCHES)))
    assert driven.federation.done.kept == 0 and not list((tmp_path / "kept").rglob("*.arrow"))
    with pytest.raises(InternalError):
        driven.federation.batch(99, 0, {})


@pytest.mark.parametrize("most", [1, 3])
def test_windows_that_are_too_much_together_are_given_in_halves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    quiet = Driven(job_of({"q": (CQ1, FILTERS)}), tmp_path / "quiet", BATCHES)
    quiet.run()
    evaluate, refused = WindowDatabase.evaluate, list[int]()

    def small(self: WindowDatabase, plan: lp.LogicalPlan, given: Any, ends: Ends | None) -> pa.Table:
        if ends is not None and ends.count > most:
            refused.append(ends.count)
            raise NoRoom("full")
        return evaluate(self, plan, given, ends)

    monkeypatch.setattr(WindowDatabase, "evaluate", small)
    driven = Driven(job_of({"q": (CQ1, FILTERS)}), tmp_path / "small", BATCHES)
    driven.run()
    assert max(refused) > 2 * most, "more than once in halves"
    assert_answer(driven, "q", answer(CQ1, pa.concat_tables(BATCHES)))
    assert driven.federation.done.made == quiet.federation.done.made


def test_one_window_that_is_too_much_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: WindowDatabase, plan: lp.LogicalPlan, given: Any, ends: Ends | None) -> pa.Table:
        raise NoRoom("full")

    driven = Driven(job_of({"q": (CQ1, FILTERS)}), tmp_path, BATCHES)
    monkeypatch.setattr(WindowDatabase, "evaluate", full)
    with pytest.raises(NoRoom):
        driven.run()


def test_one_job_takes_over_from_another_window_by_window(tmp_path: Path) -> None:
    turn = START + 17 * SECOND + 1
    wanted = answer(CQ1, pa.concat_tables(BATCHES))
    parts = []
    for name, engines, after, until in (("old", FILTERS, None, turn), ("new", (D,) * 5, turn, None)):
        job = FederatedJob(name, "local", (FederatedMember("q", CQ1, engines, after=after),))
        Ledger(tmp_path / name).write_until({"q": until} if until is not None else {})
        driven = Driven(job, tmp_path / name, BATCHES)
        driven.run()
        parts.append(driven.answers("q"))
    assert all(part.num_rows for part in parts)
    ends = [pc.cast(part["window_end"], pa.int64()) for part in parts]
    assert pc.max(ends[0]).as_py() <= turn < pc.min(ends[1]).as_py()
    assert not difference(CQ1, wanted, pa.concat_tables(parts))


def test_queries_over_the_same_rows_share_one_feed(tmp_path: Path) -> None:
    other = plan_of(
        "SELECT window_start, window_end, house, sum(value) AS s FROM readings "
        "[RANGE 7 SECONDS SLIDE 2 SECONDS] WHERE property = 'load' GROUP BY house"
    )
    job = job_of({"q": (CQ1, FILTERS), "o": (other, (S, D)), "n": (CQ3, (D, D, S, S, D))})
    program = program_of(job)
    rows = [feed for feed in program.feeds if feed.node.shape is lp.Shape.STREAM]
    assert len(rows) == 1 and isinstance(rows[0].node, lp.Filter) and not program.steps
    driven = Driven(job, tmp_path, BATCHES)
    driven.run()
    for query, plan in (("q", CQ1), ("o", other), ("n", CQ3)):
        assert_answer(driven, query, answer(plan, pa.concat_tables(BATCHES)))


def test_rows_without_windows_are_given_as_they_come(tmp_path: Path) -> None:
    plan = plan_of(
        "SELECT r.ts, r.plug, t.name FROM readings AS r JOIN names AS t ON r.house = t.house "
        "WHERE r.value > 50"
    )
    assert len(operators(plan)) == 2
    for number, engines in enumerate(((D, D), (D, S), (S, D))):
        driven = Driven(job_of({"q": (plan, engines)}), tmp_path / str(number), BATCHES)
        driven.run()
        assert_answer(driven, "q", answer(plan, pa.concat_tables(BATCHES)))


def test_an_opened_federation_knows_what_was_done(tmp_path: Path) -> None:
    driven = Driven(job_of({"q": (CQ1, FILTERS)}), tmp_path, BATCHES)
    driven.run(3)
    again: Federation = driven.opened()
    assert again.done == driven.federation.done and again.database.rows == driven.federation.database.rows


def test_a_row_stays_until_the_last_window_that_holds_it(tmp_path: Path) -> None:
    rows = readings(4, 10, rate=200)
    first = rows.filter(pc.equal(rows["property"], "load")).slice(0, 200)
    times = pa.array([START] * first.num_rows, pa.timestamp("us", "UTC"))
    first = first.set_column(0, "ts", times)
    later = first.slice(0, 1).set_column(0, "ts", pa.array([START + 22 * SECOND], times.type))
    nothing = first.slice(0, 0)
    # The watermark of the third batch is 19 s: the window that ends at 20 s still holds the rows at 0.
    driven = Driven(job_of({"q": (CQ1, FILTERS)}), tmp_path, [first, later, nothing])
    driven.run()
    assert driven.marks[2] == START + 19 * SECOND
    assert_answer(driven, "q", answer(CQ1, pa.concat_tables([first, later])))
