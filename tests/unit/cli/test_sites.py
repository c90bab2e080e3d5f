"""`headrace sites`: what it says where nothing runs, and where it is asked for nonsense."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.entry import call

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_no_sites_are_told_and_none_is_made(tmp_path: Path, capsys: Capture) -> None:
    told = call(capsys, "sites")
    assert told.code == 0 and "headrace sites up 2" in told.err
    assert call(capsys, "sites", "--json").json == []
    assert call(capsys, "sites", "down").code == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("0",), "0 is not a number of sites"),
        (("2", "--memory", "lots"), '"lots" is not a size'),
        (("2", "--memory", "64m"), "too little"),
        (("2", "--write"), "headrace.yaml"),
        (("two",), "integer"),
    ],
)
def test_nonsense_is_refused_and_nothing_is_left(
    tmp_path: Path, capsys: Capture, arguments: tuple[str, ...], message: str
) -> None:
    told = call(capsys, "sites", "up", *arguments)
    assert told.code == 2 and message in told.err
    assert list(tmp_path.iterdir()) == []


def test_a_project_that_is_wrong_is_left_out(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "headrace.yaml").write_text("nonsense: [")
    told = call(capsys, "sites")
    assert told.code == 0 and "warning: the project is left out" in told.err
