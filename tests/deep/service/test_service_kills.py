"""A service that rebalances is killed at every step of its moves and at any round, and started again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.service.served import Killed, World, project

FOUR = dict.fromkeys("abcd", 0.3)


@pytest.mark.parametrize("step", range(1, 15))
def test_a_service_that_is_killed_in_a_move_goes_on(tmp_path: Path, step: int) -> None:
    world = World(project(tmp_path, "abcd"), FOUR)
    world.kill_at_step = step
    with pytest.raises(Killed):
        world.run(300)
    world.run(60)
    assert sorted(world.ran) == list("abcd") and world.ran == world.homes()
    world.clock.sleep(400)
    world.run(300)
    assert world.ran == world.homes()
    assert all(one.ended for one in world.moves()) and max(world.loads().values()) <= 0.6 + 1e-9


@pytest.mark.parametrize("at", [1, 10, 24, 41, 62])
def test_a_service_that_is_killed_between_rounds_goes_on(tmp_path: Path, at: int) -> None:
    def die() -> None:
        raise Killed

    world = World(project(tmp_path, "abcd"), FOUR, plot={at: die})
    with pytest.raises(Killed):
        world.run(300)
    world.plot = {}
    world.run(250)
    assert sorted(world.ran) == list("abcd") and world.ran == world.homes()
    assert max(world.loads().values()) <= 0.6 + 1e-9
