"""What plans are expected to take, against the same sums done from the project's own numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.model import FileSource, Format, PlannerChoices, Project, Query, Site, Stream
from headrace.cost.windows import DEFAULTS
from headrace.plan.placed import PlacedPlan, TreeJob, TreeMember, shape_of
from headrace.plan.types import DataType
from headrace.service.binding import plan_query
from headrace.service.calibration_file import save_calibration
from headrace.service.compared import compared, comparison_lines
from headrace.service.measured import Done, Usage
from headrace.service.predict import NEVER, lines, predicted
from headrace.service.weaving import member_of
from tests.unit.service.test_calibration_file import calibration

HOP = "FROM TABLE(HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '{}' SECOND, INTERVAL '{}' SECOND)) "
BY = "GROUP BY window_start, window_end, k"
QUERIES = {
    "a": f"SELECT window_end, k, count(*) AS n, avg(v) AS m {HOP.format(1, 60)}{BY}",
    "b": f"SELECT window_end, k, max(v) AS x {HOP.format(5, 300)}{BY}",
    "c": f"SELECT window_end, k, count(*) AS n {HOP.format(10, 600)}{BY}",
}
FREE = dict.fromkeys(DEFAULTS.to_dict(), 0.0)


def project(root: Path, **site: object) -> Project:
    stream = Stream(
        name="s",
        columns={"ts": DataType.TIMESTAMP, "k": DataType.INT, "v": DataType.DOUBLE},
        time="ts",
        rate=10_000,
        distinct={"k": 20},
        source=FileSource(path="in", format=Format.PARQUET),
    )
    return Project(
        name="p",
        root=root,
        streams={"s": stream},
        tables={},
        sites={"local": Site(name="local", endpoint="local[2]", **site)},  # type: ignore[arg-type]
        links=(),
        queries={name: Query(name=name, sql=sql) for name, sql in QUERIES.items()},
        planner=PlannerChoices(trigger=2_000_000),
    )


def placed(found: Project) -> PlacedPlan:
    """a and b in a tree, c alone."""
    members = [member_of(found, found.queries[name]) for name in "ab"]
    both = tuple(member for member in members if isinstance(member, TreeMember))
    return PlacedPlan(
        (plan_query(found, found.queries["c"]),), (TreeJob("t", "local", shape_of(both), both),)
    )


def priced(found: Project, **prices: float) -> None:
    save_calibration(found, "local", calibration(costs=FREE | prices))


def test_cores_of_a_tree_and_of_a_plain_query(tmp_path: Path) -> None:
    found = project(tmp_path)
    priced(found, batch=1.0, query_batch=0.1, row=1e-5, cell=1e-3, plain_batch=0.5, expanded_row=1e-6)
    tree, plain = predicted(found, placed(found))["jobs"]
    cells = 20 * 1 + 20 / 5
    assert tree["cpu"] == pytest.approx(0.5 * (1.0 + 0.2) + 0.1 + cells * 1e-3)
    assert (tree["job"], tree["queries"]) == ("t", ["a", "b"])
    assert plain["cpu"] == pytest.approx(0.25 + 10_000 * 60 * 1e-6)
    assert (plain["queries"], plain["memory"]) == (["c"], None)


def test_a_site_has_all_its_jobs_and_says_whether_they_fit(tmp_path: Path) -> None:
    for cpu, memory, fits in ((3.0, 400, True), (0.5, 400, False), (3.0, 250, False)):
        found = project(tmp_path, cpu=cpu, memory=memory << 20)
        priced(
            found, batch=1.0, plain_batch=1.0, worker_memory=float(50 << 20), engine_memory=float(200 << 20)
        )
        prediction = predicted(found, placed(found))
        (site,) = prediction["sites"]
        assert site["cpu"] == pytest.approx(1.0)
        assert site["memory"] == pytest.approx(300 << 20, rel=0.01)
        assert site["fits"] is fits
        assert ("DOES NOT FIT" in lines(prediction)[0]) is not fits


def test_without_a_trigger_batches_wait_for_their_turn(tmp_path: Path) -> None:
    at_will = project(tmp_path, cpu=0.5).model_copy(update={"planner": PlannerChoices()})
    priced(at_will, batch=1.0, row=4e-5)
    (site,) = predicted(at_will, placed(at_will))["sites"]
    assert site["cpu"] == pytest.approx(1.4) and site["cpu_without_batches"] == pytest.approx(0.4)
    assert site["fits"]
    priced(at_will, batch=1.0, row=6e-5)
    assert not predicted(at_will, placed(at_will))["sites"][0]["fits"]


def test_lines_say_where_figures_come_from(tmp_path: Path) -> None:
    found = project(tmp_path)
    first, tree, plain = lines(predicted(found, placed(found)))
    assert NEVER in first and "predicted on local" in first
    assert tree.strip().startswith("t: ") and tree.endswith("2 queries")
    assert plain.strip().startswith("c: ") and plain.endswith("1 query") and "state" not in plain
    save_calibration(found, "local", calibration(unit="wall"))
    assert "calibrated 2026-11-16 05:00, by wall time" in lines(predicted(found, placed(found)))[0]


def test_after_a_run_what_was_done_is_priced(tmp_path: Path) -> None:
    """100 s of event time in 4 batches, whatever the trigger says."""
    found = project(tmp_path)
    priced(found, engine=20.0, job=3.0, batch=1.0, row=1e-6, plain_job=2.0, plain_batch=0.5, plain_row=2e-6)
    done = {"t": Done(1_000_000, 4, 6.0), "c": Done(500_000, 2, 2.0)}
    (site,) = compared(found, placed(found), done, Usage(30.0, 40.0, 1 << 30, 0))
    tree, plain = site["jobs"]
    assert tree["predicted_cpu_seconds"] == pytest.approx(3 + 4 + 1)
    assert plain["predicted_cpu_seconds"] == pytest.approx(2 + 1 + 1)
    assert site["predicted_cpu_seconds"] == pytest.approx(20 + 8 + 4)
    assert (tree["measured_cpu_seconds"], plain["measured_cpu_seconds"]) == (30.0, 10.0)
    assert (site["measured_cpu_seconds"], site["measured_memory"]) == (40.0, 1 << 30)
    assert "32.0 CPU-s predicted, 40.0 measured" in comparison_lines([site])[0]


def test_a_remote_site_is_not_seen(tmp_path: Path) -> None:
    found = project(tmp_path)
    done = {"t": Done(1000, 1, 1.0)}
    (site,) = compared(found, placed(found), done, Usage(1.0, 5.0, 100, 0), master="sc://far:15002")
    assert (site["measured_cpu_seconds"], site["measured_memory"]) == (None, None)
    assert site["jobs"][0]["measured_cpu_seconds"] is None
    assert "not seen measured" in comparison_lines([site])[0]


def test_a_job_that_did_nothing_costs_its_start(tmp_path: Path) -> None:
    found = project(tmp_path)
    priced(found, job=3.0, batch=1.0)
    (site,) = compared(found, placed(found), {"t": Done()}, Usage(1.0, 5.0, 100, 0))
    assert site["predicted_cpu_seconds"] == 3.0
    assert compared(found, placed(found), {}, Usage(1.0, 5.0, 100, 0)) == []


def test_faster_costs_less(tmp_path: Path) -> None:
    """One trigger for all: fewer batches, fewer cores."""
    found = project(tmp_path)
    slower = found.model_copy(update={"planner": PlannerChoices(trigger=20_000_000)})
    cpu = [sum(job["cpu"] for job in predicted(p, placed(p))["jobs"]) for p in (found, slower)]
    assert cpu[1] < cpu[0]
