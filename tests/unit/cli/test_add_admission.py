"""`add`, `plan` and `run` of a project that is too small: refused, forced, shown, told."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from headrace.service.admission import ask
from headrace.service.project import open_project
from headrace.service.run import Options
from headrace.state.records import Seen
from headrace.state.store import Store
from tests.unit.cli.entry import call
from tests.unit.cli.test_changes import Run
from tests.unit.service.capacity_sample import ALL, FIVE, MINUTE, priced, write

Capture = pytest.CaptureFixture[str]
OVER = "core would take in 40 kB/s and has bandwidth for 30 kB/s"


def contents(folder: Path) -> dict[str, str]:
    """Every file and folder, with what is in it."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return write(tmp_path / "p", {"a": ("core", ALL)}, core="bandwidth: 30000").root


@pytest.fixture
def sql(tmp_path: Path) -> Path:
    file = tmp_path / "new.sql"
    file.write_text(ALL)
    return file


@pytest.mark.parametrize("state", [False, True])
def test_refused_and_nothing_changed(small: Path, sql: Path, capsys: Capture, state: bool) -> None:
    if state:
        assert call(capsys, "add", "here", small, "--sql", sql, "--site", "edge").code == 0
    before = contents(small)
    assert (".headrace/state.db" in before) is state
    done = call(capsys, "add", "new", small, "--sql", sql, "--site", "core")
    assert (done.code, done.out) == (2, "")
    assert f'user error: query "new" does not fit: {OVER}' in done.err
    assert "hint: Drop what is not needed" in done.err and "--site edge" in done.err
    assert contents(small) == before
    assert "new" not in open_project(small).queries


def test_refused_as_json(small: Path, sql: Path, capsys: Capture) -> None:
    done = call(capsys, "add", "new", small, "--sql", sql, "--site", "core", "--json")
    assert (done.code, done.json["error"]) == (2, "user error")
    assert OVER in done.json["message"]


def test_a_drop_makes_room(small: Path, sql: Path, capsys: Capture) -> None:
    call(capsys, "drop", "a", small)
    done = call(capsys, "add", "new", small, "--sql", sql, "--site", "core")
    assert (done.code, done.err) == (0, "")
    back = call(capsys, "add", "a", small)
    assert back.code == 2 and OVER in back.err and "--site" not in back.err


def test_force(small: Path, sql: Path, capsys: Capture) -> None:
    done = call(capsys, "add", "new", small, "--sql", sql, "--site", "core", "--force")
    assert (done.code, done.err) == (0, f"warning: {OVER}; added all the same\n")
    assert "new" in open_project(small).queries
    more = call(capsys, "add", "third", small, "--sql", sql, "--site", "core", "--force", "--json")
    (warning,) = more.json[0]["warnings"]
    assert more.code == 0 and warning.startswith("core would take in 60 kB/s")


def test_another_command_takes_the_room_first(
    small: Path, sql: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(capsys, "drop", "a", small)

    def interrupted(*args: Any, **options: Any) -> list[str]:
        told = ask(*args, **options)
        monkeypatch.setattr("headrace.service.changes.ask", ask)
        assert call(capsys, "add", "first", small, "--sql", sql, "--site", "core").code == 0
        return told

    monkeypatch.setattr("headrace.service.changes.ask", interrupted)
    done = call(capsys, "add", "new", small, "--sql", sql, "--site", "core")
    assert done.code == 2 and OVER in done.err
    assert list(open_project(small).queries) == ["first"]


def test_a_default_is_a_warning(tmp_path: Path, sql: Path, capsys: Capture) -> None:
    folder = write(tmp_path / "p", {}, more="planner: {trigger: 100 ms}\n").root
    done = call(capsys, "add", "new", folder, "--sql", sql, "--site", "core")
    assert done.code == 0
    assert done.err.startswith("warning: core would need 4.7 cores and has 2 cores; that is only the default")
    assert "new" in open_project(folder).queries


def test_plan_shows_what_is_used(small: Path, sql: Path, capsys: Capture) -> None:
    assert "20 kB/s of 30 kB/s, 67%" in call(capsys, "plan", small, "--brief").out
    call(capsys, "add", "new", small, "--sql", sql, "--site", "core", "--force")
    shown = call(capsys, "plan", small).out
    assert "whole at its site: 1 over 100%" in shown
    assert "40 kB/s of 30 kB/s, 133% OVER" in shown and "edge > core" in shown
    assert "edge > core" not in call(capsys, "plan", small, "--brief").out
    data = call(capsys, "plan", small, "--json").json["utilisation"]
    core, edge = data["sites"]
    assert (core["site"], core["bytes_in"]["used"], core["bytes_in"]["over"]) == ("core", 40_000, True)
    assert (edge["bytes_out"]["used"], edge["bytes_out"]["default"]) == (40_000, True)
    assert [(link["source"], link["target"], link["over"]) for link in data["links"]] == [
        ("edge", "core", False)
    ]


def test_a_run_that_is_too_large_is_told_and_runs(
    small: Path, sql: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(capsys, "add", "new", small, "--sql", sql, "--site", "core", "--force")
    with Run(small, monkeypatch, Options()) as run:
        pass
    warning = f"at the rates of the project file {OVER}"
    assert f"warning: {warning}" in run.notes
    assert run.outcome is not None and run.outcome.exit_code == 0
    assert warning in run.outcome.notes
    with Run(small, monkeypatch, Options(master="local[1]")) as elsewhere:
        pass
    assert not any("bandwidth" in note for note in elsewhere.notes)


def test_on_a_running_project_a_tree_has_room_for_one_more(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tree takes another member for nothing; a tree of its own, for --from-start, does not fit."""
    project = write(tmp_path / "p", {"a": ("core", MINUTE)}, core="memory: 350m")
    priced(project, "core", worker_memory=float(50 << 20), engine_memory=float(200 << 20))
    file = tmp_path / "five.sql"
    file.write_text(FIVE)
    with Run(project.root, monkeypatch, Options()) as run:
        calls = list(run.executor.calls)
        own = call(capsys, "add", "own", project.root, "--sql", file, "--site", "core", "--from-start")
        assert own.code == 2 and "core would need 400.0 MiB of memory and has 350.0 MiB" in own.err
        assert run.executor.calls == calls
        done = call(capsys, "add", "five", project.root, "--sql", file, "--site", "core")
        assert done.code == 0, done.err
        assert done.out.startswith("five runs in tree-") and " with a" in done.out
    assert "own" not in open_project(project.root).queries
    finished = [Seen(name, "finished", 1, 0, 0, 0, None, "") for name in ("a", "five")]
    with Store(project.root / ".headrace" / "state.db") as store:
        store.observe(finished, "2026-11-16T10:00:00")
    late = call(capsys, "add", "late", project.root, "--sql", file, "--site", "core")
    assert late.code == 2 and "400.0 MiB" in late.err, "a tree that was closed takes nobody"
