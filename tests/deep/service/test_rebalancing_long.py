"""A service that rebalances, over many rounds: it comes to rest, and stays there."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.unit.service.served import SITES, World, project

ALIKE = dict.fromkeys("abcdef", 0.3)


@pytest.mark.parametrize("seed", range(3))
def test_uneven_jobs_come_to_rest(tmp_path: Path, seed: int) -> None:
    """Jobs of all sizes, on noisy sites that are too small where they are: an even distribution is found, and
    no job ever comes back to where it was."""
    cores = {f"j{i}": 0.05 + 0.04 * ((7 * i + seed) % 9) for i in range(10)}
    world = World(project(tmp_path, cores), cores, noise=0.08, random=Random(seed))
    world.run(1000)
    assert max(world.loads().values()) <= sum(cores.values()) / len(SITES) + 0.15
    been: dict[str, list[str]] = {job: ["east"] for job in cores}
    for move in world.moves():
        been[move.job].append(move.target)
    assert all(len(set(sites)) == len(sites) for sites in been.values()) and len(world.moves()) <= 8


def test_ours_moves_no_more_than_is_needed(tmp_path: Path) -> None:
    """Sites may be filled to 80 %: what is merely uneven stays."""
    world = World(project(tmp_path, ALIKE), ALIKE, noise=0.05, policy="ours")
    world.run(500)
    assert max(world.loads().values()) <= 0.8
    moved = world.moves()
    assert len({one.job for one in moved}) == len(moved) <= 5
    slight = World(project(tmp_path / "slight", "ab"), {"a": 0.4, "b": 0.3}, policy="ours")
    slight.run(100)
    assert not slight.moves()


def test_loads_that_swing_within_the_dead_band_move_nothing(tmp_path: Path) -> None:
    cores = {"a": 0.33, "b": 0.3, "c": 0.3}
    world = World(project(tmp_path, cores), cores)
    world.run(150)
    before = len(world.moves())
    for turn in range(10):
        world.plot[20 * turn + 10] = lambda: world.cores.update(a=0.27)
        world.plot[20 * turn + 20] = lambda: world.cores.update(a=0.33)
    world.run(220)
    assert before == 2 and len(world.moves()) == before


def test_degradation_acts_when_a_site_gets_worse(tmp_path: Path) -> None:
    cores = dict.fromkeys("abc", 0.2)
    world = World(project(tmp_path, cores), cores, policy="degradation")
    world.plot = {120: lambda: world.cores.update(a=0.5)}
    world.run(119)
    assert not world.moves()
    world.run(300)
    assert [one.job for one in world.moves()] and world.homes()["a"] != "east"
