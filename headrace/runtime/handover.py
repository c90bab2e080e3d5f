"""Hands what a job has kept from one site to another: its folder, with checkpoint, staged output and ledgers.

Sites that share storage hand over by reference: nothing is moved, and what is there is checked. Otherwise the
folder is copied whole beside its place, every file is compared by its hash, and the copy is renamed: there is
never a part of a checkpoint under a name that somebody would start from. Spark writes the full paths of the
schemas of its state into the checkpoint; in the copy they are those of the copy.

Position: what is known of a folder, and must still be true after the hand-over. It may have come further
since, if the job was started and stopped in between; it can never have gone back.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import EngineError
from headrace.runtime.copies import difference
from headrace.runtime.files import sync_folder, write_whole
from headrace.runtime.spark.checkpoint import last_committed
from headrace.runtime.storage import StorageSilent, kept_in

_TRIES, _QUIET_SECONDS = 5, 0.5


@dataclass(frozen=True, slots=True)
class Position:
    """`fingerprint` of the plan that the checkpoint belongs to, empty where there is none yet; the newest
    committed batch, -1 where there is none."""

    fingerprint: str
    batch: int


def position_of(state: Path) -> Position:
    """Of a job's folder."""
    try:
        plan = str(json.loads((state / "job.json").read_text(encoding="utf-8"))["plan"])
    except FileNotFoundError:
        plan = ""
    return Position(plan, last_committed(kept_in(state)))


def hand_over(source: Path, target: Path, at: Position) -> None:
    """Make the target's folder what the source's is. Nothing may run on either. Raises EngineError where what
    is found is not what was left. May be called again after a crash."""
    check(source, at)
    if not _same(source, target) and source.is_dir():
        _copy(source, target)
        check(target, at)


def check(state: Path, at: Position) -> None:
    """Raises EngineError where a folder is not as it was left, or is behind."""
    found = position_of(state)
    if found.fingerprint != at.fingerprint and at.batch >= 0:
        raise EngineError(
            f"the checkpoint in {state} belongs to another plan",
            detail=f"Expected {at.fingerprint}, found {found.fingerprint or 'none'}.",
        )
    if found.batch < at.batch:
        raise EngineError(
            f"the checkpoint in {state} is not the one that was left",
            detail=f"Batch {at.batch} was committed; the newest one here is {found.batch}.",
            hint="A site must see the project folder under the same path, and its storage must keep files.",
        )


def _same(one: Path, other: Path) -> bool:
    return one == other or (one.exists() and other.exists() and one.samefile(other))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    staged, replaced = (target.with_name(f".{word}-{target.name}") for word in ("arriving", "replaced"))
    for _ in range(_TRIES):
        wrong = difference(source, staged)
        if not wrong:
            break
        # Tasks of the batch that was interrupted end a moment after the query; they leave and remove files.
        time.sleep(_QUIET_SECONDS)
    else:
        raise EngineError(f"{source} was not copied whole to {staged}", detail=f"Differs: {wrong}")
    _rename_schemas(staged, source, target)
    shutil.rmtree(replaced, ignore_errors=True)
    if target.exists():
        target.rename(replaced)
    staged.rename(target)
    sync_folder(target.parent)
    shutil.rmtree(replaced, ignore_errors=True)


def _rename_schemas(staged: Path, source: Path, target: Path) -> None:
    """Let the metadata of operators name the schema files of the folder they are going to be in."""
    before, after = (json.dumps(f"{state / 'checkpoint'}/")[1:-1] for state in (source, target))
    for path in (staged / "checkpoint" / "state").glob("*/_metadata/**/*"):
        if not path.is_file() or path.suffix == ".crc":
            continue
        text = path.read_text(encoding="utf-8")
        if before in text:
            write_whole(path, text.replace(before, after))
            # Of what was there before; Spark does without.
            path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def retire(state: Path, home: Path) -> None:
    """Let nobody start from a folder that was handed over to another one. The output that is staged in it
    stays: what of it was committed and not yet published is named by its full path."""
    checkpoint = state / "checkpoint"
    if not _same(state, home) and checkpoint.is_dir():
        gone = state / "checkpoint.handed-over"
        shutil.rmtree(gone, ignore_errors=True)
        checkpoint.rename(gone)
        sync_folder(state)


def pause_after(state: Path, batch: int) -> float | None:
    """Seconds between the commit of a batch and of the next one, by the clock of the storage; None: one of
    them is not there (any more)."""
    try:
        commits = kept_in(state) / "commits"
        return (commits / str(batch + 1)).stat().st_mtime - (commits / str(batch)).stat().st_mtime
    except (FileNotFoundError, StorageSilent):
        return None
