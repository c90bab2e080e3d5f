"""A site is lost, and its storage with it or not: jobs go on from what can be read, or wait for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.runtime.storage import CHECKPOINT, named
from headrace.service.layout import job_folder
from headrace.service.moving_run import FleetSites
from headrace.service.storages import place_of
from tests.unit.service.test_sitekeeping import World, world

__all__ = ["world"]


@pytest.fixture
def stored(world: World, tmp_path: Path) -> World:
    """Each site with a storage, and the jobs with a batch in that of the first."""
    sites = {}
    for name, site in world.project.sites.items():
        (tmp_path / f"disk-{name}").mkdir()
        sites[name] = site.model_copy(update={"storage": str(tmp_path / f"disk-{name}")})
    world.project = world.project.model_copy(update={"sites": sites})
    return world


def commit(world: World) -> None:
    for job in ("a", "b"):
        commits = job_folder(world.project, job) / CHECKPOINT / "commits"
        commits.mkdir()
        (commits / "0").write_text("v1")


def kept(world: World, job: str) -> tuple[Path, bool]:
    here = job_folder(world.project, job) / CHECKPOINT
    return named(here), (here / "commits" / "0").exists()


def test_jobs_of_a_lost_site_go_on_from_a_copy(stored: World) -> None:
    stored.plot = [
        (stored.at("east", "a", "b"), lambda: commit(stored)),
        (stored.after(5), lambda: stored.down.add("east")),
        (stored.at("west", "a", "b"), stored.stop),
    ]
    assert stored.run().failures == ()
    for job in ("a", "b"):
        assert kept(stored, job) == (place_of(stored.project, job, "west"), True)
        east = place_of(stored.project, job, "east")
        assert east is not None and not east.exists()


def test_jobs_whose_checkpoints_went_with_their_site_wait_for_them(stored: World, tmp_path: Path) -> None:
    disk, away = tmp_path / "disk-east", tmp_path / "unplugged"

    def lose() -> None:
        disk.rename(away)
        stored.down.add("east")

    def started() -> int:
        return sum(call[0] == "start" for call in stored.executor.calls)

    seen: list[int] = []
    stored.plot = [
        (stored.at("east", "a", "b"), lambda: commit(stored)),
        (stored.after(5), lose),
        (lambda: sum("cannot be read here" in note for note in stored.notes) == 2, lambda: None),
        (stored.after(200), lambda: seen.append(started())),
        (stored.after(0), lambda: away.rename(disk)),
        (stored.at("west", "a", "b"), stored.stop),
    ]
    assert stored.run().failures == ()
    assert seen == [2], "nothing was started while they could not be read"
    assert any(note.startswith("a: job a waits: the checkpoint of a is in") for note in stored.notes)
    assert all("--fresh" in note for note in stored.notes if "cannot be read here" in note)
    for job in ("a", "b"):
        assert kept(stored, job) == (place_of(stored.project, job, "west"), True)


def test_a_storage_that_goes_after_the_copy_does_not_keep_a_move_open(
    stored: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what runs well at the new site would be stopped and started again for as long as it is away."""
    disk, begun = tmp_path / "disk-east", FleetSites.start

    def start(sites: FleetSites, job: str, site: str) -> None:
        begun(sites, job, site)
        if job == "b" and disk.exists():
            disk.rename(tmp_path / "unplugged")

    monkeypatch.setattr(FleetSites, "start", start)
    stored.plot = [
        (stored.at("east", "a", "b"), lambda: commit(stored)),
        (stored.after(5), lambda: stored.down.add("east")),
        (stored.at("west", "a", "b"), lambda: None),
        (stored.after(200), stored.stop),
    ]
    assert stored.run().failures == ()
    assert sum(call[0] == "start" for call in stored.executor.calls) == 4
