"""`make bench-windows`: what is charged to an engine, when a figure is scaled, and which answers pass."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.machine import describe
from benchmarks.windows import __main__ as command
from benchmarks.windows import answers, data, kept
from benchmarks.windows.cells import AT_LEAST, FORETOLD, MEASURED, NOT, SCALED, Bench, Case, Cell
from benchmarks.windows.engines import Engine, Places, Sample
from benchmarks.windows.headrace_trees import project
from benchmarks.windows.kept import Kept, Made
from benchmarks.windows.meter import Usage, measure
from benchmarks.windows.options import parse
from benchmarks.windows.spec import Report, RunSpec
from benchmarks.windows.tables import markdown
from benchmarks.windows.workloads import FUNCTIONS, WORKLOADS
from headrace.errors import UserError
from headrace.runtime.duckdb.reference import evaluate
from headrace.service.members import member_of

SPIN = "import time\nwhile time.process_time() < {}: pass\n"


def spent(code: str, folder: Path) -> Usage:
    return measure([sys.executable, "-c", code], log=folder / "log", limit=30, environ=os.environ)


def test_cpu_of_orphans_and_of_children_nobody_waits_for_is_charged(tmp_path: Path) -> None:
    nothing = spent("import os, signal, time", tmp_path).cpu
    orphan = f"import os\nif os.fork() == 0:\n    os.setsid()\n{_indented(SPIN.format(0.5))}"
    assert spent(orphan, tmp_path).cpu == pytest.approx(nothing + 0.5, abs=0.25)
    ignored = (
        "import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"if os.fork() == 0:\n{_indented(SPIN.format(0.6))}    os._exit(0)\ntime.sleep(1.2)"
    )
    assert spent(ignored, tmp_path).cpu == pytest.approx(nothing + 0.6, abs=0.25)


def _indented(code: str) -> str:
    return "".join(f"    {line}\n" for line in code.splitlines())


def test_a_command_ends_at_its_limit(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    usage = measure(command, log=tmp_path / "log", limit=0.3, environ=os.environ)
    assert usage.timed_out
    assert usage.code == -9
    assert usage.wall < 10


def test_query_sets_grow_by_adding(tmp_path: Path) -> None:
    for workload in WORKLOADS.values():
        many = workload.queries(200)
        assert many[:10] == workload.queries(10)
        assert {function for query in many for function, _ in query.aggregates} == set(FUNCTIONS)
        assert all(len(set(query.aggregates)) == len(query.aggregates) for query in many)


class Told(Bench):
    """Runs that take what a line says: 1 s and 10 CPU-s of start-up, then so much an event and query."""

    def run(self, engine: Engine, case: Case, files: int, limit: float) -> Sample:
        events = files * case.input.per_file
        work = 1e-3 * events * case.queries
        usage = Usage(wall=1 + work, cpu=10 + 2 * work, timed_out=1 + work > limit)
        told = Report(ready=1.0)
        return Sample(events, usage, told, 1, problem="over the limit" if usage.timed_out else "")


@pytest.fixture
def told(tmp_path: Path) -> Bench:
    return Told(Places(tmp_path, tmp_path, {}), 100.0, "1g", 2, lambda _: None)


INPUT = data.Input(events=60_000, span=600, keys=5)


@pytest.mark.parametrize(
    ("count", "kind", "note"), [(1, MEASURED, ""), (10, SCALED, "events"), (200, FORETOLD, "fewer")]
)
def test_what_is_scaled_is_said(told: Bench, count: int, kind: str, note: str) -> None:
    told.cell(Engine.PLAIN, Case("feature", 1, INPUT))
    cell = told.cell(Engine.PLAIN, Case("feature", count, INPUT))
    assert cell.kind == kind
    assert note in cell.note
    # Whatever the way, a straight line is found again.
    assert cell.cpu == pytest.approx(10 + 2e-3 * 60_000 * count, rel=0.02)
    assert ("~" in markdown([cell])) or kind != SCALED


@pytest.mark.parametrize(("count", "cpu"), [(60, 10 + 2 * 60), (600, 10 + 2 * 600)])
def test_a_run_that_is_ended_or_alone_is_a_lower_limit(told: Bench, count: int, cpu: float) -> None:
    cell = told.cell(Engine.PLAIN, Case("feature", count, INPUT, files_per_batch=1))
    # One file of 60 fits, or not even that: no line through two runs, and the whole is surely dearer.
    assert cell.kind == AT_LEAST
    assert cell.cpu == pytest.approx(cpu)
    assert "| ≥ " in markdown([cell])
    assert not cell.wrong


def test_prefixes_that_are_named_are_run(told: Bench) -> None:
    told.prefixes = (1, 2)
    cell = told.cell(Engine.PLAIN, Case("feature", 20, INPUT))
    assert (cell.kind, cell.note) == (SCALED, "from 1,000 and 2,000 events")
    assert cell.cpu == pytest.approx(10 + 2e-3 * 60_000 * 20)
    assert told.cell(Engine.PLAIN, Case("feature", 200, INPUT)).kind == FORETOLD
    told.prefixes = (1, 11)
    assert told.cell(Engine.FLINK, Case("feature", 20, INPUT)).kind == AT_LEAST


def test_cells_are_kept_and_taken_again(told: Bench, tmp_path: Path) -> None:
    found = [told.cell(Engine.PLAIN, Case("feature", count, INPUT)) for count in (1, 10, 200)]
    found.append(told.cell(Engine.FLINK, Case("coprime", 10, INPUT, stretch=10)))
    run = Made("a", describe(datetime.now(UTC), {}), "rocksdb")
    kept.write(tmp_path / "a.json", Kept((run,), tuple(found)))
    again = kept.read(tmp_path / "a.json")
    assert again == Kept((run,), tuple(found))
    other = replace(run, command="b")
    kept.write(tmp_path / "b.json", Kept((other, run), again.cells[:1]))
    assert kept.read(tmp_path / "b.json").made == (other, run)
    (tmp_path / "c.json").write_text("[]")
    for wrong in ("c.json", "none.json"):
        with pytest.raises(UserError, match="has no cells"):
            kept.read(tmp_path / wrong)


def test_only_what_earlier_runs_lack_is_measured(
    told: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "Bench", lambda *_, **__: told)
    said = ["--workload", "feature", "--engines", "plain,duckdb", "--parts", "table", "--store", "rocksdb"]
    said += ["--events", "60000", "--span", "600", "--cache", str(tmp_path)]
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    assert command.main([*said, "--queries", "1", "--json", str(first)]) == 0
    measured: list[tuple[Engine, int]] = []
    cell = told.cell

    def noted(engine: Engine, case: Case) -> Cell:
        measured.append((engine, case.queries))
        assert len(kept.read(second).cells) == 2 + len(measured) - 1
        return cell(engine, case)

    monkeypatch.setattr(told, "cell", noted)
    more = ["--queries", "1,10", "--json", str(second), "--from", str(first)]
    assert command.main([*said, *more]) == 0
    assert measured == [(Engine.PLAIN, 10), (Engine.DUCKDB, 10)]
    assert kept.read(second).cells[:2] == kept.read(first).cells
    assert [len(one.command.split("--from")) for one in kept.read(second).made] == [2, 1]
    assert str(tmp_path) not in second.read_text()


def test_folders_of_a_run_are_not_kept(told: Bench, tmp_path: Path) -> None:
    cell = told.cell(Engine.PLAIN, Case("feature", 1, INPUT))
    assert cell.sample is not None
    report = replace(cell.sample.report, checkpoints=[str(tmp_path)])
    run = Made("a", describe(datetime.now(UTC), {}), "rocksdb")
    own = replace(cell, sample=replace(cell.sample, report=report))
    kept.write(tmp_path / "a.json", Kept((run,), (own,)))
    assert str(tmp_path) not in (tmp_path / "a.json").read_text()


def test_sets_that_flink_refuses_are_not_run(told: Bench) -> None:
    cell = told.cell(Engine.FLINK, Case("coprime", 10, INPUT))
    assert (cell.kind, cell.cpu) == (NOT, None)
    assert "5 of 10" in cell.note


@pytest.fixture
def answered(tmp_path: Path) -> RunSpec:
    """Answers of the reference, which knows nothing of pieces and frames."""
    folder = data.make(tmp_path, data.Input(events=400, span=120, keys=5, files=2))
    (tmp_path / "run").mkdir()
    queries = tuple(q for w in ("feature", "coprime") for q in WORKLOADS[w].queries(6))
    named = tuple(replace(q, name=f"n{i}") for i, q in enumerate(queries))
    spec = RunSpec("duckdb", named, str(folder), "", str(tmp_path / "run"))
    rows = pa.concat_tables([pq.read_table(path) for path in sorted(folder.glob("*.parquet"))])
    made = project(spec)
    for query in made.queries.values():
        member = member_of(made, query)
        assert not isinstance(member, str)
        spec.results(query.name).mkdir(parents=True)
        pq.write_table(evaluate(member.plan, {"s": rows}), spec.results(query.name) / "rows.parquet")
    return spec


@pytest.mark.parametrize("full", [2_000_000, 0])
def test_answers(answered: RunSpec, full: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "FULL_ROWS", full)
    checker = answers.Checker(answered)
    assert checker.check(answered, open_end=False).problem == ""
    path = answered.results("n2") / "rows.parquet"
    right = pq.read_table(path)
    values = right.column(2).to_pylist()
    value = right.set_column(2, right.column_names[2], pa.array([values[0] + 0.01, *values[1:]]))
    twice = pa.concat_tables([right.slice(1), right.slice(1, 1)])
    for wrong in (value, right.slice(1), twice):
        pq.write_table(wrong, path)
        assert checker.check(answered, open_end=False).problem.startswith("n2: ")


def test_bad_options_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = (["--workload", "x"], ["--queries", "0"], ["--engines", "x"], ["--batch", "99"])
    for given in (*wrong, ["--prefixes", "1"], ["--prefixes", "3,2"], ["--prefixes", "1,61"]):
        with pytest.raises(SystemExit) as ended:
            parse(given)
        assert ended.value.code == 2
    assert "there are feature" in capsys.readouterr().err
    assert parse(["--quick", "--events", "7000"]).events == 7000
    assert parse(["--quick"]).queries == (1, 3)
