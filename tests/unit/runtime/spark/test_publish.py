"""Publishing: only what Spark's log has committed, in order, once. The staged folders are made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.catalog.model import SinkKind
from headrace.runtime.spark import publish
from headrace.runtime.spark.publish import MARKER, Published, Publisher, committed, count_rows


def stage(staging: Path, name: str, rows: int) -> Path:
    staging.mkdir(parents=True, exist_ok=True)
    path = staging / name
    pq.write_table(pa.table({"x": list(range(rows))}), path)
    return path


def log(staging: Path, batch: str, *files: Path) -> None:
    folder = staging / "_spark_metadata"
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"path": f.as_uri(), "action": "add"}) for f in files]
    (folder / batch).write_text("\n".join(["v1", *lines]))


def publisher(root: Path) -> Publisher:
    (root / "state").mkdir(exist_ok=True)
    return Publisher(root / "staging", root / "results", root / "state", SinkKind.PARQUET)


def given(root: Path) -> list[tuple[str, int]]:
    files = sorted(p for p in (root / "results").iterdir() if p.name != MARKER)
    return [(p.name, pq.read_metadata(p).num_rows) for p in files]


def test_files_of_a_batch_that_was_not_committed_stay_hidden(tmp_path: Path) -> None:
    good = stage(tmp_path / "staging", "part-a", 3)
    stage(tmp_path / "staging", "part-orphan", 5)
    log(tmp_path / "staging", "0", good)
    assert publisher(tmp_path).publish() == Published(files=1, rows=3)
    assert given(tmp_path) == [("part-000000.parquet", 3)]


def test_nothing_is_given_twice_not_even_what_the_reader_took_away(tmp_path: Path) -> None:
    first = stage(tmp_path / "staging", "part-a", 3)
    log(tmp_path / "staging", "0", first)
    publisher(tmp_path).publish()
    (tmp_path / "results" / "part-000000.parquet").unlink()
    second = stage(tmp_path / "staging", "part-b", 2)
    log(tmp_path / "staging", "1", second)
    assert publisher(tmp_path).publish() == Published(files=2, rows=5)
    assert given(tmp_path) == [("part-000001.parquet", 2)]


def test_a_crash_between_linking_and_remembering_does_not_double(tmp_path: Path) -> None:
    first = stage(tmp_path / "staging", "part-a", 3)
    log(tmp_path / "staging", "0", first)
    publisher(tmp_path).publish()
    (tmp_path / "state" / "published.json").unlink()
    assert publisher(tmp_path).publish() == Published(files=1, rows=3)
    assert given(tmp_path) == [("part-000000.parquet", 3)]


def test_what_could_not_be_written_down_is_not_taken_for_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full for a moment: whoever asks again is not told of files that a restart would miss."""
    log(tmp_path / "staging", "0", stage(tmp_path / "staging", "part-a", 3))
    one = publisher(tmp_path)

    def full(path: Path, data: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(publish, "write_json", full)
        with pytest.raises(OSError, match="no space"):
            one.publish()
    assert one.done == Published()
    assert one.publish() == publisher(tmp_path).done == Published(files=1, rows=3)
    assert given(tmp_path) == [("part-000000.parquet", 3)]


def test_compaction_of_the_log_keeps_positions(tmp_path: Path) -> None:
    files = [stage(tmp_path / "staging", f"part-{n}", n + 1) for n in range(4)]
    for n in range(2):
        log(tmp_path / "staging", str(n), files[n])
    publisher(tmp_path).publish()
    log(tmp_path / "staging", "2.compact", *files[:3])
    log(tmp_path / "staging", "3", files[3])
    (tmp_path / "staging" / "_spark_metadata" / ".3.crc").write_text("noise")
    assert committed(tmp_path / "staging") == files
    assert publisher(tmp_path).publish() == Published(files=4, rows=10)
    assert [rows for _, rows in given(tmp_path)] == [1, 2, 3, 4]


def test_empty_files_are_not_shown_but_keep_their_number(tmp_path: Path) -> None:
    empty, full = stage(tmp_path / "staging", "part-a", 0), stage(tmp_path / "staging", "part-b", 1)
    log(tmp_path / "staging", "0", empty, full)
    assert publisher(tmp_path).publish() == Published(files=2, rows=1)
    assert given(tmp_path) == [("part-000001.parquet", 1)]


def test_rows_of_csv_files_as_spark_writes_them(tmp_path: Path) -> None:
    lines = [
        b"ts,v",
        b'1,"say ""hi"", ok"',
        b"2,back\\",
        b'3,"q,b\\"',
        b'4,"nl\nx"',
        b'5,"""\\""\n"',
        b'6,""',
        b"7,",
        b'8,"cr\r\nx"',
    ]
    (tmp_path / "rows.csv").write_bytes(b"\n".join(lines) + b"\n")
    assert count_rows(tmp_path / "rows.csv", SinkKind.CSV) == 8
    (tmp_path / "header.csv").write_bytes(b"ts,v\n")
    assert count_rows(tmp_path / "header.csv", SinkKind.CSV) == 0
    (tmp_path / "empty.csv").write_bytes(b"")
    assert count_rows(tmp_path / "empty.csv", SinkKind.CSV) == 0
