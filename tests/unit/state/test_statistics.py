"""The statistics file: what goes in comes out, means of minutes, bounds, and damage that costs little."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest

from headrace.errors import UserError
from headrace.state import statistics
from headrace.state.statistics import Row, Statistics, open_statistics

T0 = 1_700_000_040.0
"""The beginning of a minute."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "statistics.db"


@pytest.fixture
def file(path: Path) -> Iterator[Statistics]:
    with Statistics(path) as opened:
        yield opened


def row(at: float, rows_in: float | None = None, name: str = "a", **figures: float) -> Row:
    seen = figures if rows_in is None else {**figures, "rows_in": rows_in}
    return Row("job", name, "east", at, seen, watermark=7)


def test_what_goes_in_comes_out_newest_first(file: Statistics) -> None:
    rows = [row(T0 + i, float(i), lag_seconds=0.5) for i in range(5)]
    file.add(rows, {"what": "one"})
    file.add([Row("site", "a", "a", T0 + 9, {"cpu": 1.0})], {"what": "two", "other": "three"})
    assert file.samples("job", "a", 3) == tuple(reversed(rows))[:3]
    assert file.samples("site", "a", 9) == (Row("site", "a", "a", T0 + 9, {"cpu": 1.0}),)
    assert (file.text("what"), file.text("other"), file.text("none")) == ("two", "three", None)


def test_unseen_is_not_nothing(file: Statistics) -> None:
    file.add([row(T0, 0.0), row(T0 + 1)], {})
    assert [one.figures for one in file.samples("job", "a", 2)] == [{}, {"rows_in": 0.0}]


def test_a_minute_is_the_mean_of_what_was_seen_in_it(file: Statistics) -> None:
    values = [3.0, 5.0, 10.0, 1.0, 7.0]
    for number, value in enumerate(values):
        file.add([row(T0 + 25 * number, value)], {})
    assert not file.minutes("job", "a", 1)[0].at > T0
    file.add([row(T0 + 130, 100.0)], {})
    first, second = reversed(file.minutes("job", "a", 9))
    assert (first.at, first.figures["rows_in"]) == (T0, mean(values[:3]))
    assert (second.at, second.figures["rows_in"]) == (T0 + 60, mean(values[3:]))


def test_a_minute_is_counted_once_over_restarts(path: Path) -> None:
    for number in range(6):
        with Statistics(path) as opened:
            opened.add([row(T0 + 30 * number, float(number))], {})
    with Statistics(path) as opened:
        assert [one.figures["rows_in"] for one in opened.minutes("job", "a", 9)] == [2.5, 0.5]


def test_old_rows_go_and_there_are_never_too_many(
    path: Path, file: Statistics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "MOST_ROWS", 40)
    for minute in range(30):
        file.add([row(T0 + 60 * minute + i, 1.0) for i in range(30)], {})
    with sqlite3.connect(path) as db:
        samples, minutes = (
            db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in ("samples", "minutes")
        )
    db.close()
    assert samples <= 40 and minutes == 29
    monkeypatch.setattr(statistics, "MINUTE_SECONDS", 300.0)
    file.add([row(T0 + 60 * 30, 1.0)], {})
    assert [one.at for one in file.minutes("job", "a", 99)] == [T0 + 60 * m for m in range(29, 24, -1)]


@pytest.mark.parametrize("content", [b"no database " * 99, b"SQLite format 3\0" + b"\xff" * 4080])
def test_a_damaged_file_is_begun_anew(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(UserError):
        Statistics(path)
    with open_statistics(path) as opened:
        opened.add([row(T0, 1.0)], {})
        assert opened.samples("job", "a", 1)


def test_one_of_another_version_is_begun_anew(path: Path) -> None:
    Statistics(path).close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with open_statistics(path) as opened:
        assert opened.text("gathered") is None


def test_a_folder_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "statistics.db").mkdir()
    with pytest.raises(UserError, match="cannot be used"):
        open_statistics(tmp_path / "statistics.db")
