"""Reads a Structured Streaming checkpoint: offsets and watermark of each batch, files of each source."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Batch:
    """One planned batch: its watermark in microseconds, and per source the last log entry it covers."""

    number: int
    watermark: int
    offsets: tuple[int | None, ...]


def _log_files(folder: Path) -> dict[int, Path]:
    if not folder.is_dir():
        return {}
    return {int(p.name.split(".")[0]): p for p in folder.iterdir() if p.name[0].isdigit()}


def read_batch(checkpoint: Path, number: int) -> Batch | None:
    """A planned batch, None when the log does not have it (any more)."""
    try:
        text = (checkpoint / "offsets" / str(number)).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    lines = text.splitlines()[1:]
    watermark = int(json.loads(lines[0])["batchWatermarkMs"]) * 1000
    return Batch(number, watermark, tuple(_offset(line) for line in lines[1:]))


def _offset(line: str) -> int | None:
    """The log position of a file source; None for no offset yet, or a source that is not files."""
    if line.strip() in ("-", ""):
        return None
    data = json.loads(line)
    return int(data["logOffset"]) if isinstance(data, dict) and "logOffset" in data else None


def next_watermark(checkpoint: Path) -> int | None:
    """The watermark after the newest committed batch, in microseconds; None when there is no such batch."""
    number = last_committed(checkpoint)
    if number < 0:
        return None
    lines = (checkpoint / "commits" / str(number)).read_text(encoding="utf-8").splitlines()
    return int(json.loads(lines[1])["nextBatchWatermarkMs"]) * 1000


def newest_planned(checkpoint: Path) -> Batch | None:
    """The newest batch that was planned, committed or not."""
    return read_batch(checkpoint, last_planned(checkpoint))


def last_planned(checkpoint: Path) -> int:
    """The newest batch that was planned, -1 when there is none."""
    return max(_log_files(checkpoint / "offsets"), default=-1)


def last_committed(checkpoint: Path) -> int:
    """The newest committed batch, -1 when there is none."""
    return max(_log_files(checkpoint / "commits"), default=-1)


def source_files(checkpoint: Path, source: int) -> dict[Path, int]:
    """Every file a source has taken, with its log position."""
    found: dict[Path, int] = {}
    for _, path in sorted(_log_files(checkpoint / "sources" / str(source)).items()):
        # Spark removes an entry that a compacted one holds too; it may do so while we read.
        with contextlib.suppress(FileNotFoundError):
            for line in path.read_text(encoding="utf-8").splitlines()[1:]:
                entry = json.loads(line)
                found[Path(unquote(urlsplit(entry["path"]).path))] = int(entry["batchId"])
    return found


def is_planned(checkpoint: Path) -> bool:
    """Whether a batch is planned over all that the sources have taken. False while Spark asks one source
    after the other what is new: some have answered, others have not."""
    taken = {
        source: max(source_files(checkpoint, source).values(), default=-1)
        for source in _log_files(checkpoint / "sources")
    }
    newest = newest_planned(checkpoint)
    offsets = newest.offsets if newest is not None else ()
    covered = {source: -1 if last is None else last for source, last in enumerate(offsets)}
    return all(last <= covered.get(source, -1) for source, last in taken.items())


def seen_files(checkpoint: Path) -> set[Path]:
    """Every file any source of the job has taken."""
    sources = _log_files(checkpoint / "sources")
    return {path for number in sources for path in source_files(checkpoint, number)}


def batch_files(checkpoint: Path, number: int) -> list[Path]:
    """The files that a batch read, over all its sources."""
    batch, before = read_batch(checkpoint, number), read_batch(checkpoint, number - 1)
    if batch is None:
        return []
    files: list[Path] = []
    for source, last in enumerate(batch.offsets):
        if last is None:
            continue
        earlier = before.offsets[source] if before is not None else None
        first = -1 if earlier is None else earlier
        taken = source_files(checkpoint, source)
        files += [path for path, position in taken.items() if first < position <= last]
    return sorted(set(files))
