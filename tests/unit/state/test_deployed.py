"""The deployment and the journal of changes in the state file, and the way there from version 1."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.errors import UserError
from headrace.state.records import (
    AddedQuery,
    DeployedQuery,
    Deployment,
    Doomed,
    Edits,
    FederatedRecord,
    TreeRecord,
)
from headrace.state.schema import _JOBS, VERSION
from headrace.state.store import Store

T0, T1 = "2024-05-01T12:00:00Z", "2024-05-01T12:00:01Z"
X = AddedQuery("x", "SELECT 1", "json", "out/x", "local")
TREE = TreeRecord("tree-1", "local", '{"is": "TreeShape"}')
DEPLOYED = Deployment(
    (TREE, replace(TREE, id="tree-0")),
    (
        DeployedQuery("b", "tree-1", "f-i-s"),
        DeployedQuery("a", "tree-1", "f-i-s"),
        DeployedQuery("j", None, "f"),
        DeployedQuery("z", "tree-0", "f"),
        DeployedQuery("s", None, "f", "fed-1"),
    ),
    (Doomed("old", True), Doomed("q", tree="tree-1")),
    (FederatedRecord("fed-1", "local", "[]"), FederatedRecord("fed-0", "local", "[1]")),
    '{"is": "ChannelPlan"}',
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "state.db") as opened:
        yield opened


def test_a_deployment_keeps_its_order(store: Store) -> None:
    assert store.deploy(DEPLOYED, Edits())
    assert store.deployment() == DEPLOYED
    assert [row.query for row in store.deployment().members("tree-1")] == ["b", "a"]
    store.removed(["old"])
    assert store.deployment().doomed == (Doomed("q", tree="tree-1"),)
    assert store.deploy(replace(DEPLOYED, channels=""), Edits())
    assert store.deployment().channels == ""


def test_a_deployment_and_its_changes_are_one(store: Store) -> None:
    store.want("a", "a", "local", "f", "running", T0)
    change = store.ask_add(X, False, T0)
    edits = store.edits()
    assert (edits.added, [c.id for c in edits.pending]) == ((X,), [change])
    assert store.deploy(DEPLOYED, edits, {change: "tree-1"}, ["a"])
    found = store.changes([change])[0]
    assert (found.state, found.tree, found.settled, found.from_start) == ("applied", "tree-1", None, False)
    assert store.unsettled() == (found,)
    assert store.get("a") is None
    assert not store.any_pending()
    store.settle(replace(found, settled=T1, valid_from=7, pause=1.5))
    assert store.unsettled() == ()
    assert store.changes([change])[0] == replace(found, settled=T1, valid_from=7, pause=1.5)


def test_a_plan_that_is_out_of_date_is_not_written(store: Store) -> None:
    change = store.ask_add(X, False, T0)
    edits = store.edits()
    store.ask_drop({"x": False}, T1)
    assert not store.deploy(DEPLOYED, edits, {change: None})
    assert store.deployment() == Deployment()
    assert store.changes([change])[0].state == "refused"


def test_a_drop_of_what_never_ran_is_settled_at_once(store: Store) -> None:
    (change,) = store.ask_drop({"a": True}, T0)
    assert store.edits() == Edits((), frozenset({"a"}), ())
    assert (store.changes([change])[0].state, store.changes([change])[0].settled) == ("applied", T0)
    with pytest.raises(UserError, match="dropped already"):
        store.ask_drop({"a": True}, T1)


def test_drops_are_all_or_none(store: Store) -> None:
    store.ask_drop({"a": True}, T0)
    with pytest.raises(UserError, match='"a" was dropped already'):
        store.ask_drop({"b": True, "a": True}, T1)
    assert store.edits().dropped == {"a"}


def test_a_query_of_the_file_comes_back_and_is_refused(store: Store) -> None:
    """Then it is dropped as before."""
    store.ask_drop({"x": True}, T0)
    change = store.ask_add(X, True, T1)
    assert store.edits().pending[0].from_start
    assert store.edits().dropped == {"x"}
    store.refuse([change], "no", T1)
    assert store.edits() == Edits((), frozenset({"x"}), ())
    found = store.changes([change])[0]
    assert (found.state, found.message, found.settled) == ("refused", "no", T1)


@pytest.mark.parametrize(
    ("name", "message"),
    [("x", "added already"), ("b", "has run before"), ("q", "still being dropped"), ("tree-1", "of a tree")],
)
def test_names_that_are_not_free(store: Store, name: str, message: str) -> None:
    store.ask_add(X, False, T0)
    store.deploy(DEPLOYED, store.edits())
    with pytest.raises(UserError, match=message):
        store.ask_add(replace(X, name=name), False, T1)
    assert [added.name for added in store.edits().added] == ["x"]


def test_a_pending_drop_holds_its_name(store: Store) -> None:
    store.deploy(DEPLOYED, Edits())
    (change,) = store.ask_drop({"j": False}, T0)
    assert [c.id for c in store.edits().pending] == [change]
    with pytest.raises(UserError, match="still being dropped"):
        store.ask_add(replace(X, name="j"), False, T1)


def _version_1(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute(_JOBS)
        columns = "id, query, site, fingerprint, desired, observed, output_rows, updated"
        row = ("j", "j", "local", "p-i-s", "drained", "finished", 42, T0)
        db.execute(f"INSERT INTO jobs ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        db.execute("PRAGMA user_version = 1")
    db.close()


def test_a_file_of_version_1(tmp_path: Path) -> None:
    """Its jobs are deployed as what they were, so that their checkpoints go on."""
    path = tmp_path / "state.db"
    _version_1(path)
    with Store(path) as store:
        assert store.deployment() == Deployment((), (DeployedQuery("j", None, "p-i-s"),))
        found = store.get("j")
        assert found is not None
        assert (found.output_rows, found.observed, found.valid_from) == (42, "finished", None)
        assert store.ask_add(X, False, T0) == 1
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)
        old = {row[0]: row[1] for row in db.execute("SELECT name, sql FROM sqlite_master")}
    db.close()
    with Store(tmp_path / "new.db"), sqlite3.connect(tmp_path / "new.db") as db:
        new = {row[0]: row[1] for row in db.execute("SELECT name, sql FROM sqlite_master")}
    db.close()
    assert old == new


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.db"
    _version_1(path)
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE changes (in_the_way TEXT)")
    db.close()
    with pytest.raises(UserError, match="cannot be used"):
        Store(path)
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (1,)
        names = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    db.close()
    assert names == {"jobs", "changes"}
