"""What a federated job has on disk, so that a kill at any moment loses nothing and gives nothing twice.

    kept/NAME/BATCH_NEWEST.arrow   rows taken in by a batch that windows still need, and their newest time;
                                   rows that are far from each other are in several files
    given/BATCH_QUERY.arrow        results of a batch that were not published yet
    done.json                      the newest batch that is complete, its watermark, and counts
    epoch.json                     how often the job was started; only the last start may write
    failed.json                    what stopped the last start, in our words rather than Spark's
    until.json                     the last window ends of members that hand over to another job

A batch writes its rows and results, makes them durable, and only then done.json. Spark runs a batch again
that it has not committed: if done.json has it, nothing is left to do; if not, the same rows come again and
the same files are written. What is kept on disk is what the window tables in memory are made of after a
restart.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa

from headrace.runtime.files import sync_folder, write_json


@dataclass(slots=True)
class Done:
    """What is complete. `given` is the watermark up to which windows were given, in microseconds."""

    batch: int = -1
    given: int = 0
    seen: int | None = None
    """The newest event time taken in."""
    rows: dict[str, int] = field(default_factory=dict)
    """Results of each member since its first start."""
    late: dict[str, int] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    """Rows of each relation that was counted (`program.counted`), since the first start."""
    kept: int = 0
    """Rows in the window tables."""
    held: int = 0
    """Bytes that DuckDB holds."""


class Ledger:
    def __init__(self, folder: Path, start: int = 0) -> None:
        """`start`: the watermark before the first batch; Spark's is the epoch."""
        self.folder, self._start = folder, start

    def make(self) -> None:
        for name in ("kept", "given"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While no batch is being done, in whatever process batches are done; waits for the end of one."""
        self.make()
        with (self.folder / "lock").open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """While nobody else publishes: a run that was given up with its site may still be about to end."""
        with (self.folder / "publishing").open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    # -- how far ------------------------------------------------------------------------------------

    def done(self) -> Done:
        path = self.folder / "done.json"
        if not path.exists():
            return Done(given=self._start)
        return Done(**json.loads(path.read_text(encoding="utf-8")))

    def write_done(self, done: Done) -> None:
        sync_folder(self.folder / "given")
        for folder in (self.folder / "kept").iterdir():
            sync_folder(folder)
        write_json(self.folder / "done.json", asdict(done))

    def epoch(self) -> int:
        path = self.folder / "epoch.json"
        return int(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else 0

    def begin_epoch(self) -> int:
        """A new start of the job: what is left of an earlier one, in a process that outlived it, writes no
        more."""
        self.make()
        (self.folder / "failed.json").unlink(missing_ok=True)
        write_json(self.folder / "epoch.json", self.epoch() + 1)
        return self.epoch()

    def fail(self, why: str) -> None:
        write_json(self.folder / "failed.json", why)

    def failure(self) -> str:
        """Why a batch of this start failed; empty: none did, or nobody could say."""
        path = self.folder / "failed.json"
        return str(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else ""

    def until(self) -> dict[str, int]:
        path = self.folder / "until.json"
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}

    def write_until(self, ends: Mapping[str, int]) -> None:
        self.make()
        write_json(self.folder / "until.json", dict(ends))

    # -- rows that windows still need ---------------------------------------------------------------

    def keep(self, name: str, batch: int, newest: int, rows: pa.Table) -> None:
        folder = self.folder / "kept" / name
        if not folder.is_dir():
            folder.mkdir()
            sync_folder(folder.parent)
        _write(folder / f"{batch}_{newest}.arrow", rows)

    def kept(self, name: str, upto: int) -> Iterator[pa.Table]:
        """What was kept up to a batch, in the order in which it came. Files of later batches are of a try
        that was not completed; they go, so that no other try is taken for them."""
        for batch, _, path in sorted(self._files(name)):
            if batch <= upto:
                yield _read(path)
            else:
                path.unlink()

    def evict(self, name: str, horizon: int) -> None:
        """Remove the files all of whose rows are older. Only after done.json says that they are not
        needed."""
        for _, newest, path in self._files(name):
            if newest < horizon:
                path.unlink()

    def _files(self, name: str) -> list[tuple[int, int, Path]]:
        folder = self.folder / "kept" / name
        if not folder.is_dir():
            return []
        found = [(path.stem.split("_"), path) for path in folder.glob("*.arrow")]
        return [(int(batch), int(newest), path) for (batch, newest), path in found]

    # -- results ------------------------------------------------------------------------------------

    def give(self, query: str, batch: int, rows: pa.Table) -> None:
        _write(self.folder / "given" / f"{batch}_{query}.arrow", rows)

    def clear(self, after: int) -> None:
        """Remove results of batches after this one: of tries that were not completed, and that another try
        may not repeat, since the last window of a member may have been set in between."""
        for path in (self.folder / "given").glob("*.arrow"):
            if int(path.stem.split("_", 1)[0]) > after:
                path.unlink()

    def given(self, upto: int) -> list[tuple[int, str, Path]]:
        """Results that are complete, not published yet: batch, query and file, oldest first."""
        found = []
        for path in (self.folder / "given").glob("*.arrow"):
            batch, query = path.stem.split("_", 1)
            if int(batch) <= upto:
                found.append((int(batch), query, path))
        return sorted(found)


def _write(path: Path, rows: pa.Table) -> None:
    staged = path.with_name(f".{path.name}.tmp")
    with staged.open("wb") as out:
        with pa.ipc.new_file(out, rows.schema) as writer:
            writer.write_table(rows)
        out.flush()
        os.fsync(out.fileno())
    staged.replace(path)


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as source:
        return pa.ipc.open_file(source).read_all()


def read_given(path: Path) -> pa.Table:
    """The results in a file of `Ledger.given`."""
    return _read(path)
