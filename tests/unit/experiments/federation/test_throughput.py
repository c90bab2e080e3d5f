"""The stream that splits are measured with, and which splits there are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from headrace.catalog.load import load_project
from headrace.cost.federation import DEFAULTS
from headrace.errors import UserError
from headrace.experiments.federation.queries import QUERIES
from headrace.experiments.federation.searches import chain
from headrace.plan.text import format_plan
from headrace.planners.federation.problem import Options
from headrace.planners.federation.solve import solve
from headrace.service.binding import plan_query
from headrace.service.throughput_choice import Planned, named_splits, same_runs
from headrace.service.throughput_costs import prices_named
from headrace.service.throughput_stream import MICROS, START, Load, project_of, readings, write_readings

EXAMPLE = Path(__file__).parents[4] / "examples" / "smart-plugs-federated"


@pytest.mark.parametrize("name", QUERIES)
def test_the_queries_are_those_of_the_example(name: str) -> None:
    example = load_project(EXAMPLE)
    there = plan_query(example, example.queries[name]).plan
    ours = project_of(Load(1000), Path("rows"), name, QUERIES[name], 2)
    here = format_plan(plan_query(ours, ours.queries[name]).plan)
    # Only the watermark's delay differs.
    assert here.replace("watermark 1s", "watermark 5s") == format_plan(there)


def test_files_are_a_batch_each_and_fill_the_window_first(tmp_path: Path) -> None:
    load = Load(20, houses=1, batch=2, fill=30, warm=1, measured=2)
    write_readings(load, tmp_path)
    files = sorted(tmp_path.glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    assert [pq.read_metadata(path).num_rows for path in files] == [600, 40, 40, 40]
    assert (load.first, load.files, load.rows_a_batch) == (2, 4, 40)
    rows = pa.concat_tables(pq.read_table(path) for path in files)
    times = pc.cast(rows["ts"], pa.int64()).to_pylist()
    assert times == sorted(times)
    assert (times[0], times[-1] < START + 36 * MICROS, load.after) == (START, True, START + 30 * MICROS)
    assert pc.sum(pc.equal(rows["property"], "load")).as_py() * 2 == rows.num_rows
    assert rows.equals(readings(load, 0, rows.num_rows))
    assert rows.group_by(["house", "household", "plug"]).aggregate([]).num_rows == load.plugs == 25
    before = {path: path.stat().st_mtime_ns for path in files}
    write_readings(load, tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in files}


def test_a_large_window_is_filled_in_several_batches() -> None:
    load = Load(40_000)
    assert load.fills == 6
    assert [last - first for first, last in load.spans()][:7] == [2_000_000] * 6 + [400_000]


def planned(query: str, rate: int = 1000) -> Planned:
    return Planned(Load(rate), query, QUERIES[query], DEFAULTS, 2)


def test_splits_by_name() -> None:
    one = named_splits(planned("cq1").plan)
    assert (one["spark"], one["duckdb"], one["select"]) == ("sssss", "ddddd", "ssddd")
    assert (one["root"], one["upper"], one["lower"]) == ("ssdds", "ssdss", "sssdd")
    six = named_splits(planned("cq6").plan)
    assert (six["select"], six["root"], six["upper"]) == ("sdsddsdd", "sdsddsds", "sdsdssds")


def test_splits_that_run_alike_stand_for_each_other() -> None:
    same = same_runs(planned("cq1").plan)
    # The rows of both sides are one feed of Spark where either selection is on Spark.
    assert same["dsddd"] == same["sdddd"] == same["ssddd"] == "ssddd"
    assert same["ddddd"] == "ddddd"
    assert len(same) == 32


def test_a_choice_costs_what_the_same_split_is_believed_to_cost() -> None:
    one = planned("cq3", 40_000)
    chosen = one.chosen()
    assert chosen == one.believed(chosen.split)
    assert one.believed("sssss").utilisation > chosen.utilisation


def test_prices_come_from_a_calibration(tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    costs = DEFAULTS.to_dict() | {"statement": 0.5}
    file.write_text(f'{{"federation": {{"local": {{"costs": {str(costs).replace(chr(39), chr(34))}}}}}}}')
    assert prices_named(str(file), tmp_path, 2).statement == 0.5
    assert prices_named("default", tmp_path, 2) == DEFAULTS


@pytest.mark.parametrize(
    "text", ["", "{}", '{"federation": {}}', '{"federation": {"local": {"costs": {"a": 1}}}}']
)
def test_a_file_without_prices_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "calibration.json"
    file.write_text(text)
    with pytest.raises(UserError, match="has no prices"):
        prices_named(str(file), tmp_path, 2)


@pytest.mark.parametrize("count", [1, 4, 7])
def test_unary_operators_leave_the_papers_pruning_one_plan_more_than_there_are(count: int) -> None:
    assert solve(chain(count), Options(pruning="paper", runners=0), lambda: 0.0).examined == count + 1
