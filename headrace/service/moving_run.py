"""Moves in a run that is on: called once a round by the loop that owns the jobs.

    moving = Moving(fleet, lambda: keeper.project, moves, ways)
    ... each round: moving.carry_out(); a run that ends: moving.close()

The long step, `prepare`, is done by a thread beside the loop, and disturbs nobody. The others are done in the
round itself, since the fleet belongs to the loop: that is the pause of the job, and the loop's, while other
jobs go on by themselves. A site that does not answer any more loses its jobs to others (`rescue`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from headrace.catalog.model import Project
from headrace.errors import EngineError, HeadraceError, UserError
from headrace.plan.channels import ChannelJob, ChannelPlan
from headrace.plan.federated import FederatedJob
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.executor import ENDED, JobContext, JobState, Progress
from headrace.runtime.relocate import Move, Outcome, Relocator, suspects
from headrace.runtime.sites import Unit, Ways
from headrace.service.beside import Beside
from headrace.service.channel_layout import channel_context, fed_tree_context, ports_of
from headrace.service.fleet import Fleet, queries
from headrace.service.layout import gone_context, job_folder, query_context, tree_context
from headrace.service.spread_records import NOTHING
from headrace.service.storages import place_of
from headrace.state.moves import MoveRecord, Moves

Movable = Job | TreeJob | FederatedJob | ChannelJob

_AT_ONCE = 2
"""Preparing takes the target's cores; more at once would disturb those who run there."""
_ASKED_AT_ONCE = 8
_SOON_SECONDS = 2.0
"""In which a site that is fit to take jobs answers."""


@dataclass(frozen=True, slots=True)
class FleetSites:
    """Implements `relocate.Sites` over the jobs of a run."""

    fleet: Fleet
    project: Callable[[], Project]
    ways: Ways

    def answers(self, site: str) -> bool:
        return self.ways.answers(site)

    def others(self, job: str) -> Sequence[str]:
        return self.ways.others(job)

    def prepare(self, job: str, site: str) -> None:
        self.keeps(job, site)
        self.ways.prepare(movable(self.project(), self._unit(job), self.fleet.spread.plan), site)

    def runs(self, job: str, site: str) -> bool:
        seen = self.fleet.states.get(job)
        return self._unit(job).site == site and seen is not None and seen.state not in ENDED

    def stop(self, job: str, site: str) -> None:
        if self._unit(job).site == site:
            self.fleet.stop([job])

    def clear(self, job: str, site: str) -> None:
        self.ways.clear(job, site)
        if self.runs(job, site):
            # Nothing of it is left there; what this process still has of it is told so.
            self.fleet.stop([job])

    def state(self, job: str, site: str) -> Path:
        return job_folder(self.project(), job)

    def keeps(self, job: str, site: str) -> Path | None:
        return place_of(self.project(), job, site)

    def start(self, job: str, site: str) -> None:
        error = self.fleet.start(self.project(), replace(self._unit(job), site=site))
        if error is not None:
            raise error
        seen = self.fleet.states[job]
        if seen.state is JobState.FAILED:
            raise EngineError(f"{job} does not start at {site}", detail=seen.error)

    def progress(self, job: str) -> Progress:
        self.fleet.observe()
        return self.fleet.states[job]

    def _unit(self, job: str) -> Movable:
        unit = self.fleet.units.get(job)
        if unit is None:
            raise EngineError(f"{job} is not running here any more")
        return unit


