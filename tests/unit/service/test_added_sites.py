"""Queries that were added by command, when the sites of the project file are no longer those of before."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.catalog.model import Project
from headrace.errors import UserError
from headrace.service.changes import NewQuery, add_query
from headrace.service.distributing import units
from headrace.service.explain import explain_plan
from headrace.service.keeper import Keeper, Lives
from headrace.service.layout import state_file
from headrace.service.moving import moves_of
from headrace.service.project import file_project, open_project
from headrace.service.queries import list_queries
from headrace.service.situation import Planner
from headrace.state.store import Store
from tests.unit.cli.entry import call
from tests.unit.service import sample
from tests.unit.service.federated_sample import write

SQL = "SELECT ts, k, v FROM readings WHERE v > 1"


def written(root: Path, sites: str, distribution: str = "'off'") -> Project:
    """A site for each letter, and one query that names none."""
    lines = "".join(f'  {name}: {{endpoint: "sc://{name}:1"}}\n' for name in sites)
    return write(root, f"sites:\n{lines}planner: {{distribution: {distribution}}}", one=SQL)


def started(root: Path) -> dict[str, str]:
    """Job -> site, as a run begins it."""
    project = open_project(root)
    state_file(project).parent.mkdir(parents=True, exist_ok=True)
    with Store(state_file(project)) as store, moves_of(project) as moves:
        lives = Lives(moves.homes, moves.forget)
        keeper = Keeper(file_project(root), store, sample.Clock(), Planner(), lambda *_: None, lives)
        placed = keeper.prepare((), fresh=False, drain=False).placed
    return {unit.id: unit.site for unit in units(placed)}


@pytest.mark.parametrize("distribution", ["'off'", "ours"])
def test_a_query_whose_site_is_no_more_is_told_and_can_be_dropped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], distribution: str
) -> None:
    written(tmp_path, "abc", distribution)
    add_query(tmp_path, NewQuery("extra", SQL, site="c"), force=True)
    assert started(tmp_path)["extra"] == "c"
    with pytest.raises(UserError) as told:
        written(tmp_path, "ab", distribution)
    assert told.value.message == 'query "extra" was added for site "c", which is no more'
    assert told.value.hint is not None and "headrace drop extra" in told.value.hint
    for words in (("plan",), ("queries",), ("run", "--drain")):
        assert call(capsys, words[0], tmp_path, *words[1:]).code == 2
    with pytest.raises(UserError, match='for site "c"'):
        add_query(tmp_path, NewQuery("other", SQL), force=True)
    assert call(capsys, "drop", "extra", tmp_path).code == 0
    assert "extra" not in open_project(tmp_path).queries
    assert set(started(tmp_path)) == {"one"}


def test_a_site_that_is_put_back_is_good_again(tmp_path: Path) -> None:
    written(tmp_path, "abc")
    add_query(tmp_path, NewQuery("extra", SQL, site="c"), force=True)
    with pytest.raises(UserError):
        written(tmp_path, "ab")
    assert written(tmp_path, "bc").queries["extra"].site == "c"
    assert started(tmp_path) == {"one": "b", "extra": "c"}


def test_a_query_added_without_a_site_follows_the_first_one(tmp_path: Path) -> None:
    written(tmp_path, "ab")
    add_query(tmp_path, NewQuery("extra", SQL), force=True)
    assert started(tmp_path) == {"one": "a", "extra": "a"}
    project = written(tmp_path, "zb")
    assert {row["name"]: row["site"] for row in list_queries(project)} == {"one": "z", "extra": "z"}
    assert started(tmp_path) == {"one": "z", "extra": "z"}
    explain_plan(open_project(tmp_path))


def test_a_query_added_without_a_site_is_distributed_once_that_is_on(tmp_path: Path) -> None:
    written(tmp_path, "ab")
    add_query(tmp_path, NewQuery("extra", SQL), force=True)
    add_query(tmp_path, NewQuery("there", SQL, site="a"), force=True)
    project = written(tmp_path, "ab", "ours")
    assert {name: query.free for name, query in project.queries.items()} == {
        "one": True,
        "extra": True,
        "there": False,
    }
