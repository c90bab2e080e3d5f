"""When streams may be closed with the last batch. A wrong yes loses rows, so every doubt means no."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.catalog.model import FileSource, Format, Stream
from headrace.plan.types import DataType
from headrace.runtime.spark.closing import Closing
from headrace.runtime.spark.sources import belongs, file_source, input_files
from tests.unit.runtime.spark.test_checkpoint import offsets


def stream(path: str, most: int | None = 1) -> Stream:
    source = FileSource(path=path, format=Format.JSON, files_per_batch=most)
    return Stream(name="s", columns={"ts": DataType.TIMESTAMP}, time="ts", source=source)


def closing(root: Path, path: str = "in", most: int | None = 1) -> Closing:
    (root / "state").mkdir(parents=True, exist_ok=True)
    return Closing({"s": stream(path, most)}, state=root / "state", root=root, generated=root / "data")


def bounded(root: Path, most_bytes: int) -> Closing:
    (root / "state").mkdir(parents=True, exist_ok=True)
    streams = {"s": stream("in", None)}
    return Closing(streams, state=root / "state", root=root, generated=root / "data", most_bytes=most_bytes)


def put(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("{}")


def read(root: Path, position: int, *names: str, planned: bool = True) -> None:
    """Spark has taken these files."""
    folder = root / "state" / "checkpoint" / "sources" / "0"
    folder.mkdir(parents=True, exist_ok=True)
    entries = [{"path": (root / n).as_uri(), "timestamp": 1, "batchId": position} for n in names]
    (folder / str(position)).write_text("\n".join(["v1", *map(json.dumps, entries)]))
    if planned:
        offsets(root / "state" / "checkpoint", position, 0, position)


def listed(root: Path) -> list[str]:
    return [Path(p).name for p in json.loads((root / "state" / "closing.json").read_text())]


def test_closed_with_the_last_file_and_not_before(tmp_path: Path) -> None:
    put(tmp_path, "in/a", "in/b")
    job = closing(tmp_path)
    assert not job.one_batch_left()
    read(tmp_path, 0, "in/a")
    assert job.one_batch_left()


def test_closed_with_the_last_bytes_and_not_before(tmp_path: Path) -> None:
    """Each file has two bytes. A file alone is a batch, however large it is."""
    put(tmp_path, "in/a", "in/b", "in/c")
    job, small = bounded(tmp_path, 4), bounded(tmp_path, 1)
    assert not job.one_batch_left()
    read(tmp_path, 0, "in/a")
    assert job.one_batch_left()
    assert not small.one_batch_left()
    read(tmp_path, 1, "in/b")
    assert small.one_batch_left()


def test_not_where_bytes_are_limited_and_spark_may_list_other_files(tmp_path: Path) -> None:
    put(tmp_path, "in/day=1/a")
    assert not bounded(tmp_path, 4).one_batch_left()


def test_not_while_spark_plans_a_batch(tmp_path: Path) -> None:
    """The batch has `a` and may yet take the mark: `b` would come behind it."""
    put(tmp_path, "in/a", "in/b")
    job = closing(tmp_path)
    read(tmp_path, 0, "in/a", planned=False)
    assert not job.one_batch_left()


def test_not_when_a_file_came_since_the_start(tmp_path: Path) -> None:
    """Spark goes on with the list of files it made before."""
    put(tmp_path, "in/a", "in/b")
    job = closing(tmp_path, most=2)
    put(tmp_path, "in/c")
    read(tmp_path, 0, "in/a", "in/b")
    assert not job.one_batch_left()
    job.close()
    assert listed(tmp_path) == ["a", "b"]
    assert [p.name for p in job.newcomers()] == ["c"]


@pytest.mark.parametrize("path", ["in/*", "{in,on}", "i?", "s3a://bucket/in", "parts", "in/a"])
def test_not_where_spark_may_list_other_files_than_we_do(tmp_path: Path, path: str) -> None:
    put(tmp_path, "in/a", "parts/day=1/a", "parts/day=2/b")
    assert not closing(tmp_path, path).one_batch_left()
    assert closing(tmp_path, path, most=None).one_batch_left()


def test_two_links_to_one_file_are_two_files(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere")
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "in" / name).symlink_to(tmp_path / "elsewhere")
    job = closing(tmp_path)
    read(tmp_path, 0, "in/a")
    assert not job.one_batch_left()


def test_each_process_writes_one_mark(tmp_path: Path) -> None:
    """The mark of the process before may have been spent in vain."""
    put(tmp_path, "in/a")
    for process in range(2):
        job = closing(tmp_path)
        assert not job.done
        job.close()
        job.close()
        assert job.done
        assert len(list(job.marks("s").glob("*.parquet"))) == process + 1


def test_files_of_patterns_and_partitions(tmp_path: Path) -> None:
    put(tmp_path, "in/a1", "in/b2", "in/_hidden", "in/sub/x", "on/c1", "parts/day=1/d", "parts/_x=1/e")

    def names(path: str) -> list[str]:
        source = file_source(stream(path), tmp_path, tmp_path / "data")
        assert source is not None
        found = input_files(source)
        assert all(belongs(p, source) for p in found)
        assert not belongs(tmp_path / "other" / "a1", source)
        return [p.name for p in found]

    assert names("in") == names("./on/../in") == names(f"file://{tmp_path}/in") == ["a1", "b2"]
    assert names("{in,on}") == names("?n") == ["a1", "b2", "c1"]
    assert names("in/[^a]*") == ["b2", "x"]
    assert names("{in,on}/*1") == ["a1", "c1"]
    assert names("parts") == ["d"]
    assert names("nowhere") == []
