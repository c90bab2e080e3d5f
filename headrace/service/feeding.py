"""The derived streams of a run: what has been read is removed, and nobody waits for a maker that has failed.

    feeding.reopen(); ... each round: feeding.look(...); a run that ends: feeding.tidy(), feeding.failures()

A job that runs looks after its own channels. What is left for the loop are trees, which know nothing of
channels, and makers that have ended while their readers go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.catalog.model import Project
from headrace.plan.channels import ChannelJob, ChannelPlan
from headrace.runtime.executor import ENDED, JobState, Progress
from headrace.service.channel_layout import advance_trees, channel_of, collect_channels, makers_ended
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
    _untidy: bool = False
    """What could be removed could not, and that was told."""

    @property
    def _plan(self) -> ChannelPlan:
        return self.fleet.spread.plan

    def reopen(self) -> None:
        """Before the first start of a drain: what says that a channel has ended is of an earlier run, and its
        maker may have more by now. A maker without more says it again. It cannot be left to each maker's
        start: where that fails, its readers would take the channel as it is for the whole of it."""
        for stream in self._plan.streams if self.drain else ():
            if self._plan.maker(stream.id).id in self.fleet.units:
                channel_of(self.project(), stream).reopen()

    def next_turn(self, limit: int) -> str | None:
        """The unit that is started next where `limit` may run at once; None: all have to wait. A maker that
        failed gave its turn to others, and these may all wait for what it makes: it is started beyond the
        limit, or none of them would ever end."""
        able = list(filter(self.may_start, self.fleet.waiting))
        if len(self.fleet.alive()) >= limit:
            able = list(filter(self._is_awaited, able))
        return next(iter(able), None)

    def may_start(self, unit_id: str) -> bool:
        """Whether a unit that waits for its turn can use it. A tree takes what is there for the end of its
        input, so it has to wait for its makers. A job waits for their end by itself, but not for their start:
        one that was drained before is refused where more is to come, and till then nobody knows."""
        if not self.drain:
            return True
        if self.fleet.spread.is_fed(unit_id):
            return makers_ended(self.project(), self._plan, unit_id)
        unit = self.fleet.units[unit_id]
        read = unit.reads if isinstance(unit, ChannelJob) else ()
        return all(self._has_begun(self._plan.maker(stream).id) for stream in read)

    def _is_awaited(self, unit_id: str) -> bool:
        """Whether some that run cannot come to their end before this one does."""
        if not any(maker.id == unit_id for maker in self._plan.makers):
            return False
        below = {one.id for one in self._plan.downstream(unit_id)}
        return not below.isdisjoint(self.fleet.alive())

    def _has_begun(self, maker: str) -> bool:
        seen = self.fleet.states.get(maker)
        return seen is not None and seen.state is not JobState.FAILED

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
        """Remove what all have read. What cannot be removed, on a full disk or without the right to, is only
        in the way: no job needs to end for it, and no other channel waits for it."""
        trouble: list[OSError] = []
        advance_trees(self.project(), self._plan, trouble)
        self._gone = collect_channels(self.project(), self._plan, self.fleet.alive(), self._gone, trouble)
        if trouble and not self._untidy:
            self.note(f"what was read cannot be removed from channels, and is tried again: {trouble[0]}")
        self._untidy = bool(trouble)

    def failures(self) -> list[tuple[str, str]]:
        """Makers that have failed, and why: the answers of their readers are not whole, also of those that
        have come to an end."""
        return [
            (maker.id, f"it makes rows for {self._named(maker)}: {seen.error}")
            for maker, seen in self._failed()
        ]

    def _named(self, maker: ChannelJob) -> str:
        return ", ".join(query for unit in self._plan.downstream(maker.id) for query in queries(unit))

    def _failed(self) -> list[tuple[ChannelJob, Progress]]:
        found = ((maker, self.fleet.states.get(maker.id)) for maker in self._plan.makers)
        return [(maker, seen) for maker, seen in found if seen is not None and seen.state is JobState.FAILED]

    def _give_up(self, is_final: Callable[[str], bool]) -> None:
        """Who reads what a failed maker makes would wait for ever."""
        for maker, seen in self._failed():
            refused = maker.id in self.fleet.refused
            if self.fleet.is_refused(maker) or is_final(maker.id):
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
