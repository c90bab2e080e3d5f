"""The generator: what it promises about rows, order and files, checked on the rows and files themselves."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.catalog.model import Distribution, GeneratorSource, Stream
from headrace.errors import UserError
from headrace.plan.types import DataType
from headrace.runtime.generate import batches, materialise
from headrace.units import parse_instant

SECOND = 1_000_000
PLUG_COLUMNS = {"ts": "timestamp", "property": "string", "value": "double", "plug": "int"}
PLUG_COLUMNS |= {"household": "int", "house": "int"}


def plugs(**source: Any) -> Stream:
    about = {"shape": "smart-plugs", "start": "2013-09-01 18:00:00", "houses": 2, "households": 2, "plugs": 3}
    return Stream.model_validate(
        {
            "name": "readings",
            "columns": PLUG_COLUMNS,
            "time": "ts",
            "source": {"kind": "generator", "rows": 2400, "files": 4, **about, **source},
        }
    )


def drawn(
    kind: str = "bigint", rate: float = 1000, how: dict[str, Any] | None = None, **source: Any
) -> Stream:
    """A stream of an event time and one drawn column x."""
    return Stream.model_validate(
        {
            "name": "s",
            "columns": {"ts": "timestamp", "x": kind},
            "time": "ts",
            "rate": rate,
            "source": {
                "kind": "generator",
                "rows": 1000,
                "columns": {"x": how or {"kind": "sequence"}},
                **source,
            },
        }
    )


def rows(stream: Stream) -> pa.Table:
    return pa.concat_tables(batches(stream))


def micros(table: pa.Table, name: str = "ts") -> list[int]:
    found: list[int] = table.column(name).cast(pa.int64()).to_pylist()
    return found


def values(kind: str, how: dict[str, Any], **source: Any) -> list[Any]:
    found: list[Any] = rows(drawn(kind, how=how, **source)).column("x").to_pylist()
    return found


# Order of arrival.


@pytest.mark.parametrize("disorder", ["1 second", "300ms", "90 seconds"])
@pytest.mark.parametrize("count", [1000, 150_000])
def test_no_row_is_as_late_as_the_disorder(disorder: str, count: int) -> None:
    stream = drawn(rows=count, disorder=disorder)
    assert isinstance(stream.source, GeneratorSource)
    times = np.array(micros(rows(stream)))
    behind = np.maximum.accumulate(times) - times
    assert 0 < behind.max() < stream.source.disorder


def test_every_row_arrives_once_whatever_the_disorder() -> None:
    count = 70_000
    for disorder in ("0 s", "2 seconds", "1 day"):
        table = rows(drawn(rows=count, disorder=disorder))
        pairs = sorted(zip(table.column("x").to_pylist(), micros(table), strict=True))
        assert pairs == [(i, i * 1000) for i in range(count)]


def test_without_disorder_rows_arrive_in_event_time() -> None:
    times = micros(rows(drawn(rows=70_000)))
    assert times == sorted(times)


@pytest.mark.parametrize("rate", [1, 3, 7, 1000, 0.5, 2.5])
def test_event_time_advances_by_one_over_rate(rate: float) -> None:
    start = parse_instant("2024-05-01 12:00:00")
    times = micros(rows(drawn(rate=rate, start="2024-05-01 12:00:00")))
    assert times == [start + int(i * SECOND / rate + 1e-6) for i in range(1000)]


def test_the_rows_do_not_depend_on_the_number_of_files() -> None:
    one = rows(drawn(rows=5000, files=1, disorder="1 second"))
    many = rows(drawn(rows=5000, files=13, disorder="1 second"))
    assert one.equals(many)
    assert [t.num_rows for t in batches(drawn(rows=10, files=4))] == [3, 3, 2, 2]


def test_the_seed_and_the_name_choose_the_rows() -> None:
    how = {"kind": "uniform", "low": 0, "high": 1_000_000}
    first = values("int", how, seed=1)
    assert first == values("int", how, seed=1)
    assert first != values("int", how, seed=2)
    renamed = drawn("int", how=how, seed=1).model_copy(update={"name": "t"})
    assert rows(renamed).column("x").to_pylist() != first


def test_these_very_rows_come_from_this_seed() -> None:
    """Written down once: a change of numpy or of the generator that changes the rows must be seen."""
    assert values("int", {"kind": "uniform", "low": 0, "high": 99}, seed=42, rows=8, files=1) == PINNED
    table = rows(plugs(rows=24, files=1, seed=42))
    assert [round(v, 3) for v in table.column("value").to_pylist()[0:24:2]] == PINNED_LOADS


PINNED = [6, 94, 89, 49, 74, 31, 84, 4]
PINNED_LOADS = [2.23, 0.842, 1.23, 1.634, 371.337, 0.896, 1371.218, 2.164, 2.068, 1.683, 0.585, 0.864]


# Distributions.


def test_uniform_reaches_both_ends_of_whole_numbers() -> None:
    assert Counter(values("int", {"kind": "uniform", "low": -1, "high": 2})).keys() == {-1, 0, 1, 2}
    fractions = values("double", {"kind": "uniform", "low": 2, "high": 4})
    assert 2 <= min(fractions) < 2.05
    assert 3.95 < max(fractions) < 4


def test_normal_has_its_mean_and_spread() -> None:
    found = values("double", {"kind": "normal", "mean": 10, "stddev": 2}, rows=40_000)
    mean = sum(found) / len(found)
    spread = (sum((v - mean) ** 2 for v in found) / len(found)) ** 0.5
    assert mean == pytest.approx(10, abs=0.05)
    assert spread == pytest.approx(2, abs=0.05)
    assert all(isinstance(v, int) for v in values("bigint", {"kind": "normal", "mean": 10, "stddev": 2}))


def test_zipf_falls_as_the_skew_says() -> None:
    counts = Counter(values("int", {"kind": "zipf", "skew": 1, "low": 5, "high": 8}, rows=50_000))
    total = 1 + 1 / 2 + 1 / 3 + 1 / 4
    for rank, value in enumerate((5, 6, 7, 8), start=1):
        assert counts[value] / 50_000 == pytest.approx(1 / rank / total, abs=0.01)
    assert set(values("string", {"kind": "zipf", "skew": 2, "values": ["a", "b"]})) == {"a", "b"}


def test_choice_and_constant_give_values_of_the_columns_type() -> None:
    assert set(values("string", {"kind": "choice", "values": ["on", "off"]})) == {"on", "off"}
    assert set(values("boolean", {"kind": "constant", "value": True})) == {True}
    dates = values("date", {"kind": "constant", "value": "2024-05-01"})
    assert {d.isoformat() for d in dates} == {"2024-05-01"}
    stamped = rows(drawn("timestamp", how={"kind": "constant", "value": "2024-05-01 12:00:00"}))
    assert set(micros(stamped, "x")) == {parse_instant("2024-05-01 12:00:00")}


def test_nulls_come_as_often_as_asked() -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("int", {"kind": "uniform", "low": 1, "high": 2}),
        ("string", {"kind": "choice", "values": ["a"]}),
    ]
    for kind, how in cases:
        found = values(kind, {**how, "null_share": 0.25}, rows=20_000)
        assert found.count(None) / 20_000 == pytest.approx(0.25, abs=0.02)
    assert values("int", {"kind": "sequence", "null_share": 1.0}, rows=5, files=1) == [None] * 5


@pytest.mark.parametrize(
    ("kind", "how", "says"),
    [
        ("int", {"kind": "uniform", "low": 1}, "uniform needs high"),
        ("int", {"kind": "uniform", "low": 3, "high": 1}, "above high"),
        ("string", {"kind": "normal", "mean": 1, "stddev": 1}, "draws numbers"),
        ("int", {"kind": "choice", "values": []}, "choice needs values"),
        ("int", {"kind": "choice", "values": ["x"]}, "is not a int"),
        ("int", {"kind": "constant", "value": 2**40}, "is not a int"),
        ("date", {"kind": "constant", "value": "May"}, "is not a date"),
        ("int", {"kind": "zipf", "low": 1, "high": 3}, "zipf needs skew"),
        ("int", {"kind": "zipf", "skew": 1, "low": 1, "high": 9_000_000}, "zipf over 9000000"),
    ],
)
def test_a_column_that_cannot_be_drawn_is_the_users_error(kind: str, how: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError, match=says):
        rows(drawn(kind, how=how))


def test_columns_and_distributions_must_match() -> None:
    stream = drawn()
    sequence = Distribution(kind="sequence")
    source = stream.source.model_copy(update={"columns": {"y": sequence}})
    with pytest.raises(UserError, match="x has no distribution"):
        rows(stream.model_copy(update={"source": source}))
    more = stream.source.model_copy(update={"columns": {"x": sequence, "y": sequence}})
    with pytest.raises(UserError, match="y is not a column"):
        rows(stream.model_copy(update={"source": more}))


# Smart plugs.


def test_every_plug_reports_load_and_work_once_per_interval() -> None:
    table = rows(plugs(interval="2 seconds", disorder="3 seconds"))
    seen = Counter(
        zip(
            micros(table),
            *(table.column(c).to_pylist() for c in ("house", "household", "plug", "property")),
            strict=True,
        )
    )
    start = parse_instant("2013-09-01 18:00:00")
    wanted = {
        (start + step * 2 * SECOND, house, household, plug, prop)
        for step in range(100)
        for house in range(2)
        for household in range(2)
        for plug in range(3)
        for prop in ("load", "work")
    }
    assert seen == Counter(wanted)


def test_work_is_the_running_sum_of_load() -> None:
    table = rows(plugs(rows=70_000, disorder="5 seconds", interval="1 second"))
    by_plug: dict[tuple[int, int, int], dict[str, list[tuple[int, float]]]] = {}
    names = ("house", "household", "plug", "property", "value")
    columns = [table.column(c).to_pylist() for c in names]
    for time, house, household, plug, prop, value in zip(micros(table), *columns, strict=True):
        found = by_plug.setdefault((house, household, plug), {"load": [], "work": []})
        found[prop].append((time, value))
    assert len(by_plug) == 12
    for found in by_plug.values():
        total = 0.0
        for (_, load), (_, work) in zip(sorted(found["load"]), sorted(found["work"]), strict=False):
            total += load / 1000 / 3600
            assert work == pytest.approx(total, abs=2e-6)


def test_plugs_switch_on_and_off_and_draw_plausible_power() -> None:
    table = rows(plugs(rows=24 * 3600 * 3, files=1))
    loads = [
        v
        for v, p in zip(table["value"].to_pylist(), table["property"].to_pylist(), strict=True)
        if p == "load"
    ]
    assert 0 <= min(loads) < 4
    assert 100 < max(loads) < 2500
    per_plug = [loads[i::12] for i in range(12)]
    assert sum(max(own) > 5 + 2 * min(own) for own in per_plug) >= 10, (
        "most plugs were both on and off in 3 h"
    )


def test_the_row_limit_may_cut_the_last_instant() -> None:
    assert [t.num_rows for t in batches(plugs(rows=101, files=2))] == [51, 50]


def test_smart_plugs_refuse_other_columns() -> None:
    stream = plugs()
    for columns, says in [
        ({**stream.columns, "room": DataType.STRING}, "no column room"),
        ({**stream.columns, "value": DataType.STRING}, "value is double or float"),
    ]:
        with pytest.raises(UserError, match=says):
            rows(stream.model_copy(update={"columns": columns}))


# Files.


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir()) if p.suffix == ".parquet"}


def test_files_hold_the_batches_in_order_dated_in_order(tmp_path: Path) -> None:
    stream = plugs(files=5, disorder="2 seconds")
    folder = materialise(stream, tmp_path / "a" / "b")
    parts = sorted(folder.glob("part-*"))
    assert [p.name for p in parts] == [f"part-0000{i}.parquet" for i in range(5)]
    for part, batch in zip(parts, batches(stream), strict=True):
        assert pq.read_table(part).equals(batch)
    assert pq.read_schema(parts[0]).field("ts").type == pa.timestamp("us", tz="UTC")
    dates = [p.stat().st_mtime for p in parts]
    assert all(later - earlier >= 1 for earlier, later in itertools.pairwise(dates))
    others = {p.name for p in folder.iterdir()} - {p.name for p in parts}
    assert all(name.startswith("_") for name in others), "Spark would read them"


def test_a_second_call_writes_nothing_and_still_reports(tmp_path: Path) -> None:
    stream, reports = plugs(), list[tuple[int, int]]()
    materialise(stream, tmp_path, lambda done, total: reports.append((done, total)))
    assert reports == [(600, 2400), (1200, 2400), (1800, 2400), (2400, 2400), (2400, 2400)]
    before = {p.name: p.stat().st_ino for p in tmp_path.iterdir()}
    again = list[tuple[int, int]]()
    materialise(stream, tmp_path, lambda done, total: again.append((done, total)))
    assert {p.name: p.stat().st_ino for p in tmp_path.iterdir()} == before
    assert again == [(2400, 2400)]


def test_what_does_not_change_the_rows_does_not_write_them_again(tmp_path: Path) -> None:
    stream = plugs()
    materialise(stream, tmp_path)
    before = {p.name: p.stat().st_ino for p in tmp_path.iterdir()}
    source = stream.source.model_copy(update={"files_per_batch": 2})
    materialise(stream.model_copy(update={"watermark": 9, "site": "edge", "source": source}), tmp_path)
    assert {p.name: p.stat().st_ino for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize("change", [{"seed": 5}, {"rows": 1000}, {"files": 2}, {"disorder": "1 second"}])
def test_a_changed_specification_is_written_anew(tmp_path: Path, change: dict[str, Any]) -> None:
    materialise(plugs(), tmp_path / "used")
    materialise(plugs(**change), tmp_path / "used")
    materialise(plugs(**change), tmp_path / "fresh")
    assert contents(tmp_path / "used") == contents(tmp_path / "fresh")


def test_a_lost_file_is_written_again(tmp_path: Path) -> None:
    materialise(plugs(), tmp_path)
    whole = contents(tmp_path)
    (tmp_path / "part-00002.parquet").unlink()
    materialise(plugs(), tmp_path)
    assert contents(tmp_path) == whole
    assert json.loads((tmp_path / "_done.json").read_text())["fingerprint"]


KILLED = """
import os, signal, sys
from pathlib import Path
from headrace.catalog.model import Stream
from headrace.runtime.generate import files

stream, folder, at = Stream.model_validate_json(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
calls = 0

def counted(path, new):
    # Dies in the middle of call number `at` to the only function that makes files appear.
    global calls
    calls += 1
    if calls == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, new)

rename, Path.replace = Path.replace, counted
files.materialise(stream, folder)
"""


@pytest.mark.parametrize("at", [1, 3, 6])
def test_killed_in_the_middle_and_called_again_gives_the_same_files(tmp_path: Path, at: int) -> None:
    stream, folder = plugs(), tmp_path / "killed"
    materialise(plugs(seed=99), folder)  # Of another specification: its parts must not survive.
    done = subprocess.run(
        [sys.executable, "-c", KILLED, stream.model_dump_json(), str(folder), str(at)], check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert not (folder / "_done.json").exists()
    materialise(stream, folder)
    materialise(stream, tmp_path / "fresh")
    assert contents(folder) == contents(tmp_path / "fresh")
    assert (folder / "part-00000.parquet").stat().st_mtime < (folder / "part-00003.parquet").stat().st_mtime
