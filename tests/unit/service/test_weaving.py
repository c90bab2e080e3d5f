"""place: a partition of the queries into trees and jobs; best_tree: the cheapest that can take a query."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.catalog.model import Project, Query
from headrace.errors import UserError
from headrace.plan.logical import StreamScan, nodes
from headrace.plan.placed import PlacedPlan, TreeJob, TreeMember, shape_of
from headrace.plan.text import format_expr
from headrace.service.weaving import best_tree, member_of, place
from tests.unit.service.test_sharing import CORE, EDGE, project

WINDOWS = [
    "[RANGE 1 MINUTE SLIDE 10 SECONDS]",
    "[RANGE 7 SECONDS SLIDE 3 SECONDS]",
    "[RANGE 1 HOUR SLIDE 1 MINUTE]",
]
FILTERS = ["", "WHERE v > 1.0", "WHERE k = 3", "WHERE k = 3 AND v > 1.0"]
KEYS = ["", "k", "v", "k, v"]
CALLS = ["count(*) AS n", "sum(v) AS x", "median(v) AS m", "max(k) AS y, avg(v) AS z"]


@st.composite
def texts(draw: st.DrawFn) -> str:
    window, where, keys, call = (draw(st.sampled_from(one)) for one in (WINDOWS, FILTERS, KEYS, CALLS))
    if draw(st.integers(0, 7)) == 0:
        return f"SELECT ts, v FROM files {where}"
    head, group = (f"{keys}, ", f"GROUP BY {keys}") if keys else ("", "")
    stream = draw(st.sampled_from(["files", "files", "made"]))
    return f"SELECT {head}{call} FROM {stream} {window} {where} {group}"


def queries_of(placed: PlacedPlan) -> Counter[str]:
    inside = [member.query for tree in placed.trees for member in tree.members]
    return Counter([*inside, *(job.query for job in placed.jobs)])


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.tuples(texts(), st.sampled_from(["edge", "core"])), min_size=1, max_size=9), st.booleans())
def test_every_query_stands_in_exactly_one_place(written: list[tuple[str, str]], sharing: bool) -> None:
    """TreeJob checks its members against its shape; which site and which stream is checked here."""
    queries = {f"q{i}": Query(name=f"q{i}", sql=sql, site=site) for i, (sql, site) in enumerate(written)}
    found = project({}, (EDGE, CORE), sharing=sharing).model_copy(update={"queries": queries})
    placed = place(found, list(queries))
    assert queries_of(placed) == Counter(list(queries))
    for tree in placed.trees:
        assert {queries[member.query].site for member in tree.members} == {tree.site}
        scans = [n for member in tree.members for n in nodes(member.plan) if isinstance(n, StreamScan)]
        assert len(set(scans)) == 1
    alone = {name for name, one in queries.items() if isinstance(member_of(found, one), str)}
    assert {job.query for job in placed.jobs} == alone
    assert not (placed.trees and not sharing)


TWO = {
    "a": "SELECT k, sum(v) AS x FROM files [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY k",
    "b": "SELECT k, max(v) AS x FROM files [RANGE 1 HOUR SLIDE 1 MINUTE] WHERE v > 2.0 GROUP BY k",
}


def member(found: Project, name: str, sql: str) -> TreeMember:
    made = member_of(found, Query(name=name, sql=sql))
    assert isinstance(made, TreeMember), made
    return made


def test_ids_come_from_the_shape_and_are_never_given_twice() -> None:
    found = project(TWO)
    (tree,) = place(found, ["a", "b"]).trees
    assert tree.id == f"tree-{tree.fingerprint[:8]}"
    assert place(found, ["b", "a"]).trees[0].id == tree.id
    (second,) = place(found, ["a", "b"], taken={tree.id}).trees
    assert second.id == f"{tree.id}-2"
    assert place(found, ["a", "b"], {tree.id, second.id}).trees[0].id == f"{tree.id}-3"
    apart = place(project({"a": TWO["a"], "c": TWO["a"]}, optimiser="G_RR"), ["a", "c"]).trees
    assert [one.id for one in apart] == [apart[0].id, f"{apart[0].id}-2"]


def test_nothing_is_placed_where_nothing_is_asked_for() -> None:
    assert place(project(TWO), []) == PlacedPlan(())


def test_a_wrong_query_spoils_the_plan() -> None:
    with pytest.raises(UserError, match="nothing") as error:
        place(project({**TWO, "bad": "SELECT nothing FROM files"}), ["a", "bad"])
    assert 'in query "bad"' in error.value.detail


def tree_of(name: str, *members: TreeMember, site: str = "local") -> TreeJob:
    return TreeJob(name, site, shape_of(members), members)


BY_K = "SELECT k, {0} FROM files [RANGE {1} SLIDE {2}] {3} GROUP BY k"


def test_a_new_query_goes_where_it_adds_least() -> None:
    """One tree has its edges and its argument already, the other would be cut finer for it."""
    found = project({})
    near = tree_of("near", member(found, "a", BY_K.format("sum(v) AS x", "1 MINUTE", "10 SECONDS", "")))
    far = tree_of("far", member(found, "b", BY_K.format("max(k) AS x", "1 HOUR", "1 HOUR", "")))
    new = member(found, "n", BY_K.format("avg(v) AS x", "2 MINUTES", "10 SECONDS", ""))
    for trees in ([near, far], [far, near]):
        assert best_tree(found, new, "local", trees) is near


def test_trees_that_cannot_take_a_query_are_passed_over() -> None:
    found = project({}, (EDGE, CORE))
    only_hot = tree_of(
        "hot", member(found, "a", BY_K.format("sum(v) AS x", "1 MINUTE", "1 MINUTE", "WHERE v > 2.0"))
    )
    by_k = tree_of(
        "k", member(found, "b", BY_K.format("sum(v) AS x", "1 MINUTE", "1 MINUTE", "")), site="core"
    )
    new = member(found, "n", BY_K.format("sum(v) AS x", "1 MINUTE", "1 MINUTE", ""))
    assert best_tree(found, new, "local", [only_hot]) is None, "it wants rows that the tree does not read"
    assert best_tree(found, new, "local", [by_k]) is None, "on another site"
    assert best_tree(found, new, "core", [only_hot, by_k]) is by_k
    total = member(found, "t", "SELECT sum(v) AS x FROM files [RANGE 1 MINUTE SLIDE 1 MINUTE]")
    assert best_tree(found, total, "core", [by_k]) is None, "its keys say in which bucket a row is"
    assert best_tree(found, new, "core", []) is None


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT ts, v FROM files", "it has no window aggregate"),
        (
            "SELECT median(v) AS m FROM files [RANGE 1 MINUTE SLIDE 1 MINUTE]",
            "median(v) cannot be put together",
        ),
        (
            "SELECT a.v FROM files [RANGE 1 MINUTE SLIDE 1 MINUTE] a WHERE a.v > "
            "(SELECT avg(b.v) FROM files [RANGE 1 MINUTE SLIDE 1 MINUTE] b)",
            "it joins windows with each other",
        ),
    ],
)
def test_what_can_be_in_no_tree(sql: str, says: str) -> None:
    assert says in str(member_of(project({}), Query(name="q", sql=sql)))


def test_projections_are_written_out_and_conditions_lie_right_below_the_window() -> None:
    sql = "SELECT w2, sum(w) AS x FROM (SELECT ts, v * 2 AS w, k + 1 AS w2 FROM files WHERE v > 1.0) s "
    found = member(project({}), "q", sql + "WHERE w < 9 GROUP BY window(ts, '1 minute'), w2")
    shape = shape_of((found,))
    assert [format_expr(key) for key in shape.keys] == ["k + 1"]
    assert [name for name, _ in found.aggregate.keys] == ["w2"]
    rows = found.window.input
    assert [type(node).__name__ for node in nodes(rows)] == ["StreamScan", "Filter"]


def test_the_root_of_a_project_does_not_matter(tmp_path: Path) -> None:
    found = project(TWO)
    moved = found.model_copy(update={"root": tmp_path})
    assert place(found, ["a", "b"]) == place(moved, ["a", "b"])