def movable(project: Project, unit: Movable, channels: ChannelPlan = NOTHING) -> Unit:
    """The unit as a move sees it: the same at every site, but for the site's endpoint. A channel is a folder
    that every site sees, so whatever is moved reads and writes where it did."""

    def context(site: str) -> JobContext:
        if isinstance(unit, TreeJob):
            return fed_tree_context(project, channels, replace(unit, site=site))
        if isinstance(unit, ChannelJob):
            return channel_context(project, channels, replace(unit, site=site))
        if isinstance(unit, FederatedJob):
            return tree_context(project, replace(unit, site=site))
        return query_context(project, unit.query, site)

    def members(site: str) -> dict[str, JobContext]:
        here = {name: query_context(project, name, site) for name in queries(unit)}
        if isinstance(unit, FederatedJob):
            left = [member.query for member in unit.members if member.query not in here]
            here |= {name: gone_context(project, replace(unit, site=site), name) for name in left}
        return here

    ports = (lambda: ports_of(project, channels, unit)) if isinstance(unit, ChannelJob) else None
    return Unit(unit, context, members, ports=ports)


class Warmth(Protocol):
    """What is known of sites that have run nothing yet."""

    def coldness(self, unit: Movable, site: str) -> int:
        """How many starts of jobs a first one of this kind takes as long as there: 0 where one has run."""
        ...

    def give_up(self) -> None:
        """Sites are wanted for something else at once."""
        ...


class EverywhereWarm:
    """Nobody looks."""

    def coldness(self, unit: Movable, site: str) -> int:
        return 0

    def give_up(self) -> None:
        return None


