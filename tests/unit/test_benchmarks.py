"""The figures of `make bench`: medians, ratios, the table, and which answers are called right."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

from benchmarks.answers import given_part, problem
from benchmarks.report import COLUMNS, Cell, Engine, Ratio, Sample, as_data, ratio, rows


def cell(engine: Engine, walls: list[float], cpus: list[float], *, given: int = 40, wrong: str = "") -> Cell:
    samples = [Sample(w, c, given, wrong) for w, c in zip(walls, cpus, strict=True)]
    return Cell("q", engine, 1000, 40, tuple(samples))


CELLS = (
    cell(Engine.PLAIN, [2.0, 9.0, 1.0], [4.0, 4.0, 5.0], given=38),
    cell(Engine.HEADRACE, [3.0, 2.5, 2.0], [5.0, 6.0, 7.0]),
    cell(Engine.DUCKDB, [0.5, 0.5, 0.5], [0.4, 0.4, 0.4]),
)


def test_figures_are_medians() -> None:
    assert (CELLS[0].wall, CELLS[0].cpu) == (2.0, 4.0)
    assert CELLS[0].rows_per_second == 500


def test_ratios_divide_the_medians_of_one_query() -> None:
    other = Cell("p", Engine.PLAIN, 1, 1, (Sample(100.0, 100.0, 1),))
    assert ratio((*CELLS, other), "q", Engine.HEADRACE) == Ratio(1.25, 1.5)
    assert ratio(CELLS, "q", Engine.PLAIN) == Ratio(1.0, 1.0)
    assert ratio(CELLS, "q", Engine.HEADRACE, base=Engine.DUCKDB).wall == 5.0


def test_the_table_shows_every_figure() -> None:
    shown = [dict(zip(COLUMNS, row, strict=True)) for row in rows(CELLS)]
    plain, headrace, _ = shown
    assert (plain["wall s"], plain["min - max"], plain["rows/s"]) == ("2.00", "1.00 - 9.00", "500")
    assert plain["answer"] == "right, 2 left open"
    assert (headrace["wall / plain"], headrace["CPU / plain"], headrace["answer"]) == (
        "1.25",
        "1.50",
        "right",
    )


def test_one_wrong_round_spoils_the_cell() -> None:
    spoilt = Cell("q", Engine.PLAIN, 1, 1, (Sample(1, 1, 1), Sample(1, 1, 1, "a row too many")))
    assert (spoilt.answer, spoilt.problems) == ("WRONG", ("a row too many",))


def test_the_json_holds_every_sample() -> None:
    data = json.loads(json.dumps(as_data(CELLS)))
    assert [s["wall"] for s in data[0]["samples"]] == [2.0, 9.0, 1.0]
    assert data[1]["ratio_to_plain_spark"] == {"wall": 1.25, "cpu": 1.5}


def windows(*numbers: int, mean: float = 1.0) -> pa.Table:
    ends = [datetime(2024, 5, 1) + timedelta(seconds=10 * n) for n in numbers]
    return pa.table(
        {"window_end": pa.array(ends, pa.timestamp("us")), "mean": pa.array([mean] * len(ends), pa.float64())}
    )


def test_the_reference_is_cut_behind_the_last_window_given() -> None:
    assert given_part(windows(1, 2, 3, 4), windows(2, 3)).num_rows == 3
    assert given_part(windows(1, 2), windows()).num_rows == 0
    pairs = pa.table({"a": [1, 2]})
    assert given_part(pairs, pairs.slice(0, 1)).num_rows == 2


@pytest.mark.parametrize(
    ("got", "open_end", "right"),
    [
        (windows(1, 2, 3), True, True),
        (windows(1, 2, 3), False, False),
        (windows(1, 3), True, False),
        (windows(1, 2, 2), True, False),
        (windows(1, 2, mean=1.1), True, False),
        (windows(1, 2, 3, 4), False, True),
        (windows(1, 2, 3, 4, 5), True, False),
        (windows(), True, False),
    ],
)
def test_which_answers_are_right(got: pa.Table, open_end: bool, right: bool) -> None:
    assert (problem(windows(1, 2, 3, 4), got, open_end=open_end) == "") is right
