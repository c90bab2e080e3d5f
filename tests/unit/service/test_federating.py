"""From a query to a problem of the planner, and from its answer to jobs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.catalog.model import EngineName, Project, RateSource, Sink, SinkKind
from headrace.cost.federation import DEFAULTS, ROW_BYTES
from headrace.errors import UserError
from headrace.plan.federated import Engine, operators
from headrace.plan.logical import Filter
from headrace.planners.federation.problem import Plan
from headrace.service.binding import plan_query
from headrace.service.federating import Choice, check_engines, choose
from headrace.service.federating_load import ROOM, kept_bytes, readers_of_too_much
from headrace.service.federating_problem import NO_CHOICE, NO_WINDOW, problem_of
from headrace.service.members import NAMES_ENGINE
from headrace.service.placing_part import WATCHED, staying_together
from headrace.service.planning import plan_jobs, plan_project
from headrace.service.predict import predicted
from headrace.service.project import open_project
from headrace.service.sharing import share
from tests.unit.service.federated_sample import NEAR, PRICES, TOP, calibrated, write

S, D = Engine.SPARK, Engine.DUCKDB
EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-plugs-federated"


def problem(found: Project, name: str, rates: dict[str, float] | None = None) -> Plan:
    plan = plan_query(found, found.queries[name]).plan
    return problem_of(found, "local", plan, DEFAULTS, rates)


def chosen(found: Project, name: str, rate: float | None = None) -> Choice:
    query = found.queries[name]
    rates = None if rate is None else {"readings": rate}
    choice = choose(found, query, plan_query(found, query).plan, rates=rates)
    assert isinstance(choice, Choice)
    return choice


def test_engine_names_are_those_of_the_plan() -> None:
    assert EngineName.__args__ == tuple(Engine)  # type: ignore[attr-defined]


def test_the_queries_of_the_paper_have_its_operators() -> None:
    """Figure 4, but that the comparison of CQ1 and CQ2 is a condition of their join."""
    found = open_project(EXAMPLE)
    kinds = {
        name: " ".join(type(one).__name__ for one in operators(plan_query(found, query).plan))
        for name, query in found.queries.items()
    }
    correlated = "Filter Filter Aggregate WindowJoin Aggregate"
    two = "Filter Aggregate Filter Aggregate WindowJoin"
    assert kinds == {
        "cq1": correlated,
        "cq2": correlated,
        "cq3": two,
        "cq4": two,
        "cq5": "Filter Aggregate Aggregate",
        "cq6": f"{two} Filter Aggregate WindowJoin",
    }
    for name, query in found.queries.items():
        plan = plan_query(found, query).plan
        assert [o.name.split("/")[0] for o in problem(found, name).operators] and plan.window is not None


def test_rates_and_sizes_by_hand(tmp_path: Path) -> None:
    found = write(tmp_path)
    plan = problem(found, "near")
    assert [(s.name, s.rate) for s in plan.streams] == [("readings", 100.0)]
    assert [(w.range, w.slide) for w in plan.windows] == [(10.0, 1.0)] * 2
    first, second, biggest, join, counted = plan.operators
    assert (first.selectivity, second.selectivity) == (0.5, 0.5), "p has two values"
    assert biggest.groups == pytest.approx(10.0), "k has ten, and 500 rows meet all"
    assert join.left == join.right == pytest.approx(1 / 3 / 10), "one k in ten, and one row in three"
    # ts, k and v travel, and the last two are on their way already.
    assert first.width == 8 + 4 + 8 + ROW_BYTES and second.width == 0.0
    # The two filters are one to the run time: the stream travels once, if it does, and is filtered once.
    assert [window.width for window in plan.windows] == [8 + 4 + 20 + 8 + ROW_BYTES, 0.0]
    assert first.spark[0] > 0 and second.spark == (0.0,)
    assert counted.width == 8 + 8 + 4 + 8 + ROW_BYTES
    assert problem(found, "near", {"readings": 7.0}).streams[0].rate == 7.0
    assert plan.cores == found.sites["local"].cpu


def test_a_stream_below_other_filters_is_charged_to_each(tmp_path: Path) -> None:
    found = write(tmp_path, near=NEAR.replace("WHERE b.p = 'load'", "WHERE b.p = 'work'"))
    plan = problem(found, "near")
    raw = 8 + 4 + 20 + 8 + ROW_BYTES
    assert [window.width for window in plan.windows] == [raw, raw]
    first, second, *_ = plan.operators
    assert first.spark == second.spark and first.width == second.width


def test_a_statement_gives_all_windows_of_a_batch(tmp_path: Path) -> None:
    rest = "planner: {federation: auto, trigger: 5 seconds}"
    plan = problem(write(tmp_path, rest), "near")
    assert plan.prices.statement == pytest.approx(DEFAULTS.statement / 5)


def test_the_project_file_decides(tmp_path: Path) -> None:
    listed = "engines: [spark, duckdb, duckdb]"
    found = write(
        tmp_path,
        "planner: {federation: duckdb}",
        a=NEAR,
        b=f"{TOP}#engine: spark",
        c=f"{TOP}#engine: duckdb",
        d=f"{TOP}#{listed}",
    )
    assert chosen(found, "a").engines == (D,) * 5
    assert chosen(found, "b").engines == (S,) * 3
    assert chosen(found, "c").engines == (D,) * 3
    assert chosen(found, "d").engines == (S, D, D)
    assert [chosen(found, name).asked for name in "abcd"] == ["duckdb", "spark", "duckdb", "engines"]


def test_a_list_of_another_length_is_refused_at_its_place(tmp_path: Path) -> None:
    found = write(tmp_path, a=f"{TOP}#engines: [spark, duckdb]")
    with pytest.raises(UserError, match="has 3 operators with a choice of engine, and 2 engines") as caught:
        plan_project(found)
    with pytest.raises(UserError, match="has 3 operators with a choice of engine, and 2 engines"):
        check_engines(found, plan_jobs(found).jobs)
    assert caught.value.span is not None
    line = (tmp_path / "headrace.yaml").read_text().splitlines()[caught.value.span.line - 1]
    assert line[caught.value.span.column - 1 :].startswith("engines")
    assert "n1 Filter, n3 Aggregate, n4 Aggregate" in caught.value.detail


def test_what_is_split_and_what_is_not(tmp_path: Path) -> None:
    shared = TOP.replace("max", "min")
    loads = "SELECT ts, v FROM readings WHERE p = 'load'"
    found = write(
        tmp_path,
        near=NEAR,
        tree=shared,
        top=f"{TOP}#engine: auto",
        rows=loads,
        all="SELECT ts, v FROM readings",
    )
    placed = plan_project(found)
    assert [[m.query for m in tree.members] for tree in placed.trees] == [["tree"]]
    assert [[m.query for m in job.members] for job in placed.federated] == [["near", "top"]]
    assert [job.query for job in placed.jobs] == ["rows", "all"]
    reasons = {one.query: one.reason for one in share(found).unshared}
    assert reasons["top"] == NAMES_ENGINE
    plans = {name: plan_query(found, found.queries[name]).plan for name in ("rows", "all")}
    assert choose(found, found.queries["rows"], plans["rows"]) == NO_WINDOW
    assert choose(found, found.queries["all"], plans["all"]) == NO_CHOICE


def test_off_changes_nothing(tmp_path: Path) -> None:
    placed = plan_project(write(tmp_path, "planner: {federation: off}", near=NEAR, top=TOP))
    assert placed.federated == () and [job.query for job in placed.jobs] == ["near"]


def test_spark_alone_is_an_ordinary_job_where_the_project_file_says_so(tmp_path: Path) -> None:
    listed = f"{TOP}#engines: [spark, spark, spark]"
    placed = plan_project(
        write(tmp_path, "planner: {federation: spark}", near=NEAR, a=listed, b=f"{TOP}#engine: spark")
    )
    assert placed.federated == () and [job.query for job in placed.jobs] == ["near", "a", "b"]


def best_on_spark(tmp_path: Path, rest: str = "planner: {federation: auto}", **queries: str) -> Project:
    found = write(tmp_path, rest, **queries)
    calibrated(found, replace(PRICES, statement=10.0))
    return found


def test_spark_alone_is_watched_where_the_planner_chose_it(tmp_path: Path) -> None:
    """Each in a job of its own: there is nothing to share."""
    hidden = NEAR.replace("a.window_start, a.window_end, ", "")
    found = best_on_spark(tmp_path, near=NEAR, again=NEAR, hidden=hidden, top=f"{TOP}#engine: auto")
    placed = plan_project(found)
    assert [[m.query for m in job.members] for job in placed.federated] == [["near"], ["again"], ["top"]]
    assert all(job.on_spark for job in placed.federated)
    assert {staying_together(job) for job in placed.federated} == {WATCHED}
    assert [job.query for job in placed.jobs] == ["hidden"], "it cannot be handed over"
    for name in ("near", "hidden"):
        assert chosen(found, name).on_spark and chosen(found, name).asked == "auto"


def test_what_cannot_be_read_again_or_lies_in_memory_is_not_watched(tmp_path: Path) -> None:
    """A job that takes over reads its stream from the beginning, which a rate source has not kept."""
    found = best_on_spark(tmp_path, near=NEAR)
    stream, query = found.streams["readings"], found.queries["near"]
    endless = {"readings": stream.model_copy(update={"source": RateSource()})}
    in_memory = {"near": query.model_copy(update={"sink": Sink(kind=SinkKind.MEMORY)})}
    assert plan_project(found).federated and not plan_project(found).jobs
    for change in ({"streams": endless}, {"queries": in_memory}):
        placed = plan_project(found.model_copy(update=change))
        assert placed.federated == () and [job.query for job in placed.jobs] == ["near"]


def test_spark_alone_is_priced_as_the_ordinary_job_that_it_could_be(tmp_path: Path) -> None:
    watched = best_on_spark(tmp_path / "watched", near=NEAR)
    plain = write(tmp_path / "plain", "planner: {federation: spark}", near=NEAR)
    (found,), (other,) = (predicted(one, plan_project(one))["jobs"] for one in (watched, plain))
    assert found["job"].startswith("fed-") and other["job"] == "near"
    assert found["cpu"] > 0
    assert {**found, "job": "near"} == other


def test_spark_alone_is_cut_where_the_project_is_spread(tmp_path: Path) -> None:
    found = best_on_spark(tmp_path, "planner: {federation: auto, spread: true}", near=NEAR)
    placed = plan_project(found)
    assert placed.federated == () and [job.query for job in placed.jobs] == ["near"]


def test_a_query_that_hides_its_windows_has_a_job_of_its_own(tmp_path: Path) -> None:
    hidden = NEAR.replace("a.window_start, a.window_end, ", "")
    placed = plan_project(write(tmp_path, near=NEAR, hidden=hidden, again=NEAR))
    assert sorted([m.query for m in job.members] for job in placed.federated) == [
        ["hidden"],
        ["near", "again"],
    ]


def test_selections_stay_on_spark_and_the_rest_goes_to_duckdb() -> None:
    """As in the paper for CQ1 and CQ2 at all rates, and as docs/experiments/federation.md has it for all six:
    windows are scanned twice, and fewer rows travel."""
    found = open_project(EXAMPLE)
    for rate in (24.0, 1_000.0, 2_000.0, 20_000.0, 80_000.0):
        for name in found.queries:
            choice = chosen(found, name, rate)
            free = operators(choice.plan)
            assert choice.engines == tuple(S if isinstance(one, Filter) else D for one in free), (name, rate)
            assert choice.answer.split.feasible


def test_what_does_not_fit_the_database_stays_on_spark() -> None:
    found = open_project(EXAMPLE)
    fits, raw, none = (chosen(found, "cq5", rate) for rate in (24.0, 80_000.0, 1_000_000.0))
    assert fits.too_much == () and fits.engines == raw.engines == (S, D, D) and raw.too_much == ()
    # 150 million loads in five minutes, of 52 bytes each; sums of plugs would fit.
    assert none.engines[:2] == (S, S) and none.too_much[0] == none.answer.plan.operators[1].name
    assert readers_of_too_much(none.answer.plan, none.engines) == []
    assert readers_of_too_much(none.answer.plan, (S, D, D)) == [1]
    assert readers_of_too_much(none.answer.plan, (D, D, D)) == [0], "the raw rows, first of all"


def test_what_is_told_to_be_on_duckdb_is(tmp_path: Path) -> None:
    found = open_project(EXAMPLE)
    query = found.queries["cq5"].model_copy(update={"engine": "duckdb"})
    found = found.model_copy(update={"queries": {**found.queries, "cq5": query}})
    choice = chosen(found, "cq5", 1_000_000.0)
    assert choice.engines == (D, D, D) and choice.too_much == ()


def test_queries_whose_rows_do_not_fit_one_database_are_two_jobs() -> None:
    found = open_project(EXAMPLE)
    loads = found.queries["cq5"]
    work = loads.model_copy(update={"name": "work", "sql": loads.sql.replace("'load'", "'work'")})
    queries = {"cq3": found.queries["cq3"], "work": work, "cq5": loads}

    def sets(rate: float) -> list[set[str]]:
        streams = {"readings": found.streams["readings"].model_copy(update={"rate": rate})}
        made = found.model_copy(update={"streams": streams, "queries": queries})
        jobs = plan_project(made).federated
        assert all(kept_bytes(made, job) <= ROOM for job in jobs)
        return [{member.query for member in job.members} for job in jobs]

    assert sets(24.0) == [set(queries)]
    assert sets(90_000.0) == [{"cq3"}, {"work"}, {"cq5"}]
