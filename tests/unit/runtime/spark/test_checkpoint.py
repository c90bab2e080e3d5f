"""Reading a checkpoint: hand-written logs in the form Spark writes them."""

from __future__ import annotations

import json
from pathlib import Path

from headrace.runtime.spark.checkpoint import batch_files, is_planned, last_committed, read_batch, seen_files


def offsets(checkpoint: Path, batch: int, watermark_ms: int, *sources: int | None) -> None:
    folder = checkpoint / "offsets"
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["-" if s is None else json.dumps({"logOffset": s}) for s in sources]
    head = json.dumps({"batchWatermarkMs": watermark_ms, "batchTimestampMs": 1, "conf": {}})
    (folder / str(batch)).write_text("\n".join(["v1", head, *lines]))


def took(checkpoint: Path, source: int, name: str, **files: int) -> None:
    folder = checkpoint / "sources" / str(source)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({"path": f"file:///data/{f.replace('_', '%20')}", "timestamp": 1, "batchId": n})
        for f, n in files.items()
    ]
    (folder / name).write_text("\n".join(["v1", *lines]))


def test_a_batch_knows_its_watermark_and_files(tmp_path: Path) -> None:
    offsets(tmp_path, 0, 0, 0, None)
    offsets(tmp_path, 1, 5_000, 2, 0)
    offsets(tmp_path, 2, 9_000, 2, 0)
    took(tmp_path, 0, "0", a=0)
    took(tmp_path, 0, "2.compact", a=0, b_c=1, d=2)
    took(tmp_path, 1, "0", e=0)
    second = read_batch(tmp_path, 1)
    assert second is not None
    assert second.watermark == 5_000_000
    assert batch_files(tmp_path, 0) == [Path("/data/a")]
    assert batch_files(tmp_path, 1) == [Path("/data/b c"), Path("/data/d"), Path("/data/e")]
    assert batch_files(tmp_path, 2) == []
    assert seen_files(tmp_path) == {Path(f"/data/{n}") for n in ("a", "b c", "d", "e")}


def test_an_empty_checkpoint_has_nothing(tmp_path: Path) -> None:
    assert read_batch(tmp_path, 0) is None
    assert batch_files(tmp_path, 0) == []
    assert seen_files(tmp_path) == set()
    assert last_committed(tmp_path) == -1


def test_the_newest_commit_counts(tmp_path: Path) -> None:
    (tmp_path / "commits").mkdir()
    for name in ("0", "9", "10", ".10.crc"):
        (tmp_path / "commits" / name).write_text("v1")
    assert last_committed(tmp_path) == 10


def test_a_batch_in_planning_is_seen(tmp_path: Path) -> None:
    """Between the answers of its sources Spark has taken files that no planned batch covers."""
    assert is_planned(tmp_path)
    took(tmp_path, 0, "0", a=0)
    assert not is_planned(tmp_path)
    offsets(tmp_path, 0, 0, 0, None)
    assert is_planned(tmp_path)
    took(tmp_path, 1, "0", e=0)
    assert not is_planned(tmp_path)
    offsets(tmp_path, 1, 0, 0, 0)
    assert is_planned(tmp_path)
