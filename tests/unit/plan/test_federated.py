"""The cut of split queries into parts and feeds, on the paper's queries and a join of streams."""

from __future__ import annotations

import pytest

from headrace.errors import InternalError
from headrace.plan import logical as lp
from headrace.plan.federated import Engine, FederatedMember, operators
from headrace.plan.federated_parts import Part, columns_read, cut, delay, widened
from tests.federated_cases import PLUG, QUERIES, plan_of
from tests.spark.plans import SECOND, joined

S, D = Engine.SPARK, Engine.DUCKDB
CQ1, CQ3, CQ5 = (plan_of(QUERIES[name]) for name in ("cq1", "cq3", "cq5"))


def parts_of(plan: lp.LogicalPlan, engines: str) -> tuple[Part, ...]:
    chosen = tuple(S if letter == "s" else D for letter in engines)
    return cut(FederatedMember("q", plan, chosen))


def kinds(plan: lp.LogicalPlan) -> list[str]:
    return [type(node).__name__ for node in operators(plan)]


def test_the_queries_have_the_operators_the_splits_below_are_about() -> None:
    assert kinds(CQ1) == ["Filter", "Filter", "Aggregate", "WindowJoin", "Aggregate"]
    assert kinds(CQ3) == ["Filter", "Aggregate", "Filter", "Aggregate", "WindowJoin"]
    assert kinds(CQ5) == ["Filter", "Aggregate", "Aggregate"]


@pytest.mark.parametrize("plan", [CQ1, CQ3, CQ5])
def test_on_spark_alone_the_whole_query_is_one_feed(plan: lp.LogicalPlan) -> None:
    assert parts_of(plan, "s" * len(operators(plan))) == (Part(S, plan, ()),)


def test_filters_on_spark_feed_one_statement() -> None:
    feed, part = parts_of(CQ1, "ssddd")
    assert feed == Part(S, operators(CQ1)[0], ())
    assert part.engine is D and part.inputs == (feed.root,) and len(part.windows()) == 1
    read = columns_read((feed, part), [CQ1])
    assert set(read[feed.root]) == {"ts", "value", *PLUG.split(", ")}
    assert read[CQ1] == CQ1.schema.names


def test_on_duckdb_alone_raw_rows_travel_and_are_filtered_as_they_come() -> None:
    feed, step, part = parts_of(CQ1, "ddddd")
    assert isinstance(feed.root, lp.StreamScan) and step == Part(D, operators(CQ1)[0], (feed.root,))
    assert part.inputs == (step.root,)
    assert "property" in columns_read((feed, step, part), [CQ1])[feed.root]


def test_a_relation_that_is_a_feed_somewhere_is_one_everywhere() -> None:
    assert parts_of(CQ1, "sdddd") == parts_of(CQ1, "dsddd") == parts_of(CQ1, "ssddd")


def test_aggregates_of_spark_come_as_windows() -> None:
    one, two, part = parts_of(CQ3, "ssssd")
    assert one.is_feed and two.is_feed and not part.windows()
    assert {type(n).__name__ for n in (one.root, two.root)} <= {"Aggregate", "Project"}
    window = one.root.window
    assert window is not None
    assert {window.start, window.end} <= set(columns_read((one, two, part), [CQ3])[one.root])


def test_spark_above_duckdb_reads_what_was_kept_of_duckdb() -> None:
    feed, step, below, above = parts_of(CQ5, "dds")
    assert (feed.engine, step.engine, below.engine, above.engine) == (S, D, D, S)
    assert step.inputs == (feed.root,) and below.inputs == (step.root,) and above.inputs == (below.root,)
    feed, step, whole = parts_of(CQ5, "dss")
    assert whole.engine is S and whole.inputs == (step.root,) and len(whole.windows()) == 1


def test_a_joined_row_may_be_as_much_older_as_the_join_allows() -> None:
    assert delay(joined(), "a.ts") == SECOND
    assert delay(joined(), "b.ts") == SECOND // 2
    with pytest.raises(InternalError):
        delay(joined(), "a.value")


def test_queries_over_other_columns_of_the_same_rows_meet() -> None:
    window = "FROM readings [RANGE 5 SECONDS SLIDE 1 SECOND] WHERE property = 'load'"
    one = plan_of(f"SELECT window_end, avg(value) AS m {window}")
    two = plan_of(f"SELECT window_end, plug, count(*) AS n {window} GROUP BY plug")
    wide = widened((one, two))
    assert [p.schema for p in wide] == [one.schema, two.schema]
    filters = [operators(plan)[0] for plan in (one, two, *wide)]
    assert filters[0] != filters[1] and filters[2] == filters[3]


def test_a_plan_that_shows_all_columns_of_its_stream_keeps_them() -> None:
    rows = plan_of("SELECT ts, value FROM readings WHERE value > 1")
    bare = next(node for node in lp.nodes(rows) if isinstance(node, lp.Filter))
    other = plan_of("SELECT ts, plug FROM readings WHERE value > 1")
    assert widened((bare, other))[0] == bare
