"""Checkpoints in the storage of a site: whose they are, where a start finds them, and who removes them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from headrace.catalog.model import Project
from headrace.errors import EngineError, UserError
from headrace.runtime.fake import FakeExecutor
from headrace.runtime.storage import CHECKPOINT, MARKER, keep_at, kept_in, named
from headrace.service import folders
from headrace.service.layout import job_folder, query_context, storage_folder
from headrace.service.moving import moves_of
from headrace.service.status import status_of
from headrace.service.storages import forget_kept, place_checkpoint, place_of, sweep_storages
from tests.unit.runtime.test_storage import Killed, kill_at
from tests.unit.service.served import project as spread
from tests.unit.service.test_serving import Service, service

__all__ = ["service"]


def kept(root: Path, jobs: str = "ab") -> Project:
    """East has a storage, west another, south none."""
    made = spread(root / "project", jobs)
    sites = dict(made.sites)
    for name in ("east", "west"):
        (root / name).mkdir(exist_ok=True)
        sites[name] = sites[name].model_copy(update={"storage": str(root / name)})
    return made.model_copy(update={"sites": sites})


def place(project: Project, job: str, site: str) -> Path:
    found = place_of(project, job, site)
    assert found is not None
    return found


def begun(project: Project, job: str, site: str) -> Path:
    """With a batch; its name in the job's folder."""
    job_folder(project, job).mkdir(parents=True, exist_ok=True)
    place_checkpoint(project, job, site)
    here = job_folder(project, job) / CHECKPOINT
    (here / "commits").mkdir(parents=True)
    (here / "commits" / "0").write_text("v1")
    return here


def test_a_project_has_a_folder_of_its_own_in_each_storage(tmp_path: Path) -> None:
    made = kept(tmp_path)
    folder = storage_folder(made, "east")
    assert folder is not None and folder.parent == tmp_path / "east" and storage_folder(made, "south") is None
    other = made.model_copy(update={"root": tmp_path / "other"})
    assert storage_folder(other, "east") != folder and not folder.exists()
    assert place(made, "a", "east") == folder / "a" and (folder / MARKER).is_file()
    assert place(made, "a", "east") == folder / "a" and place_of(made, "a", "south") is None


def test_a_storage_that_is_called_otherwise_in_the_file_is_the_same(tmp_path: Path) -> None:
    made = kept(tmp_path)
    here = begun(made, "a", "east")
    (tmp_path / "link").symlink_to(tmp_path / "east")
    for name in ("link", "west/../east"):
        site = made.sites["east"].model_copy(update={"storage": f"{tmp_path}/{name}"})
        edited = made.model_copy(update={"sites": {**made.sites, "east": site}})
        sweep_storages(edited)
        place_checkpoint(edited, "a", "east")
        assert (here / "commits" / "0").exists()


def test_killed_while_it_was_marked_a_folder_can_be_taken(tmp_path: Path) -> None:
    made = kept(tmp_path)
    folder = storage_folder(made, "east")
    assert folder is not None
    folder.mkdir()
    (folder / f".{MARKER}.tmp").write_text("")
    assert place(made, "a", "east") == folder / "a" and (folder / MARKER).is_file()


def test_a_checkpoint_that_somebody_laid_elsewhere_by_hand_stays_there(tmp_path: Path) -> None:
    made = kept(tmp_path)
    state, elsewhere = job_folder(made, "a"), tmp_path / "mine"
    state.mkdir(parents=True)
    (elsewhere / "commits").mkdir(parents=True)
    for target in (elsewhere, Path(os.path.relpath(elsewhere, state))):
        (state / CHECKPOINT).symlink_to(target)
        place_checkpoint(made, "a", "south")
        assert named(state / CHECKPOINT).samefile(elsewhere) and kept_in(state).samefile(elsewhere)
        (state / CHECKPOINT).unlink()


def test_a_storage_that_is_not_there_is_told(tmp_path: Path) -> None:
    made = kept(tmp_path)
    (tmp_path / "east").rmdir()
    with pytest.raises(EngineError, match="east of site east is not there"):
        place_of(made, "a", "east")
    assert not (tmp_path / "east").exists()


def test_the_folder_of_another_project_is_not_touched(tmp_path: Path) -> None:
    """Of the same path on another machine, or before .headrace was removed."""
    made = kept(tmp_path)
    folder = place(made, "a", "east").parent
    shutil.rmtree(made.root / ".headrace")
    (folder / "a").mkdir()
    with pytest.raises(UserError, match="belongs to another project"):
        place_of(made, "a", "east")
    sweep_storages(made)
    assert (folder / "a").exists()


