"""Queries that come and go while a project runs, and between two runs."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headrace.catalog.model import Project, Sink, SinkKind
from headrace.errors import StateUnusable, UserError
from headrace.plan.placed import PlacedPlan
from headrace.service import keeper
from headrace.service.deployment import Planner, Situation, Wanted, reconcile
from headrace.service.run import Hooks, Options
from headrace.state.records import Change
from headrace.state.store import Store
from tests.unit.service import disk_engine
from tests.unit.service.disk_engine import Ground
from tests.unit.service.sample import query

JSON = Sink(kind=SinkKind.JSON)


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    """a, b and c in one tree, d in another, and a job."""
    names = {"a": "1", "b": "2", "alone": "alone", "c": "3", "d": "4"}
    return Ground(tmp_path, monkeypatch, {name: query(name, sql, JSON) for name, sql in names.items()})


def _change(ground: Ground, number: int = 1) -> Change:
    with ground.store() as store:
        return store.changes([number])[0]


def _calls(ground: Ground) -> list[tuple[str, str]]:
    assert ground.engine is not None
    return ground.engine.calls


def test_add_joins_a_tree_that_runs(ground: Ground) -> None:
    ground.run(12, {4: lambda: ground.add("new")})
    assert ground.trees() == {"tree-1": ["a", "b", "c", "new"], "tree-2": ["d"]}
    assert [c for c in _calls(ground) if c[1] == "tree-1"] == [("start", "tree-1"), ("stop", "tree-1")] * 2
    assert [c for c in _calls(ground) if c[1] == "tree-2"] == [("start", "tree-2"), ("stop", "tree-2")]
    ground.check_answers()
    change = _change(ground)
    assert (change.state, change.tree) == ("applied", "tree-1")
    assert change.valid_from == ground.windows("new")[0] - 1 > 0
    assert change.pause is not None and 0 <= change.pause < 2
    said = f"new runs in tree-1 with a, b, c, valid from 1970-01-01 00:00:00.{change.valid_from:06d}"
    assert any(note.startswith(said) for note in ground.notes)


def test_the_answers_go_on_after_a_restart(ground: Ground) -> None:
    ground.run(12, {4: lambda: ground.add("new")})
    first = ground.windows("new")[0]
    ground.run()
    ground.check_answers()
    assert ground.windows("new")[0] == first


def test_add_from_the_start_gets_a_tree_of_its_own(ground: Ground) -> None:
    ground.run(12, {4: lambda: ground.add("new", from_start=True)})
    assert ground.trees() == {"tree-1": ["a", "b", "c"], "tree-2": ["d"], "tree-3": ["new"]}
    assert [c for c in _calls(ground) if c[1] == "tree-1"] == [("start", "tree-1"), ("stop", "tree-1")]
    assert (_change(ground).valid_from, _change(ground).pause) == (None, None)
    assert "new runs in tree-3, a tree of its own, from the beginning" in ground.notes
    ground.check_answers()


def test_add_what_can_be_in_no_tree(ground: Ground) -> None:
    ground.run(12, {4: lambda: ground.add("new", "alone")})
    assert "new runs as a job of its own, from the beginning" in ground.notes
    assert _change(ground).tree is None
    ground.check_answers()


def test_several_changes_are_one_stop_and_start(ground: Ground) -> None:
    def ask() -> None:
        ground.add("x")
        ground.add("y")
        ground.drop("b", "alone")

    ground.run(12, {4: ask})
    assert ground.trees() == {"tree-1": ["a", "c", "x", "y"], "tree-2": ["d"]}
    assert [c for c in _calls(ground) if c[1] == "tree-1"] == [("start", "tree-1"), ("stop", "tree-1")] * 2
    ground.check_answers()
    assert not ground.folder("b").exists() and not ground.folder("alone").exists()
    assert ground.windows("b") == list(range(1, len(ground.windows("b")) + 1))


def test_drop_of_the_last_member_forgets_the_tree(ground: Ground) -> None:
    outcome = ground.run(12, {4: lambda: ground.drop("d")})
    assert ground.trees() == {"tree-1": ["a", "b", "c"]}
    assert not ground.folder("tree-2").exists() and not ground.folder("d").exists()
    assert [w.job for w in outcome.last.jobs] == ["a", "b", "alone", "c"]
    assert ground.windows("d") != [], "results stay"
    assert "d was dropped; its results stay where they are" in ground.notes
    with ground.store() as store:
        assert store.get("d") is None
    ground.check_answers()


def test_a_dropped_query_of_the_file_stays_dropped(ground: Ground) -> None:
    ground.run(12, {4: lambda: ground.drop("b")})
    outcome = ground.run()
    assert [w.job for w in outcome.last.jobs] == ["a", "alone", "c", "d"]
    ground.check_answers()


def test_dropping_everything_ends_the_run(ground: Ground) -> None:
    outcome = ground.run(99, {4: lambda: ground.drop(*ground.queries)})
    assert (outcome.exit_code, outcome.last.jobs, outcome.interrupted) == (0, (), False)
    assert ground.trees() == {}
    assert all(_change(ground, number).settled for number in range(1, 6))


def test_changes_between_two_runs_take_effect_the_same_way(ground: Ground) -> None:
    ground.run()
    ground.add("new")
    ground.drop("b")
    assert ground.trees() == {"tree-1": ["a", "b", "c"], "tree-2": ["d"]}
    ground.run()
    assert ground.trees() == {"tree-1": ["a", "c", "new"], "tree-2": ["d"]}
    ground.check_answers()
    assert _change(ground).valid_from == ground.windows("new")[0] - 1 > 0


def test_changes_before_the_first_run(ground: Ground) -> None:
    """Nothing runs yet, so nothing is to be joined: all are placed together."""
    ground.add("new")
    ground.drop("a")
    ground.run()
    assert ground.trees() == {"tree-1": ["b", "c", "d"], "tree-2": ["new"]}
    assert (_change(ground).state, _change(ground).valid_from) == ("applied", None)
    ground.check_answers()


def test_an_add_that_was_never_applied_can_be_dropped(ground: Ground) -> None:
    ground.run()
    ground.add("new")
    ground.drop("new")
    change = _change(ground)
    assert (change.state, change.message) == ("refused", "it was dropped before it ran")
    assert _change(ground, 2).settled
    ground.run()
    assert "new" not in ground.trees()["tree-1"]
    ground.add("new")
    ground.run()
    assert "new" in ground.trees()["tree-1"]
    ground.check_answers()


def test_a_name_is_free_again_once_its_tree_has_run_without_it(ground: Ground) -> None:
    """Else the tree would take the new query for the old one, and say that all its windows are there."""
    ground.run()
    ground.drop("b")
    with pytest.raises(UserError, match="still being dropped"):
        ground.add("b")
    ground.run(12, {4: lambda: _move_results(ground, "b"), 6: lambda: ground.add("b", "7")})
    assert ground.trees() == {"tree-1": ["a", "c", "b"], "tree-2": ["d"]}
    ground.check_answers()
    assert ground.windows("b")[0] > 4


def _move_results(ground: Ground, name: str) -> None:
    (ground.root / "results" / name).rename(ground.root / f"old-{name}")


def test_results_of_another_life_are_not_mixed(ground: Ground) -> None:
    ground.run(8, {4: lambda: ground.drop("b")})
    ground.add("b", "7")
    with pytest.raises(UserError, match="holds results of an earlier run"):
        ground.run()
    _move_results(ground, "b")
    ground.run()
    ground.check_answers()


def test_a_tree_that_does_not_start_with_a_new_member_goes_on_without(ground: Ground) -> None:
    outcome = ground.run(12, {4: lambda: ground.add("new")}, bad=frozenset({"new"}))
    assert (outcome.exit_code, outcome.failures) == (0, ())
    assert ground.trees() == {"tree-1": ["a", "b", "c"], "tree-2": ["d"]}
    change = _change(ground)
    assert (change.state, change.message) == ("refused", "new is too bad to run\nhint: Drop it.")
    assert "new was not added: new is too bad to run" in ground.notes
    assert not ground.folder("new").exists()
    with ground.store() as store:
        assert store.edits().added == ()
    ground.check_answers()
    ground.run()
    ground.check_answers()


def test_a_new_job_that_does_not_start_is_refused(ground: Ground) -> None:
    outcome = ground.run(12, {4: lambda: ground.add("new", "alone")}, bad=frozenset({"new"}))
    assert (outcome.exit_code, _change(ground).state) == (0, "refused")
    assert not ground.folder("new").exists()
    ground.check_answers()


def test_a_query_that_cannot_run_here_is_refused(ground: Ground) -> None:
    """It was right when it was asked for."""

    def ask() -> None:
        ground.add("new")
        precious = ground.root / "results" / "new" / "thesis.tex"
        precious.parent.mkdir(parents=True)
        precious.write_text("years of work")

    ground.run(12, {4: ask})
    assert _change(ground).state == "refused"
    assert "did not write" in _change(ground).message
    assert (ground.root / "results" / "new" / "thesis.tex").exists()
    ground.check_answers()


def test_a_drain_takes_no_changes_after_its_beginning(ground: Ground) -> None:
    ground.run(99, {4: lambda: ground.add("new")}, Options(drain=True))
    assert _change(ground).state == "pending"
    assert "new" not in str(ground.trees())


def test_a_drained_tree_is_joined_by_nobody(ground: Ground) -> None:
    ground.run(99, options=Options(drain=True))
    ground.add("new")
    ground.run(options=Options(drain=True))
    assert ground.trees()["tree-3"] == ["new"]
    assert _change(ground).valid_from is None


def test_pending_changes_are_taken_whatever_only_says(ground: Ground) -> None:
    ground.run()
    ground.add("new")
    ground.drop("b")
    ground.run(options=Options(only=("d",)))
    assert ground.trees() == {"tree-1": ["a", "c"], "tree-2": ["d", "new"]}
    assert (_change(ground).settled is None, _change(ground, 2).settled is None) == (False, False)
    ground.run()
    ground.check_answers()


def test_a_stop_right_after_a_change_loses_nothing(ground: Ground) -> None:
    ground.run(5, {4: lambda: ground.add("new")})
    ground.run()
    assert _change(ground).settled
    ground.check_answers()


def test_an_idle_tree_does_not_keep_a_command_waiting(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No input, no batch: what is known is told after a while."""
    ground.run(200, {4: lambda: _idle(ground, monkeypatch)})
    change = _change(ground)
    assert change.settled and change.pause is None


