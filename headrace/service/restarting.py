"""Failed jobs are started again, after a while that doubles with every failure in a row.

    serve   whatever has failed   failed -> [5 s] -> started -> failed -> [10 s] -> started -> ... -> [5 min]
    run     passing faults        failed -> [2 s] -> started -> [4 s] -> started -> [8 s] -> started -> failed
    one that has run for a minute begins anew

A job that was refused, because it cannot run as the user asked, stays as it is until a command changes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from headrace.errors import HeadraceError
from headrace.runtime.executor import ENDED, JobState
from headrace.runtime.spark.passing import is_passing
from headrace.service.fleet import Fleet, Unit

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 300.0
_SETTLED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Rule:
    """Which failed jobs are started again, and when."""

    first: float = FIRST_SECONDS
    most: int | None = None
    """Starts in a row; None: for ever."""
    takes: Callable[[str], bool] = lambda reason: True


SERVE = Rule()
RUN = Rule(first=2.0, most=3, takes=is_passing)


@dataclass(slots=True)
class _Failing:
    times: int = 0
    due: float | None = None
    """When it is started again; None: it runs."""
    since: float = 0.0
    """When it was last started again."""


@dataclass(slots=True)
class Restarting:
    """`start` starts a unit of the fleet; `clock` gives seconds that never go back."""

    fleet: Fleet
    start: Callable[[Unit], None]
    clock: Callable[[], float]
    note: Callable[[str], None]
    clear: Callable[[str, str], None] = lambda job, site: None
    """The fence: nothing of a failed job may be left at its site."""
    rule: Rule = SERVE
    _failing: dict[str, _Failing] = field(default_factory=dict)

    @property
    def busy(self) -> bool:
        """Whether a job that has failed waits for its next start."""
        waiting = [unit for unit, known in self._failing.items() if known.due is not None]
        return any(self.may_again(unit) for unit in waiting)

    def may_again(self, unit_id: str) -> bool:
        """Whether this one has failed, and not for good."""
        unit = self.fleet.units.get(unit_id)
        return unit is not None and self._failed(unit) and not self._is_final(unit_id)

    def look(self, may: Callable[[str], bool] = lambda _: True) -> None:
        """One round. `may`: whether that unit is ours to start; another may be about to take it elsewhere."""
        now = self.clock()
        for unit in list(self.fleet.units.values()):
            if self._failed(unit):
                if may(unit.id) and not self._is_final(unit.id):
                    self._again(unit, now)
            elif unit.id in self._failing:
                self._calm(unit.id, now)
        for gone in set(self._failing) - set(self.fleet.units):
            del self._failing[gone]

    def _failed(self, unit: Unit) -> bool:
        seen = self.fleet.states.get(unit.id)
        over = self.fleet.is_refused(unit) or unit.id in self.fleet.given_up
        return seen is not None and seen.state is JobState.FAILED and not over

    def _is_final(self, unit_id: str) -> bool:
        known, most = self._failing.get(unit_id, _Failing()), self.rule.most
        if not self.rule.takes(self.fleet.states[unit_id].error):
            return True
        return most is not None and known.times >= most and known.due is None

    def _again(self, unit: Unit, now: float) -> None:
        known = self._failing.setdefault(unit.id, _Failing())
        if known.due is None:
            known.times += 1
            wait = min(self.rule.first * 2 ** (known.times - 1), LONGEST_SECONDS)
            known.due = now + wait
            self._tell(unit, known.times, wait)
        elif now >= known.due:
            known.due, known.since = None, now
            try:
                self.clear(unit.id, unit.site)
            except HeadraceError as error:
                self.note(f"{unit.id} cannot be started again: {error.message}")
            else:
                self.start(unit)

    def _tell(self, unit: Unit, times: int, wait: float) -> None:
        """Once, where the starts are few."""
        reason = (self.fleet.states[unit.id].error or "no reason given").splitlines()[0]
        most = self.rule.most
        if most is None or times == 1:
            often = "" if most is None else f", up to {most} times"
            self.note(f"{unit.id} has failed, and is started again in {wait:.0f} s{often}: {reason}")

    def _calm(self, unit_id: str, now: float) -> None:
        seen, known = self.fleet.states.get(unit_id), self._failing[unit_id]
        running = seen is not None and seen.state not in ENDED
        if running and now - known.since >= _SETTLED_SECONDS:
            del self._failing[unit_id]
