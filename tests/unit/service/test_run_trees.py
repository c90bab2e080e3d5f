"""Runs of trees: what is deployed stays where it is, whatever a planner would choose today."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.model import Sink, SinkKind
from headrace.errors import UserError
from headrace.service.run import Options
from headrace.service.view import job_rows, rows_read
from tests.unit.service.disk_engine import Ground
from tests.unit.service.sample import query

JSON = Sink(kind=SinkKind.JSON)


def _ground(root: Path, monkeypatch: pytest.MonkeyPatch, **sqls: str) -> Ground:
    queries = {name: query(name, sql, JSON) for name, sql in sqls.items()}
    return Ground(root, monkeypatch, queries)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """Four queries that share, three to a tree, and one that is a job."""
    return _ground(tmp_path, monkeypatch, a="1", b="2", alone="alone", c="3", d="4")


FIRST = {"tree-1": ["a", "b", "c"], "tree-2": ["d"]}


def _starts(ground: Ground) -> list[str]:
    assert ground.engine is not None
    return [unit for what, unit in ground.engine.calls if what == "start"]


def test_a_first_run_starts_each_tree_once(ground: Ground) -> None:
    outcome = ground.run()
    assert ground.trees() == FIRST
    assert _starts(ground) == ["tree-1", "alone", "tree-2"]
    assert [(w.job, w.tree) for w in outcome.last.jobs] == [
        ("a", "tree-1"),
        ("b", "tree-1"),
        ("alone", None),
        ("c", "tree-1"),
        ("d", "tree-2"),
    ]
    ground.check_answers()


def test_a_restart_runs_the_same_trees(ground: Ground) -> None:
    """The planner would put e with a and b now, because it stands before c."""
    ground.run()
    ground.queries = {"e": query("e", "9", JSON), **ground.queries}
    ground.run()
    assert ground.trees() == {**FIRST, "tree-3": ["e"]}
    ground.check_answers()
    assert ground.windows("a") == list(range(1, 1 + 2 * (len(ground.windows("a")) // 2)))


def test_a_drain_keeps_few_trees_and_jobs_going(ground: Ground) -> None:
    outcome = ground.run(99, options=Options(drain=True))
    assert (outcome.exit_code, {w.progress.state.value for w in outcome.last.jobs if w.progress}) == (
        0,
        {"finished"},
    )
    assert _starts(ground) == ["tree-1", "alone", "tree-2"]


def test_a_member_that_is_gone_leaves_its_tree(ground: Ground) -> None:
    ground.run()
    del ground.queries["b"], ground.queries["d"]
    before = ground.windows("b")
    ground.run()
    assert ground.trees() == {"tree-1": ["a", "c"]}
    assert ground.windows("b") == before
    assert not ground.folder("b").exists()
    assert not ground.folder("tree-2").exists(), "a tree without members is forgotten"
    ground.check_answers()


def test_a_query_put_back_into_the_file_needs_fresh(ground: Ground) -> None:
    gone = ground.queries
    ground.run()
    ground.queries = {name: q for name, q in gone.items() if name != "b"}
    ground.run()
    ground.queries = gone
    with pytest.raises(UserError, match="what that run kept is gone"):
        ground.run()
    ground.run(options=Options(fresh=True, only=("b",)))
    assert ground.trees() == {"tree-1": ["a", "c"], "tree-2": ["d"], "tree-3": ["b"]}
    ground.run()
    ground.check_answers()


def test_a_job_whose_query_was_away_goes_on(ground: Ground) -> None:
    """As before there were trees: its checkpoint is its own."""
    all_queries = ground.queries
    ground.run()
    ground.queries = {name: q for name, q in all_queries.items() if name != "alone"}
    ground.run()
    ground.queries = all_queries
    ground.run()
    ground.check_answers()


def test_a_changed_member_is_refused_until_fresh(ground: Ground) -> None:
    ground.run()
    ground.queries["b"] = query("b", "8", JSON)
    with pytest.raises(UserError, match='the plan of query "b" has changed') as caught:
        ground.run()
    assert caught.value.hint == "Run it from the beginning with: headrace run --fresh --only b"
    assert ground.trees() == FIRST
    ground.run(options=Options(fresh=True, only=("b",)))
    assert ground.trees() == {"tree-1": ["a", "c"], "tree-2": ["d"], "tree-3": ["b"]}
    assert _starts(ground) == ["tree-3"]
    ground.run()
    ground.check_answers()


def test_a_changed_sink_is_refused(ground: Ground) -> None:
    ground.run()
    ground.queries["a"] = query("a", "1", Sink(kind=SinkKind.JSON, path="elsewhere"))
    with pytest.raises(UserError, match='the sink of query "a" has changed'):
        ground.run()


def test_only_runs_the_whole_tree_and_says_so(ground: Ground) -> None:
    ground.run()
    outcome = ground.run(options=Options(only=("b",)))
    assert _starts(ground) == ["tree-1"]
    assert outcome.notes == ("tree-1 also runs a, c: a tree cannot leave a member behind",)
    ground.check_answers()


def test_only_places_no_others(ground: Ground) -> None:
    ground.run(options=Options(only=("b", "alone")))
    assert ground.trees() == {"tree-1": ["b"]}
    ground.run()
    assert ground.trees() == {"tree-1": ["b"], "tree-2": ["a", "c", "d"]}
    ground.check_answers()


def test_fresh_clears_everything(ground: Ground) -> None:
    ground.run(8)
    ground.run(3, options=Options(fresh=True))
    assert ground.windows("a") == [1, 2, 3][: len(ground.windows("a"))]
    assert ground.trees() == {"tree-3": ["a", "b", "c"], "tree-4": ["d"]}
    assert sorted(p.name for p in ground.folder("x").parent.iterdir()) == [
        *("a", "alone", "b", "c", "d"),
        *("tree-3", "tree-4"),
    ]
    ground.check_answers()


def test_results_without_their_tree_need_fresh(ground: Ground) -> None:
    ground.run()
    ground.folder("tree-1").rename(ground.root / "away")
    with pytest.raises(UserError, match="what that run kept is gone"):
        ground.run()


def test_a_lost_state_file_doubles_nothing(ground: Ground) -> None:
    ground.run()
    for file in (ground.root / ".headrace").glob("state.db*"):
        file.unlink()
    with pytest.raises(UserError, match="what that run kept is gone"):
        ground.run()
    ground.run(options=Options(fresh=True))
    ground.check_answers()


def test_a_tree_that_does_not_start_fails_all_its_members(ground: Ground) -> None:
    outcome = ground.run(bad=frozenset({"b"}))
    assert [query for query, _ in outcome.failures] == ["a", "b", "c"]
    assert {reason.splitlines()[0] for _, reason in outcome.failures} == {"b is too bad to run"}
    assert outcome.exit_code == 2
    assert ground.windows("d") != []
    ground.run()
    ground.check_answers()


def test_a_query_cannot_have_the_name_of_a_tree(ground: Ground) -> None:
    ground.run()
    ground.queries["tree-1"] = query("tree-1", "alone", JSON)
    with pytest.raises(UserError, match='"tree-1" is the name of a tree'):
        ground.run()


def _move(ground: Ground, *names: str) -> list[str]:
    """These queries want to be far away; where their tree then runs."""
    for name in names:
        ground.queries[name] = ground.queries[name].model_copy(update={"site": "far"})
    return [w.site for w in ground.run().last.jobs if w.tree == "tree-1"]


def test_a_tree_goes_where_its_members_go(ground: Ground) -> None:
    """One member that wants another site does not move the others."""
    ground.run()
    ground.sites = ("local", "far")
    assert _move(ground, "a") == ["local"] * 3
    assert _move(ground, "b", "c") == ["far"] * 3
    ground.check_answers()


def test_rows_of_a_tree_are_read_once(ground: Ground) -> None:
    rows = job_rows(ground.run().last)
    for row in rows:
        row["input_rows"] = 100
    assert rows_read(rows) == 300
