"""Where a job keeps its checkpoint: in its own folder, or in the storage of its site, with a link to it.

    <state>/checkpoint              the checkpoint, or a link to <storage>/<project>/<job>
    .../.leaving-<name>             beside it: the same, taken out of use while it is copied to another place
    .../.arriving-<name>            a copy that may not be whole
    <state>/checkpoint.coming       a copy that is whole, or a link to one, for `checkpoint`

The name in the job's folder says which checkpoint is the job's, and there is one such name; so whatever else
is left in a storage, nobody starts from it. `keep_at` leads from any place to any other. Killed at any step
and called again, it goes on from what it finds:

    `checkpoint.coming` is there   that copy is whole and on disk: it is put in place
    `.leaving-` is there           that is the job's; a copy of it was not whole, and is made anew
    otherwise                      the job's is what `checkpoint` names

What is copied is renamed first. A site that was taken for dead, and is only cut off, writes under the old
name, and finds nothing there: what it commits from then on can be in no copy, and would be lost to the job.

Spark writes full paths into its checkpoints. They are those of the name in the job's folder, so that a copy
needs no change.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from headrace.errors import EngineError
from headrace.runtime.copies import difference
from headrace.runtime.files import sync_folder

CHECKPOINT = "checkpoint"
MARKER = "headrace-project"
"""In a project's folder of a storage: whose it is, and which storage this is. One that is mounted twice, or
has a link to it, has two paths and one marker."""
_COMING = "checkpoint.coming"
_LEAVING, _ARRIVING = ".leaving-", ".arriving-"
_TRIES, _QUIET_SECONDS = 5, 0.5

Step = Callable[[str], None]
"""Called before each step that changes something on disk; tests are killed there."""


class StorageSilent(EngineError):
    """What a job has kept cannot be read now, so that it can be started nowhere."""

    kind = "checkpoint not readable"


def kept_in(state: Path) -> Path:
    """The folder that has the job's checkpoint; nothing may be there yet. Raises StorageSilent where it is
    known to be somewhere that cannot be read."""
    coming, here = state / _COMING, state / CHECKPOINT
    if os.path.lexists(coming):
        return _readable(named(coming), state)
    if not os.path.lexists(here) and not _leaving(here).is_dir():
        return here
    return _source(named(here), state)


def names_of(state: Path) -> list[Path]:
    """Where the job's checkpoint is, by links: one, none, or two while a copy takes its place."""
    return [named(one) for one in (state / CHECKPOINT, state / _COMING) if one.is_symlink()]


def named(path: Path) -> Path:
    """The folder that a name stands for, which need not be there."""
    return path.parent / path.readlink() if path.is_symlink() else path


def keep_at(state: Path, place: Path | None, step: Step = lambda _: None) -> bool:
    """Have the checkpoint at a place of a storage, or, None, in the job's folder; whether it was copied, so
    that there is something to `tidy`. Nothing may run on it. May be called again after a crash. Raises
    StorageSilent where it cannot be read, and EngineError where the place cannot take it."""
    here = state / CHECKPOINT
    with _told(state, place):
        _finish(state, step)
        at, home = named(here), here if place is None else place
        if not os.path.lexists(here) and not _leaving(here).is_dir():
            _begin(state, place, step)
            return False
    if _same(at, home):
        with _told(state, place):
            _restore(at, state, step)
        return False
    source = _source(at, state)
    with _told(state, place):
        if not home.parent.is_dir():
            raise FileNotFoundError(f"there is no folder {home.parent}")
        if source == at:
            step("leave")
            at.rename(_leaving(at))
            sync_folder(at.parent)
        _bring(_leaving(at), state, place, step)
        _finish(state, step)
    return True


def _begin(state: Path, place: Path | None, step: Step) -> None:
    """Nothing is kept yet."""
    if place is None:
        return
    step("begin")
    _remove(place, _leaving(place), _arriving(place))
    place.mkdir()
    sync_folder(place.parent)
    state.mkdir(parents=True, exist_ok=True)
    step("link")
    (state / CHECKPOINT).symlink_to(place)
    sync_folder(state)


def _restore(at: Path, state: Path, step: Step) -> None:
    """It stays, be it that it was about to leave. What is under its name then was made by nobody who may."""
    leaving = _leaving(at)
    if leaving.is_dir():
        step("stay")
        _remove(at)
        leaving.rename(at)
        sync_folder(at.parent)
    elif not at.is_dir():
        raise _silent(at, state)


def _bring(source: Path, state: Path, place: Path | None, step: Step) -> None:
    """A whole copy at the place, on disk, and then a name for it that says so."""
    coming = state / _COMING
    home = coming if place is None else place
    arriving = _arriving(state / CHECKPOINT if place is None else place)
    step("copy")
    _remove(arriving, home, _leaving(state / CHECKPOINT if place is None else place))
    _copy(source, arriving)
    step("arrive")
    arriving.rename(home)
    sync_folder(home.parent)
    if place is not None:
        step("name")
        coming.symlink_to(place)
        sync_folder(state)