def _idle(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ground.engine is not None
    monkeypatch.setattr(ground.engine, "_batch", lambda unit: None)
    ground.add("new")


def test_the_last_query_is_dropped_between_two_runs(ground: Ground) -> None:
    ground.run()
    ground.drop(*ground.queries)
    assert ground.run().last.jobs == ()
    assert ground.trees() == {}
    assert all(_change(ground, number).settled for number in range(1, 6))
    assert list(ground.folder("x").parent.iterdir()) == []


def test_data_that_cannot_be_made_does_not_end_the_run(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(project: Project, placed: PlacedPlan) -> None:
        if "new" in project.queries:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk_engine, "Hooks", partial(Hooks, on_plan=full))
    outcome = ground.run(12, {4: lambda: ground.add("new")})
    assert (outcome.exit_code, _change(ground).state) == (0, "refused")
    assert "No space left" in _change(ground).message
    assert "new" not in [w.job for w in outcome.last.jobs]
    ground.check_answers()


def test_what_the_state_file_keeps_from_being_done_is_done_later(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the add nor the drop is refused: nothing is wrong with them."""
    deploy, failed = Store.deploy, list[str]()

    def once(store: Store, *given: Any, **named: Any) -> bool:
        if given[1].pending and not failed:
            failed.append("it")
            raise StateUnusable("the state file is locked")
        return deploy(store, *given, **named)

    monkeypatch.setattr(Store, "deploy", once)

    def ask() -> None:
        ground.add("new")
        ground.drop("b")

    ground.run(200, {4: ask})
    assert failed and ground.trees() == {"tree-1": ["a", "c", "new"], "tree-2": ["d"]}
    assert any("is locked" in note and "tried again" in note for note in ground.notes)
    ground.check_answers()


def test_a_drop_that_cannot_be_planned_waits_and_is_never_half_done(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = list[str]()

    def once(situation: Situation, planner: Planner) -> Wanted:
        if situation.edits.pending and not failed:
            failed.append("b")
            raise UserError("not now")
        return reconcile(situation, planner)

    monkeypatch.setattr(keeper, "reconcile", once)
    ground.run(200, {4: lambda: ground.drop("b")})
    assert failed and ground.trees() == {"tree-1": ["a", "c"], "tree-2": ["d"]}
    assert _change(ground).state == "applied"
    ground.check_answers()


def test_a_command_between_planning_and_writing_is_not_overlooked(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(project: Project, placed: PlacedPlan) -> None:
        if "new" in project.queries:
            ground.drop("new")

    monkeypatch.setattr(disk_engine, "Hooks", partial(Hooks, on_plan=meanwhile))
    ground.run(12, {4: lambda: ground.add("new")})
    assert ground.trees() == {"tree-1": ["a", "b", "c"], "tree-2": ["d"]}
    assert not ground.folder("new").exists()
    ground.check_answers()


@pytest.mark.parametrize("step", range(12))
def test_a_name_is_not_free_before_its_tree_has_run_without_it(ground: Ground, step: int) -> None:
    """Killed in between, its tree still counts the old query among its members."""
    ground.run(3)
    ground.drop("b")
    ground.killed(step, rounds=3)
    _move_results(ground, "b")
    with suppress(UserError):
        ground.add("b", "7")
    ground.run()
    ground.check_answers()
