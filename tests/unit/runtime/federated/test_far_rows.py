"""Rows far in the future while another stream holds the watermark: they are kept, alone."""

from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.runtime.federated.ledger import Ledger, read_given
from tests.federated_cases import (
    CQ1,
    FILTERS,
    SECOND,
    Driven,
    answer,
    assert_answer,
    job_of,
    readings,
    sliced,
    watermarks,
)

FAR = 4_070_908_800 * SECOND


def far(number: int) -> pa.Table:
    """A row of 2099."""
    like = readings(3, 1).schema
    row = {"property": "load", "value": 1.0, "plug": 0, "household": 0, "house": 0}
    made = pa.Table.from_pylist([{"ts": FAR + number * SECOND // 10, **row}])
    return made.cast(like)


def driven(folder: Path, batches: list[pa.Table], *, bad: bool) -> Driven:
    rows = [pa.concat_tables([b, far(n)]) if bad else b for n, b in enumerate(batches)]
    made = Driven(job_of({"q": (CQ1, FILTERS)}), folder, rows)
    # The watermark is that of a stream without such rows.
    made.marks[:-1] = watermarks(batches, 0)
    return made


def as_before(folder: Path) -> None:
    """One file for each batch, as earlier versions had them."""
    for relation in (folder / "kept").iterdir():
        files = sorted(relation.glob("*.arrow"), key=lambda path: tuple(map(int, path.stem.split("_"))))
        for _, group in itertools.groupby(files, key=lambda path: path.stem.split("_")[0]):
            *others, last = group
            if others:
                whole = pa.concat_tables([read_given(path) for path in (*others, last)])
                for path in (*others, last):
                    path.unlink()
                batch, newest = map(int, last.stem.split("_"))
                Ledger(folder).keep(relation.name, batch, newest, whole)


@pytest.mark.parametrize("old", [False, True])
def test_they_keep_no_other_rows_and_their_windows_are_given_in_the_end(tmp_path: Path, old: bool) -> None:
    batches = sliced(readings(8, 120), 24)
    bad, good = driven(tmp_path / "bad", batches, bad=True), driven(tmp_path / "good", batches, bad=False)
    for number in range(len(batches)):
        for one in (bad, good):
            one.run(number + 1, number)
        assert bad.federation.done.kept <= good.federation.done.kept + number + 101
        if number % 7 == 6:
            if old:
                as_before(bad.folder)
            bad.federation.close()
            bad.federation = bad.opened()
            assert old or bad.federation.database.rows <= good.federation.done.kept + number + 101
    files = [len(list(one.folder.glob("kept/*/*.arrow"))) for one in (bad, good)]
    assert files[0] <= files[1] + len(batches)
    bad.run(first=len(batches))
    assert_answer(bad, "q", answer(CQ1, pa.concat_tables(bad.batches)))
    assert bad.federation.done.kept == 0 and not list(bad.folder.glob("kept/*/*.arrow"))