def _copy(source: Path, arriving: Path) -> None:
    """Every file has the size and the hash that it has in the source. Tasks of a batch that was interrupted
    end a moment after their query, and leave and remove files."""
    wrong, whole = "", False
    try:
        for _ in range(_TRIES):
            wrong = difference(source, arriving)
            whole = not wrong
            if whole:
                return
            time.sleep(_QUIET_SECONDS)
    finally:
        if not whole:  # Half a copy would keep a storage full that others write to.
            shutil.rmtree(arriving, ignore_errors=True)
    raise EngineError(f"{source} was not copied whole to {arriving}", detail=f"Differs: {wrong}")


def _finish(state: Path, step: Step) -> None:
    """A copy that is whole takes the place of what it is a copy of."""
    coming, here = state / _COMING, state / CHECKPOINT
    if not os.path.lexists(coming):
        return
    step("put away")
    if here.is_symlink():
        here.unlink()
    else:
        _remove(here)
    step("put in place")
    coming.rename(here)
    sync_folder(state)


def tidy(state: Path, places: Iterable[Path | None]) -> None:
    """Remove what a job that runs again has left at these places. What cannot be removed now is removed by
    a later `sweep`: nobody starts from it."""
    here = state / CHECKPOINT
    if not _is_dir(here):
        return
    for place in places:
        old = here if place is None else place
        mine = old == here or _may_be_same(old, named(here))
        with suppress(OSError):
            _remove(_leaving(old), _arriving(old), *(() if mine else (old,)))


def sweep(storage: Path, jobs: Path) -> None:
    """Remove from the project's folder in a storage what no job of the project names: left by a process that
    was killed, or of a job that was removed while the storage was out of reach."""
    for entry in sorted(storage.iterdir()) if _is_dir(storage) else ():
        if not _is_dir(entry):
            continue
        name = entry.name.removeprefix(_LEAVING).removeprefix(_ARRIVING)
        state, place = jobs / name, storage / name
        used = [named(one) for one in (state / CHECKPOINT, state / _COMING) if os.path.lexists(one)]
        if entry.name.startswith(_ARRIVING) or not any(_may_be_same(place, one) for one in used):
            with suppress(OSError):
                _remove(entry)


def forget(state: Path, storages: Collection[Path]) -> None:
    """Remove what a job that is no more has in one of these storages."""
    for place in names_of(state):
        if place.parent in storages:
            with suppress(OSError):
                _remove(place, _leaving(place), _arriving(place))


def _same(one: Path, other: Path) -> bool:
    """Whether two paths name one folder, which need not be there yet, also by links and second mounts."""
    if one == other:
        return True
    try:
        return one.name == other.name and (
            one.parent.samefile(other.parent) or _marker(one.parent) == _marker(other.parent)
        )
    except OSError:
        return False


def _may_be_same(one: Path, other: Path) -> bool:
    """Also where one of them cannot be looked at: nothing is removed on a guess."""
    return _same(one, other) or (one.name == other.name and not _is_dir(other.parent))


def _marker(storage: Path) -> str:
    return (storage / MARKER).read_text(encoding="utf-8")


def _leaving(path: Path) -> Path:
    return path.with_name(f"{_LEAVING}{path.name}")


def _arriving(path: Path) -> Path:
    return path.with_name(f"{_ARRIVING}{path.name}")


def _source(at: Path, state: Path) -> Path:
    try:
        return next(one for one in (_leaving(at), at) if _is_dir(one))
    except StopIteration:
        raise _silent(at, state) from None


def _readable(folder: Path, state: Path) -> Path:
    if not _is_dir(folder):
        raise _silent(folder, state)
    return folder


def _is_dir(path: Path) -> bool:
    """A mount that is dead raises what is none of our errors."""
    try:
        return path.is_dir()
    except OSError:
        return False


def _silent(at: Path, state: Path) -> StorageSilent:
    return StorageSilent(
        f"the checkpoint of {state.name} is in {at}, which cannot be read here",
        detail="It is not started over: what it has kept would be lost, and results would be given twice.",
        hint="Make that storage readable again. If it is lost for good: headrace run --fresh starts over.",
    )


def _remove(*folders: Path) -> None:
    for folder in folders:
        if folder.is_dir():
            shutil.rmtree(folder)


@contextmanager
def _told(state: Path, place: Path | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = state / CHECKPOINT if place is None else place
        raise EngineError(f"{where} cannot take the checkpoint of {state.name}", detail=str(error)) from error