@dataclass(slots=True)
class Moving:
    """What a run knows of moves. `note` is told what became of each."""

    fleet: Fleet
    project: Callable[[], Project]
    moves: Moves
    ways: Ways
    note: Callable[[str], None] = lambda _: None
    warmth: Warmth = field(default_factory=lambda: EverywhereWarm())
    _pool: Beside[Outcome | None] = field(default_factory=lambda: Beside(_AT_ONCE))
    _preparing: dict[int, tuple[MoveRecord, Future[Outcome | None]]] = field(default_factory=dict)
    _waits: dict[str, str] = field(default_factory=dict)
    """What was last told of a site whose jobs have no other place, and of a move that cannot be ended."""

    @property
    def relocator(self) -> Relocator:
        return Relocator(
            FleetSites(self.fleet, self.project, self.ways), self.moves, time.monotonic, time.sleep
        )

    def pending_moves(self) -> bool:
        """Whether there is something to do; cheap, for every round."""
        return bool(self._preparing) or self.moves.any_asked()

    def carry_out(self) -> list[Outcome]:
        """Begin what was asked for, and go on with a move that is prepared; the moves that have ended now.
        One in a round: a move stops the loop for seconds, and sites are looked at between two."""
        if not self.pending_moves():
            return []
        for record in self.moves.asked():
            if record.id not in self._preparing and not self._refused(record):
                self._begin(record)
        done = [record for record, prepared in self._preparing.values() if prepared.done()]
        return self._finish(done[0]) if done else []

    def _refused(self, record: MoveRecord) -> bool:
        """Whoever asked went by the project file, and this run by the one of its start."""
        unit, reason = self.fleet.units.get(record.job), ""
        if unit is None:
            reason = "the run that is on does not have it"
        elif record.target not in self.project().sites:
            reason = f"the run that is on began without a site {record.target}: start it again"
        elif unit.site == record.target:
            reason = f"it is at {record.target} already"
        if reason:
            self.moves.refuse(record.id, reason)
        return bool(reason)

    def _begin(self, record: MoveRecord) -> None:
        record = self.moves.from_where(record, self.fleet.units[record.job].site)
        self._preparing[record.id] = (record, self._pool.submit(self.relocator.prepare, record.move))

    def _finish(self, record: MoveRecord) -> list[Outcome]:
        _, prepared = self._preparing.pop(record.id)
        return self._carry(record, prepared)

    def _carry(self, record: MoveRecord, prepared: Future[Outcome | None] | None = None) -> list[Outcome]:
        unit = self.fleet.units.get(record.job)
        if unit is None:
            return self._left(record.move)
        if unit.site != record.source:
            return self._replaced(record, unit.site)
        try:
            refused = None if prepared is None else self._prepared(record, prepared)
            outcome = refused or self.relocator.carry(record.move)
        except HeadraceError as error:
            # It stays open: `resume` carries it on as soon as a site can take the job.
            self.note(f"{record.job}: {error.message}")
            return []
        self.note(_told(outcome))
        return [outcome]

    def _replaced(self, record: MoveRecord, site: str) -> list[Outcome]:
        """It was dropped while the move was prepared, and is there again, elsewhere: nobody has asked for a
        move of that one."""
        outcome = Outcome(record.move, site, False, reason="it was dropped and added again meanwhile")
        self.moves.end(outcome)
        self.note(_told(outcome))
        return [outcome]

    def _prepared(self, record: MoveRecord, prepared: Future[Outcome | None]) -> Outcome | None:
        """Whatever goes wrong before the job is stopped, it runs on where it is."""
        try:
            return prepared.result()
        except HeadraceError:
            raise
        except Exception as error:
            outcome = Outcome(record.move, record.source, False, reason=f"{type(error).__name__}: {error}")
            self.moves.end(outcome)
            return outcome

    def _left(self, move: Move) -> list[Outcome]:
        """Its job was dropped meanwhile. The move stays open as long as a copy may be running."""
        try:
            for site in suspects(move, self.moves.entries(move.id)):
                self.ways.clear(move.job, site)
        except HeadraceError as error:
            self._tell(str(move.id), f"{move.job} was dropped while it was moved: {error.message}")
            return []
        self._waits.pop(str(move.id), None)
        outcome = Outcome(move, move.source, False, reason="it was dropped")
        self.moves.end(outcome)
        self.moves.forget(move.job)
        return [outcome]

    def held(self) -> frozenset[str]:
        """Jobs whose move was begun, disturbs them, and has not come to its end: only that may start them."""
        begun = self.moves.open_moves()
        return frozenset(move.job for move, _ in begun if move.id not in self._preparing)

    def resume(self) -> list[Outcome]:
        """Moves that are stuck because no site could take the job."""
        for move, _ in self.moves.open_moves():
            if move.job not in self.fleet.units and move.id not in self._preparing:
                self._left(move)
        busy = set(self._preparing)
        stuck = [move for move, _ in self.moves.open_moves() if move.id not in busy]
        found = self.relocator.resume(busy) if stuck else []
        ended = [outcome for outcome in found if isinstance(outcome, Outcome)]
        for outcome in ended:
            self.note(_told(outcome))
        return ended

    def rescue(self, site: str, failed: Collection[str] = (), *, back: bool = False) -> list[Outcome]:
        """The site is lost, or is `back` as another: its jobs go on elsewhere, or there, from their
        checkpoints. Nothing is rehearsed: they stand still anyway. Those that wait for their turn are led
        elsewhere, and go on waiting. `failed` are jobs that have failed by themselves, before."""
        here = [unit for unit in self.units() if unit.site == site and unit.id not in failed]
        lost = [unit for unit in here if self._is_lost(unit)]
        if not lost:
            return []
        self.warmth.give_up()
        others = [site] if back else self._others(site)
        if not others:
            names = ", ".join(unit.id for unit in lost)
            self._tell(site, f"{site} does not answer, and no other site does: {names} wait")
            return []
        self._waits.pop(site, None)
        coming = Counter[str]()
        found: list[Outcome] = []
        moves: list[Move] = []
        for unit in lost:
            target = min(others, key=lambda name: self._distance(unit, name, coming[name]))
            record = self._ask(unit, target)
            if record is None:
                continue
            if unit.id in self.fleet.waiting:
                found += self._lead(record, unit)
            else:
                coming[target] += 1
                moves.append(record.move)
        return found + self._carry_all(moves, "" if back else site)

    def _carry_all(self, moves: Sequence[Move], silent: str) -> list[Outcome]:
        """All of them stand still: none waits until the one before it has done a batch."""
        found = self.relocator.carry_all(moves, silent)
        for move, outcome in zip(moves, found, strict=True):
            # One that is not settled stays open: `resume` carries it on as soon as a site can take the job.
            self.note(_told(outcome) if isinstance(outcome, Outcome) else f"{move.job}: {outcome.message}")
        return [outcome for outcome in found if isinstance(outcome, Outcome)]

    def _ask(self, unit: Movable, target: str) -> MoveRecord | None:
        try:
            return self.moves.get(self.moves.ask(unit.id, unit.site, target))
        except UserError:
            # A command has asked for a move of it just now: that takes it away.
            return None

    def is_over(self, unit: Movable) -> bool:
        """Whether it failed for a reason that another site would not change."""
        return self.fleet.is_refused(unit) or unit.id in self.fleet.given_up

    def _others(self, site: str) -> list[str]:
        """Sites that can take the jobs of this one. All are asked at once, and one that is slow to answer is
        waited for only where no other has: jobs stand still meanwhile."""
        sites = [one for one in self.ways.others("") if one != site]
        pool: Beside[bool] = Beside(_ASKED_AT_ONCE)
        asked = {one: pool.submit(self.ways.answers, one) for one in sites}
        left = wait(asked.values(), _SOON_SECONDS).not_done
        while left and all(map(self.ways.last_resort, _ready(asked))):
            left = wait(left, return_when=FIRST_COMPLETED).not_done
        pool.close()
        ready = _ready(asked)
        return [one for one in ready if not self.ways.last_resort(one)] or ready

    def _distance(self, unit: Movable, other: str, coming: int) -> tuple[bool, int]:
        """What makes a site the better one to take a job of another: the same region, then fewer jobs, and
        that it is not cold."""
        sites = self.project().sites
        here = sum(one.site == other for one in self.units())
        away = sites[unit.site].region != sites[other].region
        return away, here + coming + self.warmth.coldness(unit, other)

    def _is_lost(self, unit: Movable) -> bool:
        """It should run, and no move of it is open: that would take it away, too."""
        seen = self.fleet.states.get(unit.id)
        done = seen is not None and seen.state in (JobState.FINISHED, JobState.STOPPED)
        return not (done or self.is_over(unit) or self.moves.is_open(unit.id))

    def _lead(self, record: MoveRecord, unit: Movable) -> list[Outcome]:
        """It has not been started by this run: only its place changes."""
        try:
            self.ways.clear(record.job, record.source)
        except HeadraceError as error:
            self.moves.refuse(record.id, error.render())
            return []
        outcome = Outcome(record.move, record.target, True)
        self.moves.end(outcome)
        self.fleet.units[unit.id] = replace(unit, site=record.target)
        return [outcome]

    def _tell(self, site: str, text: str) -> None:
        """Once for every change: it is tried again and again."""
        if self._waits.get(site) != text:
            self._waits[site] = text
            self.note(text)

    def units(self) -> list[Movable]:
        """What can be moved."""
        return list(self.fleet.units.values())

    def queries(self, unit: Movable) -> tuple[str, ...]:
        """What it is known by where something is said of queries: its own, or itself."""
        return queries(unit) or (unit.id,)

    def stuck(self) -> bool:
        """Whether a move waits for a site that can take its job."""
        return bool(self._preparing) or bool(self.moves.open_moves())

    def close(self) -> None:
        """Moves that are being prepared are given up: the next run finds them in the journal."""
        self._pool.close()


def _ready(asked: Mapping[str, Future[bool]]) -> list[str]:
    """The sites that have said yes."""
    heard = [(site, answer) for site, answer in asked.items() if answer.done()]
    return [site for site, answer in heard if answer.exception() is None and answer.result()]


def _told(outcome: Outcome) -> str:
    move = outcome.move
    pause = "" if outcome.pause is None else f", after a pause of {outcome.pause:.1f} s"
    if outcome.moved:
        return f"{move.job} moved from {move.source} to {move.target}{pause}"
    return f"{move.job} is at {outcome.site}, not at {move.target}: {outcome.reason}"
