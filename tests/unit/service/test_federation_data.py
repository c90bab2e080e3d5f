"""What explain and plan say of splits, and the picture of one."""

from __future__ import annotations

import itertools
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.plan.federated import Engine, FederatedMember, operators
from headrace.plan.federated_parts import cut
from headrace.service.binding import plan_query
from headrace.service.explain import explain_plan, explain_query
from headrace.service.federating_problem import node_ids
from headrace.service.federation_data import node_engines
from headrace.service.picture import html, svg
from headrace.service.planning import plan_project
from headrace.service.predict import predicted
from headrace.service.project import open_project
from tests.unit.service.federated_sample import NEAR, PRICES, TOP, calibrated, write

EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-plugs-federated"
SVG = "{http://www.w3.org/2000/svg}"


def test_golden_lines(tmp_path: Path) -> None:
    found = write(tmp_path, near=NEAR)
    assert "never calibrated" in explain_query(found, "near")["federation"]["costs"]
    calibrated(found)
    data = explain_query(found, "near")
    job = data["federation"]["job"]
    assert data["federation"]["text"] == [
        f"chosen by the planner; it runs in {job}",
        "at readings 100 rows/s  (unit costs: calibrated 2024-05-01 12:00)",
        "  spark  n1    Filter     gives 50 rows/s, window 500 rows          p = 'load'",
        "  spark  n1/2  Filter     gives 50 rows/s, window 500 rows          p = 'load'",
        "  duckdb n3    Aggregate  gives 10 rows/s, window 10 rows           by (k) give (max(v) AS value)",
        "  duckdb n5    WindowJoin gives 183.3 rows/s, window 166.7 rows     "
        "on k = q0.k AND v > 0.9 * q0.value",
        "  duckdb n6    Aggregate  gives 10 rows/s, window 10 rows           by (k) give (count(*) AS n)",
        "  part 1 on spark: n1  u = 2e-05",
        "  part 2 on spark: n1/2  u = 0",
        "  part 3 on duckdb: n3, n5, n6  u = 0.0101 = in 3.3e-05 + work 3.6e-05 + statements 0.01 "
        "+ out 1.6e-05",
        "C_b 0.0101, C_u 0.0101 of 2 cores: feasible",
        "  transfer n1/2 -> n3: 50 rows/s, travels already",
        "  transfer n1 -> n5: 50 rows/s, 2,200 bytes/s",
        "  transfer n6 -> sink: 10 rows/s, 520 bytes/s",
        *data["federation"]["text"][14:],
    ]
    runners = data["federation"]["runners_up"]
    assert [one["why"].split(" ")[0] for one in runners] == ["takes"] * len(runners)
    assert {"all on Spark", "all on DuckDB"} <= {
        line.removeprefix("  not ").split(":")[0] for line in data["federation"]["text"][14:]
    }
    json.dumps(data)


def test_why_not(tmp_path: Path) -> None:
    found = write(tmp_path, rows="SELECT ts, v FROM readings WHERE v > 1", tree=TOP)
    assert explain_query(found, "rows")["not_split"].startswith("it has no window")
    tree = explain_query(found, "tree")
    assert "federation" not in tree and "not_split" not in tree
    off = explain_query(write(tmp_path, "", near=NEAR), "near")
    assert "federation" not in off and "not_split" not in off


def test_a_plan_has_the_splits_as_steps(tmp_path: Path) -> None:
    found = write(tmp_path)
    data = explain_plan(found)
    (job,) = plan_project(found).federated
    assert data["steps"] == [
        f"start {name} in {job.id} on local, split between Spark and DuckDB" for name in ("near", "top")
    ]
    assert [one["federation"]["job"] for one in data["jobs"]] == [job.id, job.id]
    assert "it runs in" in explain_query(found, "near")["sharing"]["lines"][1]


def test_spark_alone_that_may_be_split_later_says_so(tmp_path: Path) -> None:
    hidden = NEAR.replace("a.window_start, a.window_end, ", "")
    found = write(tmp_path, near=NEAR, hidden=hidden)
    calibrated(found, replace(PRICES, statement=10.0))
    (job,) = plan_project(found).federated
    data = {one["query"]: one for one in explain_plan(found)["jobs"]}
    assert explain_plan(found)["steps"] == [
        f"start near in {job.id} on local, on Spark alone, to be chosen for again",
        "start hidden on local",
    ]
    first = {name: one["federation"]["text"][0] for name, one in data.items()}
    assert first["near"] == (
        f"chosen by the planner; it runs in {job.id}, all on Spark, and is looked at again while it runs"
    )
    assert first["hidden"] == "chosen by the planner; it runs as a job on Spark"


def test_what_runs_is_predicted(tmp_path: Path) -> None:
    found = write(tmp_path)
    data = explain_plan(found)
    (job,) = predicted(found, plan_project(found))["jobs"]
    splits = sum(one["federation"]["chosen"]["utilisation"] for one in data["jobs"])
    assert job["queries"] == ["near", "top"]
    assert job["cpu"] - job["parts"]["plain_batch"] == pytest.approx(splits)
    # 500 rows of ts, k and v, which both queries want.
    assert job["memory"] == 500 * (20 + 24)


@pytest.mark.parametrize("name", ["cq1", "cq3", "cq5"])
def test_engines_of_nodes_are_those_of_the_parts(name: str) -> None:
    """For every split: whoever makes the rows of an operator by the run time's cut is who explain names."""
    found = open_project(EXAMPLE)
    plan = plan_query(found, found.queries[name]).plan
    free, ids = operators(plan), node_ids(plan)
    for engines in itertools.product(Engine, repeat=len(free)):
        said = node_engines(plan, engines)
        for part in cut(FederatedMember(name, plan, engines)):
            if part.root in free and free.count(part.root) == 1:
                assert said[ids[part.root]] == part.engine, (name, engines)
        for node, engine in zip(free, engines, strict=True):
            assert engine in said[ids[node]].split("+")


def test_the_picture_shows_engines_and_what_travels(tmp_path: Path) -> None:
    found = write(tmp_path, near=NEAR)
    data = explain_query(found, "near")
    texts = [text.text or "" for text in ET.fromstring(svg([data])).iter(f"{SVG}text")]
    for wanted in (
        "Stream n0 · spark",
        "Filter n1 · spark",
        "Aggregate n3 · duckdb",
        "WindowJoin n5 · duckdb",
    ):
        assert wanted in texts
    assert [text for text in texts if text.endswith("rows/s")] == ["50 rows/s", "10 rows/s"]
    assert any(text.startswith("near on local, split: C_b") for text in texts)
    assert "duckdb" in html("near", [data])


def test_both_engines_for_one_node() -> None:
    found = open_project(EXAMPLE)
    plan = plan_query(found, found.queries["cq1"]).plan
    said = node_engines(plan, (Engine.SPARK, Engine.DUCKDB, Engine.DUCKDB, Engine.SPARK, Engine.SPARK))
    assert said["n1"] == "spark+duckdb" and said["n2"] == "spark+duckdb" and said["n5"] == "spark"
