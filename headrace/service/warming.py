"""A service keeps its other sites warm: what would go on there if a site were lost has run there before.

    warming = Warming(moving, clock, keeping.lost)
    ... each round: warming.look(); a service that ends: warming.close()

A Spark that has run nothing takes ten seconds and more for the first batch of a job: classes are loaded,
plans compiled, Python workers started. A job that is moved is rehearsed at its target first; one whose site
was lost would stand still meanwhile. So one job of each kind is rehearsed at every site that has run none of
that kind: one at a time, with a rest in between, and not at a site where a job starts, nor while anything is
moved. It begins with the service: a site can be lost in its first minute, too. A rehearsal that is on when a
site is lost is given up: jobs that stand still need its cores. A site that was lost is cold when it comes
back, and until it has run something the jobs of another lost site go elsewhere, if they can.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass, field

from headrace.errors import HeadraceError, SiteSilent
from headrace.plan.channels import ChannelJob
from headrace.plan.logical import nodes
from headrace.plan.placed import Job
from headrace.runtime.executor import JobState
from headrace.runtime.sites import GivenUp
from headrace.service.beside import Beside
from headrace.service.moving_run import Movable, Moving, movable
from headrace.service.storages import place_of

Kind = tuple[str, ...]
"""What jobs have in common whose code is the same: what they are, and the operators of their plan."""
_REST_SECONDS = 3.0
"""Between two looks for something to do, and after a rehearsal."""
_AGAIN_SECONDS = 300.0
"""Until a rehearsal that has failed is tried again."""
_SILENT_SECONDS = 10.0
"""Until a site that did not answer is asked again."""
_QUIET_SECONDS = 10.0
"""A job that runs for so long without a batch has nothing to do."""
_MOST_KINDS = 4
"""Rehearsed at a site: after these, little of Spark is left that has not run."""
_COLD, _COOL = 3, 1
"""What a first job of its kind takes more, in starts: at a Spark that has run nothing, or other kinds."""


@dataclass(slots=True)
class Warming:
    """`clock` gives seconds that never go back; `lost` the sites that are out."""

    moving: Moving
    clock: Callable[[], float]
    lost: Callable[[], Collection[str]]
    _pool: Beside[None] = field(default_factory=lambda: Beside(1))
    _warm: dict[str, set[Kind]] = field(default_factory=dict)
    """What has run at each site, or was rehearsed there."""
    _rehearsed: Counter[str] = field(default_factory=Counter)
    """By site: how many kinds."""
    _later: dict[tuple[str, Kind | None], float] = field(default_factory=dict)
    """When a rehearsal that has failed is tried again; of no kind: at a site that did not answer."""
    _now: tuple[Movable, str, Future[None]] | None = None
    _given_up: threading.Event = field(default_factory=threading.Event)
    """Of the rehearsal that is on, or was last."""
    _rested: float = float("-inf")
    _noted: float = float("-inf")
    _running: dict[str, float] = field(default_factory=dict)
    """Since when each job runs, as far as was seen."""

    def look(self) -> None:
        for site in self.lost():
            self._forget(site)
        now = self.clock()
        if now - self._noted >= _REST_SECONDS:
            self._noted = now
            self._note()
        if self._now is not None and not self._finish(*self._now):
            return
        if now - self._rested < _REST_SECONDS:
            return
        self._rested = now
        if self.moving.pending_moves() or self.moving.stuck():
            return
        found = self._next()
        if found is not None:
            self._begin(*found)

    def close(self) -> None:
        self.give_up()
        self._pool.close()

    def coldness(self, unit: Movable, site: str) -> int:
        """A rehearsal that is on says nothing yet: it is given up."""
        known = set(self._warm.get(site, ()))
        if self._now is not None and self._now[1] == site:
            known.discard(kind_of(self._now[0]))
        if kind_of(unit) in known or len(known) >= _MOST_KINDS:
            return 0
        return _COOL if known else _COLD

    def give_up(self) -> None:
        self._given_up.set()

    # -- what runs ----------------------------------------------------------------------------------

    def _note(self) -> None:
        """Jobs warm their sites, too, whether or not a rehearsal is on elsewhere."""
        lost, states, before = self.lost(), self.moving.fleet.states, self._running
        self._running = {}
        for unit in self.moving.units():
            seen = states.get(unit.id)
            if seen is None or seen.state is not JobState.RUNNING:
                continue
            self._running[unit.id] = before.get(unit.id, self.clock())
            if seen.batch is not None and unit.site not in lost:
                self._warm.setdefault(unit.site, set()).add(kind_of(unit))

    def _busy(self) -> set[str]:
        """Sites where a job that is being started has yet to do a batch: it has their cores."""
        return {unit.site for unit in self.moving.units() if self._is_new(unit)}

    def _is_new(self, unit: Movable) -> bool:
        """One that runs and has no batch for long has no input."""
        seen = self.moving.fleet.states.get(unit.id)
        if seen is None or seen.state is JobState.STARTING:
            return not self.moving.is_over(unit)
        since = self._running.get(unit.id, self.clock())
        return seen.state is JobState.RUNNING and seen.batch is None and self.clock() - since < _QUIET_SECONDS

    # -- rehearsals ---------------------------------------------------------------------------------

    def _next(self) -> tuple[Movable, str] | None:
        """The site that knows least comes first."""
        ways, left_out = self.moving.ways, self._busy() | set(self.lost())
        sites = [site for site in ways.others("") if site not in left_out and not ways.last_resort(site)]
        sites = [one for one in sites if self._rehearsed[one] < _MOST_KINDS and self._may_try(one, None)]
        for site in sorted(sites, key=lambda one: self._rehearsed[one]):
            for unit in self.moving.units():
                kind = kind_of(unit)
                new = kind not in self._warm.get(site, set()) and self._may_try(site, kind)
                if new and not self.moving.is_over(unit):
                    return unit, site
        return None

    def _may_try(self, site: str, kind: Kind | None) -> bool:
        return self.clock() >= self._later.get((site, kind), float("-inf"))

    def _begin(self, unit: Movable, site: str) -> None:
        self._warm.setdefault(site, set()).add(kind_of(unit))
        self._rehearsed[site] += 1
        self._given_up = threading.Event()
        self._now = unit, site, self._pool.submit(self._rehearse, unit, site, self._given_up)

    def _rehearse(self, unit: Movable, site: str, given_up: threading.Event) -> None:
        """By a thread. Spark's client tries for long to reach a site that is not there."""
        moving, project = self.moving, self.moving.project()
        if not moving.ways.answers(site):
            raise SiteSilent(f"{site} does not answer")
        place_of(project, unit.id, site)
        made = movable(project, unit, moving.fleet.spread.plan)
        try:
            moving.ways.rehearse(made, site, lambda: not given_up.is_set())
        except GivenUp:
            raise
        except HeadraceError as error:
            if not moving.ways.answers(site):
                raise SiteSilent(f"{site} does not answer any more") from error
            raise

    def _finish(self, unit: Movable, site: str, rehearsal: Future[None]) -> bool:
        """Whether it is over. Nobody is told what went wrong: a move there would tell, and until then it
        concerns no job."""
        if not rehearsal.done():
            return False
        self._now, self._rested = None, self.clock()
        error = rehearsal.exception()
        if isinstance(error, SiteSilent):
            self._forget(site)
            self._later[site, None] = self._rested + _SILENT_SECONDS
        elif error is not None:
            self._warm.get(site, set()).discard(kind_of(unit))
            self._rehearsed[site] = max(0, self._rehearsed[site] - 1)
            if not isinstance(error, GivenUp):
                self._later[site, kind_of(unit)] = self._rested + _AGAIN_SECONDS
        return True

    def _forget(self, site: str) -> None:
        """It is cold when it is back, and may be another."""
        self._warm.pop(site, None)
        self._rehearsed.pop(site, None)
        self._later = {key: at for key, at in self._later.items() if key[0] != site}


def kind_of(unit: Movable) -> Kind:
    if isinstance(unit, Job | ChannelJob):
        return (type(unit).__name__, *sorted({type(node).__name__ for node in nodes(unit.plan)}))
    return (type(unit).__name__,)
