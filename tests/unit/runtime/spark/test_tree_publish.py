"""Results of a tree reach each member's folder once, whatever was interrupted."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.catalog.model import SinkKind
from headrace.plan.types import Column, DataType, Schema
from headrace.runtime.results import read_results
from headrace.runtime.spark import tree_publish
from headrace.runtime.spark.bucket_state import LATE, RESULTS, to_blob
from headrace.runtime.spark.tree_publish import Reader, TreePublisher

SCHEMA = Schema([Column("x", DataType.BIGINT)])


def blob(*values: int) -> bytes:
    return to_blob(pa.table({"x": pa.array(values, pa.int64())}))


class Staging:
    """Spark's file sink, as far as its log goes."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "staging"
        (self.folder / "_spark_metadata").mkdir(parents=True)
        self.batch = -1

    def commit(self, *files: list[tuple[int, str, int, int, bytes]]) -> None:
        """A batch of files, each with rows (watermark, query, kind, rows, data)."""
        self.batch += 1
        lines = ["v1"]
        for number, rows in enumerate(files):
            path = self.folder / f"{self.batch}-{number}.parquet"
            names = ["watermark", "query", "kind", "rows", "data"]
            pq.write_table(pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]), path)
            lines.append(json.dumps({"path": path.as_uri()}))
        (self.folder / "_spark_metadata" / str(self.batch)).write_text("\n".join(lines))


def reader(root: Path, name: str, kind: SinkKind = SinkKind.PARQUET) -> Reader:
    return Reader(name, lambda rows: rows, SCHEMA, kind, root / "results" / name, True)


def values(root: Path, name: str, kind: SinkKind = SinkKind.PARQUET) -> list[int]:
    found = read_results(root / "results" / name, kind, SCHEMA)["x"].to_pylist()
    assert all(isinstance(value, int) for value in found)
    return sorted(found)


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return Staging(tmp_path)


def test_each_member_gets_its_own_rows(tmp_path: Path, staging: Staging) -> None:
    readers = {"a@2": reader(tmp_path, "a"), "b": reader(tmp_path, "b", SinkKind.JSON)}
    publisher = TreePublisher(staging.folder, tmp_path, readers)
    staging.commit(
        [(5, "a@2", RESULTS, 2, blob(1, 2)), (5, "b", RESULTS, 1, blob(7)), (5, "a", RESULTS, 1, blob(9))],
        [(5, "a@2", RESULTS, 1, blob(3)), (5, "b", LATE, 4, b"")],
    )
    publisher.publish()
    assert values(tmp_path, "a") == [1, 2, 3] and values(tmp_path, "b", SinkKind.JSON) == [7]
    assert publisher.done.rows == {"a@2": 3, "b": 1} and publisher.done.late == {"b": 4}
    assert not list(staging.folder.glob("*.parquet"))


def test_rows_of_one_batch_are_finished_together(tmp_path: Path, staging: Staging) -> None:
    """An aggregate above the window must see all buckets of a batch, and no other batch."""
    seen: list[list[int]] = []

    def finish(rows: pa.Table) -> pa.Table:
        seen.append(sorted(rows["x"].to_pylist()))
        return rows

    one = Reader("a", finish, SCHEMA, SinkKind.PARQUET, tmp_path / "results" / "a", True)
    publisher = TreePublisher(staging.folder, tmp_path, {"a": one})
    staging.commit([(5, "a", RESULTS, 1, blob(1))], [(5, "a", RESULTS, 1, blob(2))])
    staging.commit([(8, "a", RESULTS, 1, blob(3))], [(8, "a", RESULTS, 1, blob(4))])
    publisher.publish()
    assert seen == [[1, 2], [3, 4]]


@pytest.mark.parametrize("moment", ["write_json", "sync_folder", "write_part"])
def test_a_crash_at_any_moment_loses_and_repeats_nothing(
    tmp_path: Path, staging: Staging, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = {"a": reader(tmp_path, "a")}
    publisher = TreePublisher(staging.folder, tmp_path, readers)
    staging.commit([(5, "a", RESULTS, 1, blob(1))])
    publisher.publish()
    staging.commit([(6, "a", RESULTS, 1, blob(2))], [(6, "a", LATE, 3, b"")])
    with monkeypatch.context() as patch, pytest.raises(OSError, match="died"):
        patch.setattr(tree_publish, moment, _die)
        publisher.publish()
    again = TreePublisher(staging.folder, tmp_path, readers)
    staging.commit([(7, "a", RESULTS, 1, blob(3))])
    again.publish()
    assert values(tmp_path, "a") == [1, 2, 3]
    assert again.done.rows == {"a": 3} and again.done.late == {"a": 3}


def _die(*_: object) -> None:
    raise OSError("died")


def test_a_crash_before_the_staged_files_are_removed(
    tmp_path: Path, staging: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = {"a": reader(tmp_path, "a")}
    publisher = TreePublisher(staging.folder, tmp_path, readers)
    staging.commit([(5, "a", RESULTS, 1, blob(1))])
    with monkeypatch.context() as patch, pytest.raises(OSError, match="died"):
        patch.setattr(TreePublisher, "_remove", _die)
        publisher.publish()
    TreePublisher(staging.folder, tmp_path, readers).publish()
    assert values(tmp_path, "a") == [1]
    assert not list(staging.folder.glob("*.parquet"))


def test_times_are_written_as_the_instants_they_are(tmp_path: Path) -> None:
    """As Spark's own sinks do, and exactly, however far they are."""
    schema = Schema([Column("t", DataType.TIMESTAMP)])
    far = [-62135596800000000, 253402214400000001, None]
    rows = pa.table({"t": pa.array(far, pa.timestamp("us"))})
    one = Reader("q", lambda rows: rows, schema, SinkKind.PARQUET, tmp_path, True)
    tree_publish.write_part(one, rows, "part-0")
    assert pq.read_schema(tmp_path / "part-0.parquet").field("t").type == pa.timestamp("us", "UTC")
    assert read_results(tmp_path, SinkKind.PARQUET, schema).equals(rows)
