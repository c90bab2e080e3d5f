"""A service keeps its other sites warm: what would go on there if a site were lost has run there before.

    warming = Warming(moving, clock, keeping.lost)
    ... each round: warming.look(); a service that ends: warming.close()

A Spark that has run nothing takes ten seconds and more for the first batch of a job: classes are loaded,
plans compiled, Python workers started. A job that is moved is rehearsed at its target first; one whose site
was lost would stand still meanwhile. So, once all jobs run, one job of each kind is rehearsed at every site
that has run none of that kind: one at a time, with a rest in between, and not while anything starts or moves.
A site that was lost is cold when it comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass, field

from headrace.errors import SiteSilent
from headrace.plan.channels import ChannelJob
from headrace.plan.logical import nodes
from headrace.plan.placed import Job
from headrace.runtime.executor import JobState
from headrace.service.beside import Beside
from headrace.service.moving_run import FleetSites, Movable, Moving

Kind = tuple[str, ...]
"""What jobs have in common whose code is the same: what they are, and the operators of their plan."""
_REST_SECONDS = 3.0
"""Between two looks for something to do, and after a rehearsal."""
_AGAIN_SECONDS = 300.0
"""Until a site is tried again where a rehearsal has failed."""
_MOST_KINDS = 4
"""Rehearsed at a site: after these, little of Spark is left that has not run."""


@dataclass(slots=True)
class Warming:
    """`clock` gives seconds that never go back; `lost` the sites that are out."""

    moving: Moving
    clock: Callable[[], float]
    lost: Callable[[], Collection[str]]
    _pool: Beside[None] = field(default_factory=lambda: Beside(1))
    _warm: dict[str, set[Kind]] = field(default_factory=dict)
    """What has run at each site, or was rehearsed there."""
    _rehearsed: dict[str, int] = field(default_factory=dict)
    _failed: dict[str, float] = field(default_factory=dict)
    """When a rehearsal has failed at a site."""
    _now: tuple[str, Future[None]] | None = None
    _looked: float = float("-inf")

    def look(self) -> None:
        for site in self.lost():
            self._warm.pop(site, None)
            self._rehearsed.pop(site, None)
        if self._now is not None and not self._finish(*self._now):
            return
        if self.clock() - self._looked < _REST_SECONDS:
            return
        self._looked = self.clock()
        if not self._is_calm():
            return
        for unit in self.moving.units():
            self._warm.setdefault(unit.site, set()).add(kind_of(unit))
        found = self._next()
        if found is not None:
            self._begin(*found)

    def close(self) -> None:
        self._pool.close()

    def _is_calm(self) -> bool:
        """All jobs that should run do, and have done a batch."""
        moving = self.moving
        states = [moving.fleet.states.get(unit.id) for unit in moving.units() if not moving.is_over(unit)]
        run = all(one and one.state is JobState.RUNNING and one.batch is not None for one in states)
        return run and not moving.pending_moves() and not moving.stuck()

    def _next(self) -> tuple[Movable, str] | None:
        """The site that knows least comes first."""
        ways, now = self.moving.ways, self.clock()
        sites = [site for site in ways.others("") if site not in self.lost() and not ways.last_resort(site)]
        tried = [s for s in sites if now - self._failed.get(s, float("-inf")) >= _AGAIN_SECONDS]
        for site in sorted(tried, key=lambda one: self._rehearsed.get(one, 0)):
            if self._rehearsed.get(site, 0) >= _MOST_KINDS:
                continue
            for unit in self.moving.units():
                if kind_of(unit) not in self._warm.get(site, set()) and not self.moving.is_over(unit):
                    return unit, site
        return None

    def _begin(self, unit: Movable, site: str) -> None:
        self._warm.setdefault(site, set()).add(kind_of(unit))
        self._rehearsed[site] = self._rehearsed.get(site, 0) + 1
        self._now = site, self._pool.submit(self._rehearse, unit.id, site)

    def _rehearse(self, job: str, site: str) -> None:
        """By a thread. Spark's client tries for long to reach a site that is not there."""
        moving = self.moving
        if not moving.ways.answers(site):
            raise SiteSilent(f"{site} does not answer")
        FleetSites(moving.fleet, moving.project, moving.ways).prepare(job, site)

    def _finish(self, site: str, rehearsal: Future[None]) -> bool:
        """Whether it is over. Nobody is told what went wrong: a move there would tell, and until then it
        concerns no job."""
        if not rehearsal.done():
            return False
        self._now, self._looked = None, self.clock()
        if rehearsal.exception() is not None:
            self._failed[site] = self._looked
            self._warm.pop(site, None)
            self._rehearsed.pop(site, None)
        return True


def kind_of(unit: Movable) -> Kind:
    if isinstance(unit, Job | ChannelJob):
        return (type(unit).__name__, *sorted({type(node).__name__ for node in nodes(unit.plan)}))
    return (type(unit).__name__,)
