"""results, reference and run, over hand-made data and the fake engine."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.catalog.model import Project
from headrace.errors import UserError
from headrace.plan.placed import PlacedPlan
from headrace.runtime.executor import Executor
from headrace.runtime.fake import FakeExecutor, Script
from headrace.service import session
from headrace.state.lock import RunLock
from tests.unit.cli.entry import COUNTS, PROJECT, Done, call, make_project, publish_counts

Capture = pytest.CaptureFixture[str]


def _rows(done: Done) -> list[tuple[object, ...]]:
    """Rows of a JSON answer, instants without their zone."""
    return [
        tuple(v.removesuffix("+00:00") if isinstance(v, str) else v for v in row.values())
        for row in done.json["rows"]
    ]


def test_reference_gives_the_hand_computed_answer(tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, "reference", "counts", make_project(tmp_path / "p"), "--json")
    assert done.code == 0, done.err
    assert _rows(done) == COUNTS
    assert done.json["columns"] == ["window_start", "window_end", "k", "n", "total"]


def test_results_newest_last(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    publish_counts(folder, COUNTS[::-1])
    assert _rows(call(capsys, "results", "counts", folder, "--limit", "0", "--json")) == COUNTS
    done = call(capsys, "results", "counts", folder, "--limit", "2")
    assert " ".join(done.out.splitlines()[1].split()) == "2024-05-01 12:00:05 2024-05-01 12:00:15 1 1 2.5"
    assert done.out.endswith("2 of 5 rows\n")


def test_results_before_any_run(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    done = call(capsys, "results", "counts", folder, "--json")
    assert (done.code, done.json["hint"]) == (2, "Run it first: headrace run --only counts.")
    (folder / "results" / "counts").mkdir(parents=True)
    done = call(capsys, "results", "counts", folder, "--json")
    assert (done.code, done.json["rows"], done.json["total"]) == (0, [], 0), "it ran, and gave nothing yet"


def test_results_of_a_console_sink(tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, "results", "shown", make_project(tmp_path / "p"))
    assert done.code == 2
    assert "console sink" in done.err


def test_verify_says_equal(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    publish_counts(folder, COUNTS)
    done = call(capsys, "results", "counts", folder, "--verify")
    assert (done.code, done.out) == (0, "counts: equal to the reference, 5 rows\n")


@pytest.mark.parametrize(
    ("published", "counts"),
    [
        (COUNTS[:-1], (4, 5)),
        ([*COUNTS, COUNTS[0]], (6, 5)),
        ([*COUNTS[:-1], (*COUNTS[-1][:-1], 4.1)], (5, 5)),
    ],
    ids=["lost", "doubled", "wrong"],
)
def test_verify_says_how_it_differs(
    tmp_path: Path,
    capsys: Capture,
    published: list[tuple[str, str, int, int, float]],
    counts: tuple[int, int],
) -> None:
    folder = make_project(tmp_path / "p")
    publish_counts(folder, published)
    done = call(capsys, "results", "counts", folder, "--verify", "--json")
    assert (done.code, done.json["equal"]) == (1, False)
    assert (done.json["published"], done.json["expected"]) == counts
    assert done.json["difference"]
    assert "differs from the reference" in call(capsys, "results", "counts", folder, "--verify").out


def test_no_reference_of_an_endless_stream(tmp_path: Path, capsys: Capture) -> None:
    done = call(capsys, "reference", "beats", make_project(tmp_path / "p"))
    assert done.code == 2
    assert "never ends" in done.err


def _use(monkeypatch: pytest.MonkeyPatch, executor: FakeExecutor, *, hurry: bool = True) -> None:
    """Run on the fake engine; in a hurry, without waiting between two looks at it."""

    def make(
        project: Project,
        placed: PlacedPlan,
        environ: Mapping[str, str],
        on_rows: session.OnRows,
        plan_of: session.PlanOf,
    ) -> Executor:
        return executor

    monkeypatch.setattr(session, "spark_executor", make)
    if hurry:
        monkeypatch.setattr(time, "sleep", lambda _: None)


FINITE = ("--only", "counts", "--only", "high")


def test_run_drains_and_sums_up(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_project(tmp_path / "p")
    tree = call(capsys, "plan", folder, "--json").json["sharing"]["trees"][0]["tree"]
    _use(monkeypatch, FakeExecutor({tree: Script(batches=2, rows=1000, results=20, late=3)}))
    done = call(capsys, "run", folder, "--drain", *FINITE)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert " ".join(lines[1].split()) == f"counts finished 1 2,000 40 6 0.0 s 100% {tree}"
    assert lines[-1].endswith("2 finished; 2,300 rows in, 70 rows out, 6 late")
    assert "counts: finished, 2,000 rows in, 40 rows out, 6 late" in done.err
    rows = call(capsys, "queries", folder, "--json").json
    assert [r["observed"] for r in rows] == ["finished", "finished", None, None]


def test_run_as_data(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, FakeExecutor({"high": Script(fail_at=1, reason="disk full")}))
    done = call(capsys, "run", make_project(tmp_path / "p"), "--drain", *FINITE, "--json")
    assert (done.code, done.err) == (1, "")
    assert done.json["failures"] == {"high": "disk full"}
    assert [j["state"] for j in done.json["jobs"]] == ["finished", "failed"]


def test_run_names_what_failed(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    _use(monkeypatch, FakeExecutor({"high": Script(fail_at=0, reason="disk full")}))
    done = call(capsys, "run", make_project(tmp_path / "p"), "--drain", *FINITE)
    assert done.code == 1
    assert "high failed: disk full" in done.err


def test_a_refused_job_is_the_users_error(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(monkeypatch, FakeExecutor({"high": Script(refuse=UserError("was drained", hint="Use --fresh."))}))
    done = call(capsys, "run", make_project(tmp_path / "p"), "--drain", *FINITE)
    assert done.code == 2
    assert "Use --fresh." in done.err


def test_drain_of_an_endless_stream_touches_nothing(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    done = call(capsys, "run", folder, "--drain")
    assert done.code == 2
    assert '"beats" reads stream "endless"' in done.err
    assert sorted(p.name for p in folder.iterdir()) == ["headrace.yaml", "input"]


def test_a_foreign_results_folder_is_refused_and_nothing_written(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    publish_counts(folder, COUNTS)
    done = call(capsys, "run", folder, "--drain", "--fresh", *FINITE)
    assert done.code == 2
    assert "did not write" in done.err
    assert sorted(p.name for p in folder.iterdir()) == ["headrace.yaml", "input", "results"]
    assert [p.name for p in (folder / "results" / "counts").iterdir()] == ["part-000000.json"]


def test_two_runs_of_one_project_refuse_each_other(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_project(tmp_path / "p")
    (folder / ".headrace").mkdir()
    executor = FakeExecutor()
    _use(monkeypatch, executor)
    with RunLock(folder / ".headrace" / "run.lock"):
        done = call(capsys, "run", folder, "--drain", *FINITE)
    assert (done.code, executor.calls) == (2, [])
    assert str(os.getpid()) in done.err
    assert call(capsys, "run", folder, "--drain", *FINITE).code == 0


def test_a_signal_stops_cleanly(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_project(tmp_path / "p")
    before = signal.getsignal(signal.SIGTERM)
    executor = FakeExecutor()
    _use(monkeypatch, executor, hurry=False)
    timer = threading.Timer(1.2, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    done = call(capsys, "run", folder, "--only", "beats", "--json")
    timer.join()
    assert (done.code, done.json["interrupted"]) == (0, True)
    assert [j["state"] for j in done.json["jobs"]] == ["stopped"]
    assert executor.closed
    assert signal.getsignal(signal.SIGTERM) is before


def test_generated_data_is_there_before_the_engine(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = PROJECT.replace(
        "source: {kind: files, path: input, format: json}",
        "source: {kind: generator, rows: 50, files: 2, columns: {k: {kind: uniform, low: 0, high: 3}, "
        "v: {kind: normal, mean: 1, stddev: 1}}}",
    )
    folder = make_project(tmp_path / "p", text)
    executor = FakeExecutor()
    _use(monkeypatch, executor)
    done = call(capsys, "run", folder, "--drain", "--only", "high")
    assert done.code == 0, done.err
    assert "data of stream s: 50 rows" in done.err
    data = folder / ".headrace" / "data" / "s"
    assert len(list(data.glob("*.parquet"))) == 2
    source = executor.context("high").streams["s"].source
    assert source.kind == "files"
    assert source.path == str(data.resolve())
    assert json.loads(call(capsys, "reference", "high", folder, "--json").out)["total"] > 0
