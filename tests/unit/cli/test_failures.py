"""What failures look like: exit codes, places, JSON, no traceback for the user's mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.cli import commands_project
from headrace.errors import EngineError, InternalError
from tests.unit.cli.entry import call
from tests.unit.service.federated_sample import TOP, write

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "args",
    [
        ["chekc"],
        ["check", "--nonsense"],
        ["explain"],
        ["check", "a", "b"],
        ["results", "q", "--limit", "many"],
        ["results", "q", "--limit", "-1"],
        ["run", "--master"],
        ["--nonsense"],
    ],
)
def test_wrong_command_lines(capsys: Capture, args: list[str]) -> None:
    done = call(capsys, *args)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage error: ")
    assert "Traceback" not in done.err
    as_json = call(capsys, *args[:1], "--json", *args[1:])
    assert as_json.code == 2
    assert as_json.json["error"] == "usage error"
    assert as_json.json["message"]


def test_a_slip_in_a_command_name(capsys: Capture) -> None:
    assert "Did you mean 'check'" in call(capsys, "chekc").err


def test_no_command_shows_the_help(capsys: Capture) -> None:
    done = call(capsys)
    assert "Usage" in done.out + done.err
    assert "usage error" not in done.err


@pytest.mark.parametrize(
    ("error", "code", "bug"),
    [
        (EngineError("Spark went away", hint="Try again."), 1, False),
        (InternalError("an invariant does not hold"), 1, True),
        (ZeroDivisionError("division by zero"), 1, True),
        (KeyboardInterrupt(), 130, False),
    ],
)
def test_failures_that_are_not_the_users(
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    bug: bool,
) -> None:
    def fail(path: Path) -> None:
        raise error

    monkeypatch.setattr(commands_project, "open_project", fail)
    done = call(capsys, "check", tmp_path)
    assert done.code == code
    assert ("Traceback" in done.err) is bug
    assert ("This is a bug in Headrace" in done.err) is bug
    as_json = call(capsys, "check", tmp_path, "--json")
    assert as_json.code == code
    if not isinstance(error, KeyboardInterrupt):
        assert str(error) in as_json.json["message"]
        assert as_json.json["error"] == ("internal error" if bug else "engine error")


def test_check_looks_at_lists_of_engines(tmp_path: Path, capsys: Capture) -> None:
    write(tmp_path, a=f"{TOP}#engines: [spark, duckdb]")
    done = call(capsys, "check", tmp_path)
    assert done.code == 2 and "3 operators with a choice of engine, and 2 engines in its list" in done.err


def test_errors_have_no_colour_codes_in_a_file(tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, "check", tmp_path)
    assert done.code == 2
    assert "\x1b" not in done.err
