"""`status`, `rebalance` and `serve` by their command lines: where nothing runs, and with nonsense."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.entry import call, make_project
from tests.unit.service.test_serving import uneven

Capture = pytest.CaptureFixture[str]


def test_the_status_of_a_project_that_never_ran(tmp_path: Path, capsys: Capture) -> None:
    project = make_project(tmp_path / "p")
    told = call(capsys, "status", project)
    assert told.code == 0 and "nothing runs; no statistics yet" in told.out and "not yet" in told.out
    data = call(capsys, "status", project, "--json").json
    assert [job["job"] for job in data["jobs"]] == ["counts", "high", "shown", "beats"]
    assert data["process"] == {"running": False, "doing": None, "pid": None, "since": None}
    assert not (project / ".headrace").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("rebalance", "--dry-run"), "nothing is known of the jobs"),
        (("rebalance",), "nothing runs, so nothing can be moved"),
        (("rebalance", "--policy", "fair"), 'no policy "fair"'),
        (("rebalance", "--model", "gold"), 'no cost model "gold"'),
        (("serve", "--rebalance", "often"), '"often" is no way to rebalance'),
        (("serve", "--every", "0"), "too often"),
        (("serve", "--every", "soon"), "valid number"),
    ],
)
def test_what_does_not_go_is_told(
    tmp_path: Path, capsys: Capture, arguments: tuple[str, ...], message: str
) -> None:
    project = make_project(tmp_path / "p")
    command, *rest = arguments
    told = call(capsys, command, project, *rest)
    assert told.code == 2 and message in told.err
    assert call(capsys, command, project, *rest, "--json").code == 2
    assert not (project / ".headrace").exists()


@pytest.mark.parametrize("command", ["status", "rebalance", "serve"])
def test_a_project_that_is_not_there(tmp_path: Path, capsys: Capture, command: str) -> None:
    assert call(capsys, command, tmp_path / "none").code == 2


def test_advice_and_status_are_shown(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = uneven(tmp_path)
    monkeypatch.setattr("headrace.cli.commands_serve.open_project", lambda path: world.project)
    monkeypatch.setattr("headrace.service.status.ask_sites", lambda project: {})
    told = call(capsys, "rebalance", tmp_path, "--dry-run", "--policy", "balance")
    assert (
        told.code == 0 and "east" in told.out and "is fullest at" in told.out and "nothing runs" in told.out
    )
    data = call(capsys, "rebalance", tmp_path, "--dry-run", "--json").json
    assert data["policy"] == "ours" and data["moves"] and data["done"] == []
    shown = call(capsys, "status", tmp_path)
    assert shown.code == 0 and "cost of" in shown.out and "combined" in shown.out and "100.0%" in shown.out
    assert call(capsys, "status", tmp_path, "--json").json["costs"]["cpu"]["east"]["cost"] == pytest.approx(
        1.0
    )
