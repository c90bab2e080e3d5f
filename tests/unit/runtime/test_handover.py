"""What a job has kept goes from one folder to another whole, or not at all."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from headrace.errors import EngineError
from headrace.runtime.copies import digests
from headrace.runtime.handover import Position, hand_over, pause_after, position_of, retire


def kept(folder: Path, batches: int = 3, plan: str = "p") -> Path:
    """A job's folder after some batches."""
    commits = folder / "checkpoint" / "commits"
    commits.mkdir(parents=True)
    (folder / "job.json").write_text(json.dumps({"plan": plan}))
    for number in range(batches):
        (commits / str(number)).write_text("v1")
        os.utime(commits / str(number), (1000 + 2 * number, 1000 + 2 * number))
    return folder


def test_a_folder_says_how_far_it_is(tmp_path: Path) -> None:
    assert position_of(tmp_path / "none") == Position("", -1)
    assert position_of(kept(tmp_path / "job")) == Position("p", 2)


def test_by_reference_nothing_is_touched(tmp_path: Path) -> None:
    job = kept(tmp_path / "job")
    before = digests(job)
    hand_over(job, job, Position("p", 2))
    assert digests(job) == before and list(tmp_path.iterdir()) == [job]


@pytest.mark.parametrize("left", [Position("p", 3), Position("other", 2)])
def test_a_checkpoint_that_is_not_the_one_that_was_left_is_refused(tmp_path: Path, left: Position) -> None:
    job = kept(tmp_path / "job")
    with pytest.raises(EngineError):
        hand_over(job, tmp_path / "there", left)
    assert not (tmp_path / "there").exists()


def test_a_copy_is_whole_and_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    job, there = kept(tmp_path / "job"), kept(tmp_path / "other" / "job", batches=1)
    (there / "stale").touch()
    hand_over(job, there, Position("p", 2))
    assert digests(there) == digests(job) and not (there / "stale").exists()
    assert [path.name for path in there.parent.iterdir()] == ["job"]


def test_a_copy_names_the_schemas_of_its_own_state(tmp_path: Path) -> None:
    """Also after a second move, when nothing of the first folder is left."""
    here, there, last = kept(tmp_path / "a job"), tmp_path / "b" / "job", tmp_path / "c" / "job"
    metadata = here / "checkpoint" / "state" / "0" / "_metadata" / "v2"
    metadata.mkdir(parents=True)
    named = f"file:{here}/checkpoint/state/0/_stateSchema/default/0_x"
    (metadata / "0").write_text(f'v2\n{{"stateSchemaFilePaths":["{named}"],"other":"{here}/checkpointed"}}')
    (metadata / ".0.crc").write_bytes(b"of the old text")
    hand_over(here, there, Position("p", 2))
    hand_over(there, last, Position("p", 2))
    shutil.rmtree(here)
    written = last / "checkpoint" / "state" / "0" / "_metadata" / "v2"
    text = (written / "0").read_text()
    assert f'["file:{last}/checkpoint/state/0/_stateSchema/default/0_x"]' in text
    assert f'"other":"{here}/checkpointed"' in text
    assert [path.name for path in written.iterdir()] == ["0"]


def test_a_copy_that_differs_is_never_put_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, there = kept(tmp_path / "job"), kept(tmp_path / "other" / "job", batches=1)
    real = shutil.copyfile

    def damaged(source: str, target: str, **how: bool) -> str:
        made = real(source, target, **how)
        if target.endswith("commits/1"):
            Path(target).write_text("v2")
        return made

    monkeypatch.setattr(shutil, "copyfile", damaged)
    monkeypatch.setattr("headrace.runtime.handover._QUIET_SECONDS", 0.0)
    with pytest.raises(EngineError, match="not copied whole") as caught:
        hand_over(job, there, Position("p", 2))
    assert "commits/1" in caught.value.detail and position_of(there) == Position("p", 0)


def test_a_file_that_goes_away_meanwhile_is_copied_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task of the interrupted batch removes what it had begun to write."""
    job, there = kept(tmp_path / "job"), tmp_path / "other" / "job"
    begun, real = job / "checkpoint" / ".8.tmp", shutil.copyfile
    begun.touch()

    def racing(source: str, target: str, **how: bool) -> str:
        if target.endswith(".8.tmp"):
            begun.unlink()
        return real(source, target, **how)

    monkeypatch.setattr(shutil, "copyfile", racing)
    monkeypatch.setattr("headrace.runtime.handover._QUIET_SECONDS", 0.0)
    hand_over(job, there, Position("p", 2))
    assert digests(there) == digests(job) and not begun.exists()


def test_half_a_copy_of_an_earlier_try_is_no_hindrance(tmp_path: Path) -> None:
    job, there = kept(tmp_path / "job"), tmp_path / "other" / "job"
    kept(there.with_name(".arriving-job"), batches=1)
    hand_over(job, there, Position("p", 2))
    assert digests(there) == digests(job)


def test_a_folder_that_was_handed_over_has_no_checkpoint(tmp_path: Path) -> None:
    job, there = kept(tmp_path / "job"), tmp_path / "there"
    hand_over(job, there, Position("p", 2))
    retire(job, job)
    assert position_of(job) == Position("p", 2)
    retire(job, there)
    assert position_of(job) == Position("p", -1) and position_of(there) == Position("p", 2)
    retire(job, there)


def test_the_pause_is_between_two_commits(tmp_path: Path) -> None:
    job = kept(tmp_path / "job")
    assert pause_after(job, 1) == pytest.approx(2.0)
    assert pause_after(job, 2) is None and pause_after(job, -1) is None
