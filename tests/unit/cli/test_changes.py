"""add and drop: on a project at rest, on one that runs, and all that can be wrong."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headrace.catalog.model import Project
from headrace.plan.placed import PlacedPlan
from headrace.runtime.executor import Executor
from headrace.runtime.fake import FakeExecutor
from headrace.service import session
from headrace.service.project import open_project
from headrace.service.run import Options, Outcome
from headrace.state.lock import RunLock
from tests.unit.cli.entry import PROJECT, call, make_project

Capture = pytest.CaptureFixture[str]
SQL = "SELECT k, count(*) AS n FROM s [RANGE 20 SECONDS SLIDE 5 SECONDS] GROUP BY k"


def _sql(folder: Path, text: str = SQL) -> Path:
    file = folder.parent / "new.sql"
    file.write_text(text)
    return file


def test_add_at_rest_is_there_everywhere(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    done = call(capsys, "add", "new", folder, "--sql", _sql(folder), "--sink", "csv", "--path", "out/new")
    assert (done.code, done.err) == (0, "")
    assert done.out == ("new is not added yet: no run is on; it takes effect with the next `headrace run`\n")
    assert call(capsys, "check", folder, "--json").json["queries"] == 5
    assert "range 20s, slide 5s" in call(capsys, "explain", "new", folder).out
    assert call(capsys, "reference", "new", folder, "--json").json["total"] > 0
    row = call(capsys, "queries", folder, "--json").json[-1]
    assert (row["name"], row["sink"], row["by"], row["pending"], row["tree"]) == (
        *("new", "csv", "command", True),
        None,
    )
    assert "new to be added" in " ".join(call(capsys, "queries", folder).out.split()).replace(
        "local csv ", ""
    )


def test_sql_from_standard_input(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_project(tmp_path / "p")
    monkeypatch.setattr("sys.stdin", io.StringIO(SQL))
    done = call(capsys, "add", "new", folder, "--sql", "-", "--json")
    assert (done.code, done.json[0]["state"], done.json[0]["query"]) == (0, "pending", "new")
    assert open_project(folder).queries["new"].sql == SQL


def test_drop_and_take_back(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    done = call(capsys, "drop", "high", "beats", folder)
    assert (done.code, done.out.splitlines()) == (
        0,
        [f"{name} was dropped; its results stay where they are" for name in ("high", "beats")],
    )
    assert list(open_project(folder).queries) == ["counts", "shown"]
    assert "still in the project file: beats, high" in call(capsys, "queries", folder).out
    changed = call(capsys, "add", "high", folder, "--sink", "json")
    assert (changed.code, "as the project file has it" in changed.err) == (2, True)
    assert call(capsys, "add", "high", folder).code == 0
    assert list(open_project(folder).queries) == ["counts", "high", "shown"]
    assert open_project(folder).queries["high"].sql == "SELECT ts, k, v FROM s WHERE v > 2"


def test_the_project_is_the_folder_we_are_in(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_project(tmp_path / "p")
    (folder / "high").mkdir()
    monkeypatch.chdir(folder)
    assert call(capsys, "drop", "counts", "high").code == 0
    assert list(open_project(folder).queries) == ["shown", "beats"]


BAD: list[tuple[str, list[str], str, str]] = [
    ("a name in the file", ["add", "high"], SQL, 'query "high" is in the project file'),
    ("no name", ["add", "1st"], SQL, '"1st" is not a legal name'),
    ("a name but for case", ["add", "HIGH"], SQL, 'the name "HIGH" is taken by queries.high'),
    (
        "a wrong column",
        ["add", "new"],
        "SELECT vv FROM s",
        'added query "new":1:8: column "vv" does not exist',
    ),
    ("no such sink", ["add", "new", "--sink", "parkett"], SQL, 'Did you mean "parquet"?'),
    ("no such site", ["add", "new", "--site", "moon"], SQL, 'site "moon" does not exist'),
    ("a folder in use", ["add", "new", "--path", "results/high"], SQL, 'the same folder as query "high"'),
    ("a folder that is read", ["add", "new", "--path", "input"], SQL, 'is inside what stream "s" reads'),
    ("a path for a console", ["add", "new", "--sink", "console", "--path", "x"], SQL, "takes no path"),
    ("a foreign folder", ["add", "new", "--path", "thesis"], SQL, "did not write"),
    ("one column as csv", ["add", "new", "--sink", "csv"], "SELECT v FROM s", "a csv sink cannot keep"),
    ("an empty file", ["add", "new"], " \n", "is empty"),
    ("no such stream", ["add", "new", "--site", "local"], "SELECT v FROM ss", '"ss" does not exist'),
]


@pytest.mark.parametrize(("args", "sql", "says"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_what_cannot_be_added(tmp_path: Path, capsys: Capture, args: list[str], sql: str, says: str) -> None:
    folder = make_project(tmp_path / "p")
    (folder / "thesis").mkdir()
    (folder / "thesis" / "main.tex").write_text("years of work")
    done = call(capsys, *args, folder, "--sql", _sql(folder, sql))
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert "Traceback" not in done.err
    assert not (folder / ".headrace").exists(), "nothing half done"


def test_more_that_cannot_be_done(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    assert 'query "new" needs its SQL' in call(capsys, "add", "new", folder).err
    assert "No such file" in call(capsys, "add", "new", folder, "--sql", tmp_path / "none.sql").err
    assert 'Did you mean "high"?' in call(capsys, "drop", "hihg", folder).err
    assert not (folder / ".headrace").exists()
    call(capsys, "add", "new", folder, "--sql", _sql(folder))
    again = call(capsys, "add", "new", folder, "--sql", _sql(folder))
    assert (again.code, 'query "new" is there already' in again.err) == (2, True)
    call(capsys, "drop", "high", folder)
    done = call(capsys, "drop", "shown", "high", folder)
    assert (done.code, 'query "high" does not exist' in done.err) == (2, True)
    assert "shown" in open_project(folder).queries, "all or none"


def test_results_of_a_query_of_that_name(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    (folder / "results" / "new").mkdir(parents=True)
    (folder / "results" / "new" / ".headrace").write_text("")
    (folder / "results" / "new" / "part-000000.parquet").write_text("x")
    done = call(capsys, "add", "new", folder, "--sql", _sql(folder))
    assert done.code == 2
    assert "another name or --path" in done.err


def test_an_added_query_may_be_written_into_the_file(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    call(capsys, "add", "new", folder, "--sql", _sql(folder))
    same = f"  new:\n    sql: {SQL}\n"
    (folder / "headrace.yaml").write_text(PROJECT + same)
    assert call(capsys, "check", folder).code == 0
    (folder / "headrace.yaml").write_text(PROJECT + same.replace("20", "30"))
    done = call(capsys, "check", folder)
    assert (done.code, "another one of that name was added by command" in done.err) == (2, True)
    assert call(capsys, "drop", "new", folder).code == 0
    assert "30 SECONDS" in open_project(folder).queries["new"].sql, "that of the file stays, as the hint says"
    assert call(capsys, "drop", "new", folder).code == 0
    assert "new" not in open_project(folder).queries


class Run:
    """`headrace run` in a thread, on the fake engine, until told to stop."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, options: Options) -> None:
        self.executor, self.notes = FakeExecutor(), list[str]()
        self._stop: Callable[[], None] = lambda: None

        def make(
            project: Project,
            placed: PlacedPlan,
            environ: Mapping[str, str],
            on_rows: session.OnRows,
            plan_of: session.PlanOf,
        ) -> Executor:
            return self.executor

        class Signals(session.Signals):
            """Signals are for the main thread."""

            def calling(signals, stop: Callable[[], None]) -> RunLock:  # type: ignore[override]
                self._stop = stop
                return _Nothing()  # type: ignore[return-value]

        monkeypatch.setattr(session, "spark_executor", make)
        monkeypatch.setattr(session, "Signals", Signals)
        monkeypatch.setattr("headrace.service.run.POLL_SECONDS", 0.02)
        watcher = session.Watcher(note=self.notes.append)
        self.outcome: Outcome | None = None

        def run() -> None:
            self.outcome = session.run_project(open_project(folder), options, {}, watcher=watcher)

        self._thread = threading.Thread(target=run)
        self._folder = folder

    def __enter__(self) -> Run:
        self._thread.start()
        while not self.executor.calls:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._thread.join(timeout=20)


