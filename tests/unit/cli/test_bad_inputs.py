"""Every wrong input gives the right message at the right place, exit code 2, and writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.bad_inputs import ALL, Bad
from tests.unit.cli.entry import PROJECT, Done, call, make_project, spawn

Capture = pytest.CaptureFixture[str]
SPAWNED = ("two windows", "no such command", "results of what never ran")
"""The first is a process of its own here, the others in deep/."""


def ready(bad: Bad, root: Path) -> tuple[Path, list[str]]:
    """The project with its mistake, and the command line."""
    old, new = bad.project
    assert old in PROJECT, f"{old!r} is not in the sample project"
    folder = make_project(root / "p", PROJECT.replace(old, new, 1) if old else PROJECT)
    bad.prepare(folder)
    return folder, [arg.replace("{p}", str(folder)) for arg in bad.args]


def content(folder: Path) -> dict[str, bytes | None]:
    return {str(p): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


def judge(bad: Bad, folder: Path, done: Done) -> None:
    place, says = (text.replace("{p}", str(folder)) for text in (bad.place, bad.says))
    assert done.code == 2
    assert done.out == ""
    kinds = ("usage error: ", "user error: ", "not supported: ")
    kind = next((k for k in kinds if done.err.startswith(k)), None)
    assert kind is not None, done.err
    assert done.err.removeprefix(kind).startswith(place), done.err
    assert says in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("bad", ALL, ids=lambda b: b.id)
def test_in_this_process(bad: Bad, tmp_path: Path, capsys: Capture) -> None:
    folder, args = ready(bad, tmp_path)
    before = content(tmp_path)
    judge(bad, folder, call(capsys, *args))
    assert content(tmp_path) == before


@pytest.mark.parametrize("bad", [b for b in ALL if b.id == SPAWNED[0]], ids=lambda b: b.id)
def test_as_a_process(bad: Bad, tmp_path: Path) -> None:
    folder, args = ready(bad, tmp_path)
    before = content(tmp_path)
    judge(bad, folder, spawn(*args))
    assert content(tmp_path) == before


def test_inside_the_project_without_naming_it(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_project(tmp_path / "p", PROJECT.replace("FROM s WHERE", "FROM ss WHERE"))
    before = content(tmp_path)
    monkeypatch.chdir(folder)
    done = call(capsys, "check")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("user error: headrace.yaml:18:31: ")
    assert content(tmp_path) == before


@pytest.mark.parametrize("bad", ALL, ids=lambda b: b.id)
def test_as_json(bad: Bad, tmp_path: Path, capsys: Capture) -> None:
    """The same, for programs: one JSON object on standard output, with the place in it."""
    folder, args = ready(bad, tmp_path)
    done = call(capsys, args[0], "--json", *args[1:])
    assert (done.code, done.err) == (2, "")
    said = done.json
    assert bad.says.replace("{p}", str(folder)) in f"{said['message']}\n{said['detail']}\n{said['hint']}"
    found = said["place"]
    place = "" if found is None else f"{found['file']}:{found['line']}:{found['column']}: "
    assert place == bad.place.replace("{p}", str(folder))


def test_the_table_is_large_enough() -> None:
    assert len({bad.id for bad in ALL}) == len(ALL) >= 45
    assert len({(bad.args, bad.project, bad.place) for bad in ALL if bad.args[0] == "check"}) >= 30
    assert len([bad for bad in ALL if bad.id in SPAWNED]) == len(SPAWNED)
