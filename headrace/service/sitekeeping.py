"""Watches the sites of a run: one that does not answer any more is taken out, and its jobs go on elsewhere.

    keeping = Sitekeeping(moving, clock)
    ... each round: keeping.look(asked=...); a run that ends: keeping.close()

Sites are asked by threads beside the loop. One that is silent three times, or twice while a job of it has
failed, is lost, and one whose process is known to be gone is lost at once: `Moving.rescue` starts its jobs at
other sites. Where none answers, they wait, and the run
with them, until one does, be it the lost one itself; but not for a site that has never answered this run: its
address may be wrong. A site that was gone and is back before it was asked is known by what its jobs say:
those that have lost their engine are started there again, unless they lose it again and again before a batch
is done.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from headrace.runtime.executor import ENDED, JobState
from headrace.service.beside import Beside
from headrace.service.moving_run import Moving

_MISSES = 3
_MISSES_IF_FAILED = 2
_ASK_SECONDS = 2.0
"""Between two questions to a site."""
_RETRY_SECONDS = 5.0
"""Between two attempts to find a place for jobs that wait."""
_AT_ONCE = 8
_REVIVALS = 3
"""Starts in a row without a batch: a job that has lost its engine more often is what ends it."""


@dataclass(slots=True)
class Sitekeeping:
    """`clock` gives seconds that never go back."""

    moving: Moving
    clock: Callable[[], float]
    _pool: Beside[bool] = field(default_factory=lambda: Beside(_AT_ONCE))
    _asking: dict[str, tuple[Future[bool], frozenset[str]]] = field(default_factory=dict)
    """The answer to come, and the jobs that had failed when the site was asked: it says nothing of others."""
    _asked: dict[str, float] = field(default_factory=dict)
    _misses: dict[str, int] = field(default_factory=dict)
    _lost: dict[str, float] = field(default_factory=dict)
    """Sites that are out, and when their jobs were last tried elsewhere."""
    _heard: set[str] = field(default_factory=set)
    """Sites that have answered."""
    _judged: set[str] = field(default_factory=set)
    """Jobs that have failed by themselves: their site answers."""
    _revived: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    """Jobs that were started again at their site: how far they were then, and how often since."""
    _resumed: float = 0.0

    @property
    def busy(self) -> bool:
        """Whether jobs that have ended may run again: the run is not over."""
        waits = any(site in self._heard and self._homeless(site) for site in self._lost)
        return bool(self._suspects()) or waits or self.moving.stuck()

    def lost(self) -> frozenset[str]:
        """Sites that are out."""
        return frozenset(self._lost)

    def is_own_fault(self, job: str) -> bool:
        """Whether a failed job has failed at a site that answers. One that cannot be moved has, whoever is to
        blame: nothing is done for it here."""
        return job in self._judged or all(unit.id != job for unit in self.moving.units())

    def look(self, *, asked: bool) -> None:
        """One round. `asked`: moves that commands ask for are carried out too."""
        self._judged &= set(self._failed())
        # It failed by itself, and then could not be started again because its site was lost: it is, too.
        silent = self._judged & self.moving.fleet.silent
        self._judged -= {job for job in silent if self._site(job) in self._lost}
        self._ask()
        for site in [site for site, (answer, _) in self._asking.items() if answer.done()]:
            answer, failed = self._asking.pop(site)
            self._hear(site, failed, answers=answer.exception() is None and answer.result())
        self.moving.fleet.lost = self.lost()
        self._retry()
        if asked:
            self.moving.carry_out()

    # -- asking -------------------------------------------------------------------------------------

    def _failed(self) -> list[str]:
        """Jobs that could run elsewhere, and do not run here."""
        moving = self.moving
        states = moving.fleet.states
        failed = [unit for unit in moving.units() if unit.id in states]
        failed = [unit for unit in failed if states[unit.id].state is JobState.FAILED]
        return [unit.id for unit in failed if not moving.is_over(unit)]

    def _suspects(self) -> set[str]:
        """Sites of failed jobs whose fault is not known yet."""
        new = set(self._failed()) - self._judged
        return {unit.site for unit in self.moving.units() if unit.id in new} - set(self._lost)

    def _ask(self) -> None:
        suspects, now = self._suspects(), self.clock()
        sites = {unit.site for unit in self.moving.units()} | set(self._lost)
        for site in sites - set(self._asking):
            due = now - self._asked.get(site, -_ASK_SECONDS) >= _ASK_SECONDS
            if due or site in suspects:
                self._asked[site] = now
                failed = frozenset(one for one in self._failed() if self._site(one) == site)
                self._asking[site] = (self._pool.submit(self.moving.ways.answers, site), failed)

    def _hear(self, site: str, failed: frozenset[str], *, answers: bool) -> None:
        if answers:
            self._misses.pop(site, None)
            self._heard.add(site)
            if self._lost.pop(site, None) is not None:
                self.moving.note(f"site {site} answers again")
                self._return(site)
            here = {one for one in self._failed() if one in failed and self._site(one) == site}
            gone = {one for one in here if self._may_revive(one)}
            self._judged |= here - gone
            if gone:
                self._revive(site, gone)
            return
        self._misses[site] = self._misses.get(site, 0) + 1
        if site not in self._lost and self._is_lost(site):
            self.moving.note(f"site {site} does not answer: it is taken out")
            self._lost[site] = self.clock()
            self.moving.rescue(site, self._judged)

    def _is_lost(self, site: str) -> bool:
        enough = _MISSES_IF_FAILED if site in self._suspects() else _MISSES
        return self._misses[site] >= enough or self.moving.ways.is_dead(site)

    def _site(self, job: str) -> str:
        return self.moving.fleet.units[job].site

    # -- a site that was gone, and is back ------------------------------------------------------------

    def _may_revive(self, job: str) -> bool:
        seen = self.moving.fleet.states[job]
        batch, times = self._revived.get(job, (None, 0))
        return seen.lost and (times < _REVIVALS or _is_further(seen.batch, batch))

    def _revive(self, site: str, jobs: set[str]) -> None:
        """Others there, which may not know yet that their engine is gone, are left alone."""
        for job in jobs:
            reached = self.moving.fleet.states[job].batch
            batch, times = self._revived.get(job, (None, 0))
            further = _is_further(reached, batch)
            self._revived[job] = (reached if further else batch, 1 if further else times + 1)
        self.moving.note(f"site {site} was gone, and is back: {', '.join(sorted(jobs))} start again there")
        others = {unit.id for unit in self.moving.units()} - jobs
        self.moving.rescue(site, others, back=True)

    # -- jobs without a place -----------------------------------------------------------------------

    def _homeless(self, site: str) -> bool:
        """Whether jobs of a lost site still wait for another."""
        states = self.moving.fleet.states
        here = [unit.id for unit in self.moving.units() if unit.site == site and unit.id in states]
        failed = set(self._failed()) - self._judged
        return any(states[one].state not in ENDED or one in failed for one in here)

    def _return(self, site: str) -> None:
        """It is back before another could take its jobs."""
        if self._homeless(site):
            self.moving.rescue(site, self._judged, back=True)

    def _retry(self) -> None:
        now = self.clock()
        for site, tried in self._lost.items():
            if now - tried >= _RETRY_SECONDS and self._homeless(site):
                self._lost[site] = now
                self.moving.rescue(site, self._judged)
        if now - self._resumed >= _RETRY_SECONDS:
            self._resumed = now
            self.moving.resume()

    def close(self) -> None:
        self._pool.close()
        self.moving.close()


def _is_further(batch: int | None, before: int | None) -> bool:
    return batch is not None and (before is None or batch > before)
