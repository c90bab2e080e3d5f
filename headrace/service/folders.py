"""The folders a job writes: made, marked as ours, and removed by `--fresh`.

A results folder is only ever written or removed when Headrace made it, which a marker file in it says:
a sink path that by mistake names a folder of somebody's own files is refused, never cleared. The marker
also names the job, since a second job in the same folder would take the first one's files for its own.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from headrace.errors import UserError
from headrace.runtime.executor import JobContext
from headrace.runtime.results import published
from headrace.runtime.sites import REHEARSAL
from headrace.service.storages import forget_kept

MARKER = ".headrace"
_TEXT = "Made by Headrace. `headrace run --fresh` removes this folder and all that is in it.\n"


def check_results(folder: Path) -> None:
    """Raises UserError when the folder holds something that Headrace did not put there, or cannot be made or
    written."""
    # os.access: below a folder that may not be entered, Path.exists would raise instead of saying no.
    there = next(parent for parent in (folder, *folder.parents) if os.access(parent, os.F_OK))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "may not be written by this user" if there.is_dir() else "is not a folder"
        made = "written" if there == folder else "made"
        raise UserError(
            f"the results folder {folder} cannot be {made}: {there} {why}", hint="Give the sink another path."
        )
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise UserError(f"{folder} is not a folder", hint="Give the sink another path.")
    if folder.exists() and not (folder / MARKER).is_file() and any(folder.iterdir()):
        raise UserError(
            f"the results folder {folder} holds files that Headrace did not write",
            hint="Give the sink another path, or move those files away.",
        )


def check_owner(context: JobContext) -> None:
    """Raises UserError when another job writes its results here. A folder that was moved or copied to where
    it is now belongs to no other job."""
    marker = context.results / MARKER
    lines = marker.read_text(encoding="utf-8").splitlines()[1:] if marker.is_file() else []
    if len(lines) != 2:
        return
    folder, state = map(Path, lines)
    if folder == context.results and state != context.state and state.exists():
        raise UserError(
            f"the results folder {context.results} belongs to another job",
            detail=f"That job is kept in {state}.",
            hint="Give the sink another path. If you have renamed the query, remove the folder first.",
        )


def check_orphans(context: JobContext, *others: Path) -> None:
    """Raises UserError for results whose checkpoint is gone: new ones would be mixed with them. `others` are
    more folders that must be there, such as that of the query's tree."""
    if _grave(context).exists():
        return
    gone = [folder for folder in (context.state, *others) if not folder.exists()]
    if gone:
        check_unused(context, f"There is no folder {gone[0]}.")


def check_unused(
    context: JobContext, detail: str = "", hint: str = "Use --fresh to start over, or move those files away."
) -> None:
    """Raises UserError for results of which nothing else is known."""
    if published(context.results):
        raise UserError(
            f"{context.results} holds results of an earlier run, but what that run kept is gone",
            detail=detail,
            hint=hint,
        )


def make_folders(context: JobContext, *, results: bool) -> None:
    """The job's own folder and, for file sinks, its marked results folder."""
    context.state.mkdir(parents=True, exist_ok=True)
    if results:
        context.results.mkdir(parents=True, exist_ok=True)
        text = f"{_TEXT}{context.results}\n{context.state}\n"
        (context.results / MARKER).write_text(text, encoding="utf-8")


def remove_folders(context: JobContext, *, results: bool) -> None:
    """Forget all a job did. Killed half-way, a checkpoint without its results would lose rows and results
    without their checkpoint would double them; so the checkpoint is first renamed away in one move, and
    `finish_removal`, called before every start, does what is left."""
    if results:
        check_results(context.results)
    grave = _grave(context)
    if context.state.exists() and not grave.exists():
        context.state.rename(grave)
    grave.mkdir(parents=True, exist_ok=True)
    forget_kept(grave, context.root)
    for folder in (context.state, *((context.results,) if results else ()), grave):
        if folder.exists():
            shutil.rmtree(folder)


def finish_removal(context: JobContext, *, results: bool) -> None:
    """Complete a removal that was cut short."""
    if _grave(context).exists():
        remove_folders(context, results=results)


def remove_state(folder: Path) -> None:
    """A folder of .headrace/jobs, in one move as far as others can see."""
    grave = folder.parent / f".removed-{folder.name}"
    if grave.exists():
        _remove_grave(grave)
    if folder.exists():
        folder.rename(grave)
        _remove_grave(grave)


def _remove_grave(grave: Path) -> None:
    """With what it has in the storage of a site."""
    forget_kept(grave, grave.parents[2])
    shutil.rmtree(grave)


def remove_rehearsals(jobs: Path) -> None:
    """What a process that was killed has left of jobs that it had rehearsed at other sites. For whoever holds
    the lock of the project, once nothing of that process runs any more."""
    for folder in jobs.glob(f"{REHEARSAL}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _grave(context: JobContext) -> Path:
    return context.state.parent / f".removing-{context.state.name}"
