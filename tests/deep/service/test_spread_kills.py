"""A run of a spread project is killed at every step that it takes; the next one finds its way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headrace.runtime.fake import FakeExecutor
from headrace.service import keeper
from headrace.service.channel_layout import remove_channels
from headrace.service.run import Options
from headrace.state.file import StateFile
from tests.unit.service.disk_engine import Death, Killed
from tests.unit.service.spread_world import PAIR, World

_TRANSACTION, _CLEAR, _REMOVE = StateFile._transaction, keeper.Keeper._clear, remove_channels


class Mortal(FakeExecutor):
    death = Death()

    def _begin(self, job_id: str, *args: Any, **how: Any) -> None:
        self.death.step(f"start {job_id}")
        super()._begin(job_id, *args, **how)

    def stop(self, job_id: str) -> None:
        self.death.step(f"stop {job_id}")
        super().stop(job_id)


@pytest.fixture
def death(monkeypatch: pytest.MonkeyPatch) -> Death:
    made = Death()

    def transaction(store: Any, work: Any, **how: Any) -> Any:
        if not getattr(store, "theirs", False):
            made.step("transaction")
        return _TRANSACTION(store, work, **how)

    def clear(kept: keeper.Keeper, one: Any) -> None:
        made.step(f"remove {one.name}")
        _CLEAR(kept, one)

    def remove(project: Any, streams: Any) -> None:
        for stream in sorted(streams):
            made.step(f"remove {stream}")
            _REMOVE(project, [stream])

    monkeypatch.setattr(StateFile, "_transaction", transaction)
    monkeypatch.setattr(keeper.Keeper, "_clear", clear)
    monkeypatch.setattr(keeper, "remove_channels", remove)
    monkeypatch.setattr(Mortal, "death", made)
    return made


def _fresh(world: World) -> Options:
    return Options(drain=True, fresh=True, only=("pair",))


def _changed(world: World) -> Options:
    world.plot = {
        3: lambda: world.add("again", PAIR),
        6: lambda: world.drop("pair"),
        10: world.stop,
    }
    return Options()


@pytest.mark.parametrize("prepared", [_fresh, _changed])
def test_killed_at_every_step(tmp_path: Path, death: Death, prepared: Callable[[World], Options]) -> None:
    step, died = 0, True
    while died:
        death.at = None
        world = World(tmp_path / str(step))
        assert world.run().exit_code == 0
        death.at, death.steps, death.dead = step, [], False
        with suppress(Killed):
            world.run(prepared(world), executor=Mortal())
        died, death.at, death.dead = death.dead, None, False
        world.plot = {}
        names = set(world.states())
        assert world.run().exit_code == 0
        assert set(world.states().values()) == {"finished"} and set(world.states()) >= names - {"pair"}
        world.check()
        # Transactions of what was seen are many, and all alike.
        step += 1 if death.steps[step : step + 1] != ["transaction"] or step < 12 else 5
    assert step > 15