def test_a_copy_of_a_project_does_not_take_the_checkpoints_of_the_other(tmp_path: Path) -> None:
    made = kept(tmp_path)
    here = begun(made, "a", "east")
    shutil.copytree(made.root, tmp_path / "copy", symlinks=True)
    copy = made.model_copy(update={"root": tmp_path / "copy"})
    for site in ("east", "west", "south"):
        with pytest.raises(UserError, match="belongs to another project") as caught:
            place_checkpoint(copy, "a", site)
        assert "--fresh" in caught.value.hint
    folders.remove_state(job_folder(copy, "a"))
    assert (here / "commits" / "0").exists() and named(here) == place(made, "a", "east")


def test_a_start_finds_the_checkpoint_wherever_the_job_was(tmp_path: Path) -> None:
    made = kept(tmp_path)
    here = begun(made, "a", "south")
    assert not here.is_symlink()
    for site in ("east", "west", "south", "west", "east"):
        place_checkpoint(made, "a", site)
        assert named(here) == (place_of(made, "a", site) or here)
        assert [one.read_text() for one in here.rglob("0")] == ["v1"]
        everywhere = [one for one in tmp_path.rglob("commits") if not one.parent.is_symlink()]
        assert len(everywhere) == 1


def test_a_storage_that_is_taken_from_the_file_gives_its_checkpoints_back(tmp_path: Path) -> None:
    made = kept(tmp_path)
    here = begun(made, "a", "east")
    sites = {**made.sites, "east": made.sites["east"].model_copy(update={"storage": None})}
    place_checkpoint(made.model_copy(update={"sites": sites}), "a", "east")
    assert not here.is_symlink() and (here / "commits" / "0").exists()


def test_a_start_after_a_kill_goes_on_from_the_copy_that_was_whole(tmp_path: Path) -> None:
    """Killed between the two renames: nothing is under the name of the checkpoint then."""
    made = kept(tmp_path)
    here = begun(made, "a", "east")
    with pytest.raises(Killed):
        keep_at(here.parent, None, kill_at("put in place"))
    assert not os.path.lexists(here)
    place_checkpoint(made, "a", "south")
    assert not here.is_symlink() and (here / "commits" / "0").exists()
    with pytest.raises(Killed):
        keep_at(here.parent, place(made, "a", "west"), kill_at("put in place"))
    folders.remove_state(here.parent)
    assert not place(made, "a", "west").exists()


@pytest.mark.parametrize("fresh", [True, False])
def test_what_is_removed_is_removed_from_the_storage_too(tmp_path: Path, fresh: bool) -> None:
    made = kept(tmp_path)
    begun(made, "a", "east")
    begun(made, "b", "east")
    if fresh:
        folders.remove_folders(query_context(made, "a", "east"), results=False)
    else:
        folders.remove_state(job_folder(made, "a"))
    folder = place(made, "a", "east").parent
    assert sorted(one.name for one in folder.iterdir() if one.is_dir()) == ["b"]
    assert not job_folder(made, "a").exists()


def test_what_was_removed_while_its_storage_was_away_is_swept(tmp_path: Path) -> None:
    made = kept(tmp_path)
    begun(made, "a", "east")
    folder = place(made, "a", "east").parent
    (tmp_path / "east").rename(tmp_path / "away")
    folders.remove_folders(query_context(made, "a", "east"), results=False)
    (tmp_path / "away").rename(tmp_path / "east")
    assert (folder / "a").exists()
    sweep_storages(made)
    assert not (folder / "a").exists() and (folder / MARKER).exists()
    forget_kept(job_folder(made, "a"), made.root)


# -- in a run ---------------------------------------------------------------------------------------


def test_a_run_keeps_checkpoints_where_its_sites_do(tmp_path: Path, service: Service) -> None:
    made = kept(tmp_path)

    def ask() -> None:
        with moves_of(made) as moves:
            moves.ask("a", "east", "west")

    service.at, service.done = {5: ask}, lambda: "a is running at west" in service.told()
    assert service.serve(made) == 0
    assert named(job_folder(made, "a") / CHECKPOINT) == place(made, "a", "west")
    assert named(job_folder(made, "b") / CHECKPOINT) == place(made, "b", "east")
    assert not place(made, "a", "east").exists()
    assert [move["state"] for move in status_of(made, lambda _: {})["moves"]] == ["moved"]


def test_a_job_whose_checkpoint_cannot_be_read_fails_and_says_what_to_do(
    tmp_path: Path, service: Service
) -> None:
    made = kept(tmp_path)
    begun(made, "a", "east")
    place(made, "a", "east").rename(tmp_path / "lost")
    service.done = lambda: any("is in" in line for line in service.told())
    assert service.serve(made) == 1
    assert ("start", "a") not in service.engine.calls and ("start", "b") in service.engine.calls
    [line] = [one for one in service.told() if one.startswith("a is failed")]
    assert "the checkpoint of a is in" in line and "cannot be read here" in line
    (tmp_path / "lost").rename(place(made, "a", "east"))
    service.engine, service.done = FakeExecutor(), lambda: True
    service._round = 0
    assert service.serve(made) == 0 and ("start", "a") in service.engine.calls
    assert (job_folder(made, "a") / CHECKPOINT / "commits" / "0").exists()
