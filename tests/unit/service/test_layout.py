from __future__ import annotations

from pathlib import Path

from headrace.catalog.model import FileSource, Format, SinkKind
from headrace.plan.placed import Job
from headrace.service.layout import as_files, job_context, results_folder
from tests.unit.service.sample import STREAMS, project, scan, sink


def test_a_generator_stream_is_read_as_the_files_it_was_written_to(tmp_path: Path) -> None:
    found = as_files(project(tmp_path), STREAMS["made"])
    folder = tmp_path.resolve() / ".headrace" / "data" / "made"
    assert found.source == FileSource(path=str(folder), format=Format.PARQUET, files_per_batch=2)
    assert found.columns == STREAMS["made"].columns


def test_other_streams_are_left_alone(tmp_path: Path) -> None:
    assert as_files(project(tmp_path), STREAMS["files"]) is STREAMS["files"]


def test_paths_of_a_job(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    context = job_context(project(tmp_path), Job("a", "a", "local", scan()))
    assert (context.root, context.state) == (root, root / ".headrace" / "jobs" / "a")
    assert (context.results, context.endpoint) == (root / "results" / "a", "local[2]")


def test_where_results_go(tmp_path: Path) -> None:
    near, far = sink(SinkKind.CSV, "../out"), sink(SinkKind.CSV, "/abs/out")
    found = project(tmp_path / "p", ("a", "b", "c"), a=near, b=far)
    places = [results_folder(found, q) for q in found.queries.values()]
    root = tmp_path.resolve()
    assert places == [root / "out", Path("/abs/out"), root / "p" / "results" / "c"]
