"""The derived streams of a run: what has been read is removed, and nobody waits for a maker that has failed.

A job that runs looks after its own channels. What is left for the loop are trees, which know nothing of
channels, and makers that have ended while their readers go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.catalog.model import Project
from headrace.plan.channels import ChannelPlan
from headrace.runtime.executor import ENDED, JobState
from headrace.service.channel_layout import advance_trees, collect_channels, makers_ended
from headrace.service.fleet import Fleet, queries

_EVERY_SECONDS = 3.0


@dataclass(slots=True)
class Feeding:
    """`clock` gives seconds that never go back; `note` is told who is stopped for a failed maker."""

    fleet: Fleet
    project: Callable[[], Project]
    clock: Callable[[], float]
    note: Callable[[str], None] = lambda _: None
    drain: bool = False
    _looked: float | None = None
    _gone: dict[str, int] = field(default_factory=dict)
    """By stream: below which part all are gone."""

    @property
    def _plan(self) -> ChannelPlan:
        return self.fleet.spread.plan

    def may_start(self, unit_id: str) -> bool:
        """Whether a unit that waits for its turn can use it. A tree takes what is there for the end of its
        input, so it has to wait for its makers; a job waits for them by itself."""
        fed = self.drain and self.fleet.spread.is_fed(unit_id)
        return not fed or makers_ended(self.project(), self._plan, unit_id)

    def look(self, is_final: Callable[[str], bool]) -> None:
        """One round. `is_final`: whether a unit that has failed is not started again, here or elsewhere."""
        if not self._plan.streams:
            return
        self._give_up(is_final)
        now = self.clock()
        if self._looked is None or now - self._looked >= _EVERY_SECONDS:
            self._looked = now
            self.tidy()

    def tidy(self) -> None:
        """Remove what all have read."""
        advance_trees(self.project(), self._plan)
        running = self.fleet.alive()
        self._gone = collect_channels(self.project(), self._plan, running, self._gone)

    def _give_up(self, is_final: Callable[[str], bool]) -> None:
        """Who reads what a failed maker makes would wait for ever."""
        for maker in self._plan.makers:
            seen = self.fleet.states.get(maker.id)
            if seen is None or seen.state is not JobState.FAILED:
                continue
            refused = maker.id in self.fleet.refused
            if refused or is_final(maker.id):
                reason = f"{maker.id}, which makes what it reads, has failed: {seen.error}"
                below = [one.id for one in self._plan.downstream(maker.id)]
                stopped = [one for one in below if self._stop(one, reason, refused)]
                if stopped:
                    self.note(f"{maker.id} has failed; stopped with it: {', '.join(stopped)}")

    def _stop(self, unit_id: str, reason: str, refused: bool) -> bool:
        """Whether it had to be stopped."""
        unit, seen = self.fleet.units.get(unit_id), self.fleet.states.get(unit_id)
        if unit is None or (seen is not None and seen.state in ENDED):
            return False
        self.fleet.give_up(self.project(), unit, reason)
        if refused:
            self.fleet.refused |= set(queries(unit)) or {unit_id}
        return True