class _Nothing:
    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def test_add_and_drop_on_a_running_project(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_project(tmp_path / "p")
    with Run(folder, monkeypatch, Options()) as run:
        added = call(capsys, "add", "new", folder, "--sql", _sql(folder))
        assert added.code == 0, added.err
        tree = next(tree for tree in run.executor.trees)
        assert added.out.startswith(f"new runs in {tree} with counts, valid from 1970-01-01 00:00:")
        assert "; the others of its tree paused for 0." in added.out
        assert run.executor.trees[tree] == ("counts", "new")
        row = call(capsys, "queries", folder, "--json").json[-1]
        assert (row["tree"], row["observed"], row["by"]) == (tree, "running", "command")
        assert row["valid_from"] in added.out
        dropped = call(capsys, "drop", "counts", "high", folder, "--json")
        assert [(r["query"], r["state"]) for r in dropped.json] == [
            ("counts", "applied"),
            ("high", "applied"),
        ]
        assert run.executor.trees[tree] == ("new",)
    assert run.outcome is not None
    assert [w.job for w in run.outcome.last.jobs] == ["shown", "beats", "new"]
    assert (folder / "results" / "high").is_dir()
    assert any(note.startswith(f"new runs in {tree}") for note in run.notes)


def test_a_run_that_drains_takes_nothing(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_project(tmp_path / "p")
    with RunLock(folder / ".headrace" / "run.lock", "drain"):
        done = call(capsys, "add", "new", folder, "--sql", _sql(folder))
        assert (done.code, "drains its input and takes no changes" in done.out) == (0, True)


def test_a_run_that_does_not_answer(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    with RunLock(folder / ".headrace" / "run.lock", "run"):
        done = call(capsys, "add", "new", folder, "--sql", _sql(folder), "--timeout", "0.3")
        assert (done.code, "has not taken it so far" in done.out) == (0, True)
        done = call(capsys, "drop", "high", folder, "--no-wait")
        assert done.code == 0
