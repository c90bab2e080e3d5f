"""Removing is all or nothing: a kill at any point leaves a state that the next start completes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.catalog.model import Sink
from headrace.errors import UserError
from headrace.runtime.executor import JobContext
from headrace.service import folders


class Killed(Exception):
    """Stands for kill -9."""


def _context(root: Path) -> JobContext:
    state, results = root / ".headrace" / "jobs" / "q", root / "results" / "q"
    return JobContext({}, {}, Sink(), root, state, results, "local[1]")


def _used(root: Path) -> JobContext:
    """A job that has run: checkpoint and results."""
    context = _context(root)
    folders.make_folders(context, results=True)
    (context.state / "checkpoint").mkdir()
    (context.results / "part-000000.json").write_text("{}\n")
    return context


@pytest.mark.parametrize("survives", [0, 1])
def test_a_removal_cut_short_is_completed_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: int
) -> None:
    context = _used(tmp_path)
    real: Callable[[Path], None] = shutil.rmtree
    calls: list[Path] = []

    def dying(folder: Path) -> None:
        calls.append(folder)
        if len(calls) > survives:
            raise Killed
        real(folder)

    monkeypatch.setattr(shutil, "rmtree", dying)
    with pytest.raises(Killed):
        folders.remove_folders(context, results=True)
    monkeypatch.setattr(shutil, "rmtree", real)
    assert not context.state.exists(), "a checkpoint must not outlive the first step"
    folders.finish_removal(context, results=True)
    assert not context.results.exists()
    assert list(context.state.parent.iterdir()) == []


def test_nothing_is_removed_where_nothing_was_cut_short(tmp_path: Path) -> None:
    context = _used(tmp_path)
    folders.finish_removal(context, results=True)
    assert (context.state / "checkpoint").exists()
    assert (context.results / "part-000000.json").exists()


def test_removing_what_is_not_there(tmp_path: Path) -> None:
    folders.remove_folders(_context(tmp_path), results=True)
    assert not (tmp_path / "results").exists()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / folders.MARKER).write_text("")
    link = tmp_path / "results"
    link.symlink_to(elsewhere)
    with pytest.raises(UserError, match="not a folder"):
        folders.check_results(link)


def test_a_file_in_the_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("")
    with pytest.raises(UserError, match="not a folder"):
        folders.check_results(tmp_path / "results")


def test_a_folder_below_a_file_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot be made: .*file is not a folder"):
        folders.check_results(tmp_path / "file" / "deep" / "results")


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Those who run tests as root may write everywhere, whatever the folder's mode.
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: real(path, mode) and not mode & os.W_OK)
    with pytest.raises(UserError, match=r"cannot be made: .* may not be written by this user"):
        folders.check_results(tmp_path / "results" / "q")
    with pytest.raises(UserError, match="cannot be written"):
        folders.check_results(tmp_path)


def test_an_empty_folder_may_be_taken(tmp_path: Path) -> None:
    folders.check_results(tmp_path)


def test_results_whose_checkpoint_is_gone_are_not_mixed_with_new_ones(tmp_path: Path) -> None:
    context = _used(tmp_path)
    folders.check_orphans(context)
    shutil.rmtree(context.state)
    with pytest.raises(UserError, match="what that run kept is gone"):
        folders.check_orphans(context)
    folders.remove_folders(context, results=True)
    folders.check_orphans(context)


def test_another_jobs_results_are_left_alone(tmp_path: Path) -> None:
    context = _used(tmp_path)
    folders.check_owner(context)
    other = replace(context, state=context.state.with_name("other"))
    with pytest.raises(UserError, match="belongs to another job"):
        folders.check_owner(other)
    shutil.rmtree(context.state)
    folders.check_owner(other)


def test_a_copied_project_owns_its_results(tmp_path: Path) -> None:
    _used(tmp_path / "first")
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    folders.check_owner(_context(tmp_path / "second"))
