"""Makes committed output visible, exactly once, to any reader.

Spark's file sink is exactly once only for readers that honour its log: after a crash the folder also holds
files of a batch that was never committed, and a plain reader would count their rows twice. So Spark writes
into the job's own staging folder, and what its log says is committed is linked into the results folder
under a number that is the same on every try. `published.json` remembers how far we are: a file that the
reader has taken away is not given again.

The log's entries are only ever appended (compaction keeps their order), so a position identifies a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq

from headrace.catalog.model import SinkKind
from headrace.errors import EngineError
from headrace.runtime.files import link_or_copy, sync_folder, write_json

_QUOTED = re.compile(rb'"[^"]*"')
"""A quoted field, or one of its parts: a quote in it is two. A field with a quote is always quoted."""
MARKER = ".headrace"
"""A file in every results folder that Headrace made: only such a folder may be cleared."""


@dataclass(frozen=True, slots=True)
class Published:
    files: int = 0
    rows: int = 0


def file_format(kind: SinkKind) -> str:
    """The format of staged files; console and memory sinks stage Parquet."""
    return kind.value if kind in (SinkKind.JSON, SinkKind.CSV) else SinkKind.PARQUET.value


def writer_options(kind: SinkKind) -> dict[str, str]:
    """Text formats as Spark writes them by default lose microseconds, and CSV the spaces around strings; and
    by default its CSV has quotes behind backslashes, which only Spark reads."""
    exact = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
    match kind:
        case SinkKind.JSON:
            return exact
        case SinkKind.CSV:
            trims = {"ignoreLeadingWhiteSpace": "false", "ignoreTrailingWhiteSpace": "false"}
            return {"header": "true", "escape": '"', **trims, **exact}
        case _:
            return {}


def _local(path: str) -> Path:
    parsed = urlsplit(path)
    if parsed.scheme not in ("", "file"):
        raise EngineError(f"output of a {parsed.scheme}:// path cannot be published from here")
    return Path(unquote(parsed.path))


def _entries(staging: Path) -> dict[int, Path]:
    """The entries of the sink's log by batch; a compacted one for a plain one of the same batch."""
    log = staging / "_spark_metadata"
    if not log.is_dir():
        return {}
    return {int(p.name.split(".")[0]): p for p in sorted(log.iterdir()) if p.name[0].isdigit()}


def last_logged(staging: Path) -> int:
    """The newest batch in the sink's log; -1: none."""
    return max(_entries(staging), default=-1)


def committed(staging: Path) -> list[Path]:
    """Every committed file, in order of commit."""
    batches = _entries(staging)
    compact = max((n for n, p in batches.items() if p.suffix == ".compact"), default=-1)
    files: list[Path] = []
    for number in sorted(n for n in batches if n >= compact):
        lines = batches[number].read_text(encoding="utf-8").splitlines()[1:]
        files += [_local(json.loads(line)["path"]) for line in lines if line]
    return files


def count_rows(path: Path, kind: SinkKind) -> int:
    match file_format(kind):
        case "parquet":
            return int(pq.read_metadata(path).num_rows)
        case "json":
            return path.read_bytes().count(b"\n")
        case _:
            # Line ends outside quotes, less the header's; a file without rows may have no header either.
            return max(_QUOTED.sub(b"", path.read_bytes()).count(b"\n") - 1, 0)


class Publisher:
    """Links newly committed files of one job into its results folder."""

    def __init__(
        self,
        staging: Path,
        results: Path | None,
        state: Path,
        kind: SinkKind,
        on_file: Callable[[Path], None] | None = None,
    ) -> None:
        self._staging, self._results, self._kind = staging, results, kind
        self._ledger = state / "published.json"
        self._on_file = on_file
        self._logged = -1
        """The newest batch in the sink's log when it was last read whole."""
        self.done = self._load()
        if results is not None:
            results.mkdir(parents=True, exist_ok=True)
            (results / MARKER).touch()

    def _load(self) -> Published:
        if not self._ledger.exists():
            return Published()
        data = json.loads(self._ledger.read_text(encoding="utf-8"))
        return Published(int(data["files"]), int(data["rows"]))

    def publish(self) -> Published:
        """Publish what was committed since the last call."""
        logged = last_logged(self._staging)
        if logged == self._logged:
            return self.done
        fresh = committed(self._staging)[self.done.files :]
        files, rows = self.done.files, self.done.rows
        for path in fresh:
            count = count_rows(path, self._kind)
            if count:
                self._give(path, files)
            files, rows = files + 1, rows + count
        if fresh and self._results is not None:
            sync_folder(self._results)
        if fresh:
            # First: what is taken for given may be removed from where it was staged.
            write_json(self._ledger, {"files": files, "rows": rows})
        self.done, self._logged = Published(files, rows), logged
        return self.done

    def _give(self, path: Path, number: int) -> None:
        if self._results is not None:
            link_or_copy(path, self._results / f"part-{number:06d}.{file_format(self._kind)}")
        if self._on_file is not None:
            self._on_file(path)
