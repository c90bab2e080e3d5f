"""`add`, `plan` and `run` of a project that is spread and too small for the cheapest placement."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.service.project import deployment_of, open_project
from headrace.service.run import Options
from headrace.service.spread_records import channels_of
from tests.unit.cli.entry import call
from tests.unit.cli.test_add_admission import contents
from tests.unit.cli.test_changes import Run
from tests.unit.service.spread_sample import PAIR, write
from tests.unit.service.test_admitting import joins, loads, rows

Capture = pytest.CaptureFixture[str]
ELSEWHERE = (
    "pair does not fit where its joins are cheapest (mid would need 0.15 cores and has 0.1 cores): admission "
    "has placed them at "
)


@pytest.fixture
def sql(tmp_path: Path) -> Path:
    file = tmp_path / "pair.sql"
    file.write_text(PAIR)
    return file


@pytest.mark.parametrize("state", [False, True])
def test_refused_and_nothing_changed(tmp_path: Path, sql: Path, capsys: Capture, state: bool) -> None:
    project = write(tmp_path / "p", {}, each="cpu: 0.12")
    rows(project)
    if state:
        near = tmp_path / "near.sql"
        near.write_text("SELECT ts FROM b")
        assert call(capsys, "add", "near", project.root, "--sql", near, "--site", "east").code == 0
    before = contents(project.root)
    done = call(capsys, "add", "pair", project.root, "--sql", sql, "--site", "south")
    assert (done.code, done.out) == (2, "")
    assert 'query "pair" does not fit: mid would need 0.15 cores and has 0.12 cores' in done.err
    assert "0.03 cores would have to be freed" in done.err
    assert (
        "no other placement of the joins fits either; pair: binding: cpu of host south (0.03 missing)"
        in done.err
    )
    assert contents(project.root) == before
    assert "pair" not in open_project(project.root).queries


def test_placed_by_admission_and_deployed_so(
    tmp_path: Path, sql: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = write(tmp_path / "p", {}, mid="cpu: 0.1")
    rows(project)
    done = call(capsys, "add", "pair", project.root, "--sql", sql, "--site", "south")
    assert (done.code, done.err) == (0, "")
    first = done.out.splitlines()[0]
    assert first.startswith(ELSEWHERE)
    where = set(first.rpartition(" at ")[2].split(", "))
    assert where and "mid" not in where
    shown = call(capsys, "plan", project.root, "--brief").out
    assert first in " ".join(shown.split()) and "as they are spread over sites: nothing over 100%" in shown
    with Run(project.root, monkeypatch, Options()) as run:
        pass
    assert first in run.notes and not any(note.startswith("warning") for note in run.notes)
    plan = channels_of(deployment_of(project))
    assert set(joins(plan).values()) == where
    cores, _ = loads(project, plan)
    assert cores.get("mid", 0.0) <= 0.1


def test_what_add_says_as_json(tmp_path: Path, sql: Path, capsys: Capture) -> None:
    project = write(tmp_path / "p", {}, mid="cpu: 0.1")
    rows(project)
    done = call(capsys, "add", "pair", project.root, "--sql", sql, "--site", "south", "--json")
    (note,) = done.json[0]["notes"]
    assert done.code == 0 and note.startswith(ELSEWHERE) and done.json[0]["warnings"] == []


def test_forced_it_stays_where_it_is_cheapest_and_a_run_warns(
    tmp_path: Path, sql: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = write(tmp_path / "p", {}, each="cpu: 0.12")
    rows(project)
    done = call(capsys, "add", "pair", project.root, "--sql", sql, "--site", "south", "--force")
    assert done.code == 0
    assert "mid would need 0.15 cores and has 0.12 cores; added all the same" in done.err
    with Run(project.root, monkeypatch, Options()) as run:
        pass
    warning = "warning: at the rates of the project file mid would need 0.15 cores and has 0.12 cores"
    assert warning in run.notes
    assert set(joins(channels_of(deployment_of(project))).values()) == {"mid"}
