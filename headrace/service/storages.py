"""Checkpoints of a project in the storage of its sites: where, whose they are, and what is left there.

A project has a folder of its own in each storage, marked with where the project is and with a word that only
it knows. A project that was copied, or another of the same path on another machine, is told so, and touches
nothing.
"""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from pathlib import Path
from threading import Lock

from headrace.catalog.model import Project
from headrace.errors import EngineError, UserError
from headrace.runtime.files import write_whole
from headrace.runtime.storage import MARKER, forget, keep_at, names_of, sweep, tidy
from headrace.service.layout import job_folder, jobs_folder, storage_folder

_WORD = "storage-word"
_FOLDER = re.compile(r"-[0-9a-f]{12}\Z")
_CLAIMING = Lock()
"""Moves are prepared by threads. No other process does this: it would need the lock of the project."""


def place_of(project: Project, job: str, site: str) -> Path | None:
    """Where the site has the checkpoint of a job; None: in the job's folder. The project's folder there is
    made. Raises EngineError where the storage is not there, UserError where the folder is another's."""
    storage = storage_folder(project, site)
    if storage is None:
        return None
    try:
        with _CLAIMING:
            _claim(storage, project.root.resolve(), site)
    except OSError as error:
        raise EngineError(f"the storage of site {site} cannot be used", detail=str(error)) from error
    return storage / job


def place_checkpoint(project: Project, job: str, site: str) -> None:
    """Before a job is started at a site: its checkpoint is where that site has it, be it by a copy. What a
    copy was made of is removed."""
    state, place = job_folder(project, job), place_of(project, job, site)
    before = names_of(state)
    if place is None and before and not any(map(_is_ours, before)):
        return  # Somebody has laid it there by hand, as one could before there were storages.
    for one in before:
        _check_own(one.parent, project.root.resolve(), job)
    keep_at(state, place)
    tidy(state, [None, *before])


def sweep_storages(project: Project) -> None:
    """For whoever holds the lock, before anything is started."""
    for storage in {storage_folder(project, site) for site in project.sites} - {None}:
        if storage is not None and _is_own(storage, project.root.resolve()):
            with suppress(OSError):
                sweep(storage, jobs_folder(project))


def forget_kept(state: Path, root: Path) -> None:
    """A job's folder, or its grave, is about to be removed: so is what it has in a storage, if it is there,
    and ours."""
    forget(state, [place.parent for place in names_of(state) if _is_own(place.parent, root)])


def _is_ours(place: Path) -> bool:
    """Whether it is called as checkpoints in a storage are (layout.py): the storage itself may be away."""
    return _FOLDER.search(place.parent.name) is not None


def _word(root: Path) -> str:
    path = root / ".headrace" / _WORD
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"{uuid.uuid4()}\n")
    return path.read_text(encoding="ascii").strip()


def _text(root: Path) -> str:
    return f"{root}\n{_word(root)}\n"


def _claim(storage: Path, root: Path, site: str) -> None:
    if not storage.parent.is_dir():
        raise EngineError(
            f"the storage {storage.parent} of site {site} is not there",
            hint="Make the folder, or mount it. It must be seen under this path by the site and from here.",
        )
    storage.mkdir(exist_ok=True)
    # Killed while the marker was written, only a part of it is there.
    if not {one.name for one in storage.iterdir()} - {f".{MARKER}.tmp"}:
        write_whole(storage / MARKER, f"{_text(root)}{uuid.uuid4()}\n")
    elif not _is_own(storage, root):
        raise UserError(
            f"{storage} belongs to another project",
            hint="Give the site another storage; or, if no other project uses that folder, remove it.",
        )


def _is_own(storage: Path, root: Path) -> bool:
    try:
        return (storage / MARKER).read_text(encoding="utf-8").startswith(_text(root))
    except OSError:
        return False


def _check_own(storage: Path, root: Path, job: str) -> None:
    """A project that was copied has links to the checkpoints of the one it is a copy of."""
    if (storage / MARKER).exists() and not _is_own(storage, root):
        raise UserError(
            f"the checkpoint of {job} is in {storage}, which belongs to another project",
            detail="This project was moved or copied from where that one is.",
            hint="Use --fresh to start over here.",
        )
