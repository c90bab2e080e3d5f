"""A federated job batch by batch, with DuckDB in Spark's place: late rows, failures, memory, leaps of the
watermark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

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
    readings,
    sliced,
    with_arrival,
)


def test_rows_that_come_too_late_miss_the_windows_that_were_given(tmp_path: Path) -> None:
    rows = readings(7, 40, disorder=16 * SECOND)
    batches = sliced(rows, 10)
    for name, engines in (("some", FILTERS), ("all", (D,) * 5), ("native", (S, S, S, D, D))):
        driven = Driven(job_of({"q": (CQ1, engines)}), tmp_path / name, batches)
        driven.run()
        late = with_arrival(batches, driven.marks[: len(batches)])
        wanted = answer(CQ1, late)
        assert difference(CQ1, answer(CQ1, rows), wanted), "nothing was late"
        assert_answer(driven, "q", wanted)
        # A row is late when its first window, which ends with its own second, had ended.
        loads = late.filter(pc.equal(late["property"], "load"))
        ends = [t // SECOND * SECOND + SECOND for t in pc.cast(loads["ts"], pa.int64()).to_pylist()]
        missed = sum(e <= w for e, w in zip(ends, loads["arrival"].to_pylist(), strict=True))
        assert missed and driven.federation.done.late == {"q": missed}


def test_the_window_tables_hold_no_more_than_the_window(tmp_path: Path) -> None:
    batches = sliced(readings(9, 160, rate=20), 20)
    driven = Driven(job_of({"q": (CQ3, (S, D, S, D, D))}), tmp_path, batches)
    kept = []
    for number in range(len(driven.marks)):
        driven.run(number + 1, number)
        kept.append(driven.federation.done.kept)
        files = list((tmp_path / "kept").rglob("*.arrow"))
        assert len(files) <= 6, "files of rows that no window needs"
    # 20 s of window, 3 s of watermark, 8 s of a batch, and a chunk; 14 of 20 rows are loads.
    assert max(kept) <= 14.6 * (20 + 3 + 8 + 8 + 2.5) * 1.1
    assert kept[-1] == 0


def test_a_batch_that_failed_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Driven(job_of({"q": (CQ1, FILTERS)}), tmp_path, BATCHES)
    for number in range(len(driven.marks)):
        for broken in ("take", "evaluate", "evict"):
            with monkeypatch.context() as patch:
                patch.setattr(driven.federation.database, broken, _fails)
                with pytest.raises(RuntimeError):
                    # The last batch has no new rows, and the first no window to give.
                    driven.run(number + 1, number)
                    raise RuntimeError
            driven.federation.close()
            driven.federation = driven.opened()
        driven.run(number + 1, number)
    assert_answer(driven, "q", answer(CQ1, pa.concat_tables(BATCHES)))


def _fails(*_: object) -> None:
    raise RuntimeError("told to fail")


@pytest.mark.parametrize("pairs", [1, 700])
def test_a_leap_of_the_watermark_is_taken_in_several_statements(tmp_path: Path, pairs: int) -> None:
    early = readings(1, 20)
    # A gap of years between two rows must not cost a statement for each of its seconds.
    late = readings(2, 10, start=START + 10**8 * SECOND)
    driven = Driven(job_of({"q": (CQ1, FILTERS)}), tmp_path, [pa.concat_tables([early, late])], pairs=pairs)
    driven.run()
    assert_answer(driven, "q", answer(CQ1, pa.concat_tables([early, late])))
