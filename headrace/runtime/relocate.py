"""Moves a running job from one site to another. Each step is written down before it is done:

    prepare    the target is asked to run the job over no input: session, versions, storage, all warm
    stop       the job stops at the source, when it has just ended a batch
    hand over  what it has kept is the target's: the same folder, checked, or a copy, checked; its checkpoint
               may have to go to another storage (storage.py)
    rewire     channels to and from the job are led to the target
    start      it starts at the target
    confirm    its first batch there is committed
    clean      nothing of it is left at the source

(D-CAPE, Figure 35 and Algorithm 6, with one order changed. There the channels are connected before the old
copy is ended, and its state is sent over after; here a channel is files that wait, so that nothing is lost by
stopping first, and there is never a moment at which two copies could take in the same rows.)

A crash, of the manager or of a site, at any step ends in one running copy. `resume` reads the journal:

- Before the hand-over was written down, the job belongs to the source; after that, to the target. Where that
  site is dead, it goes to any other that answers, from the same checkpoint.
- A copy may be left at the source, and wherever the journal says a start was tried. None is believed to be
  dead because it should be: the fence (`Sites.clear`) must say so of each, before anything is handed over.
  Where the fence cannot say so, nothing is started and the move stays open, to be resumed later: for a while
  there may be no copy, and never two.

When a move fails because of the target, the job goes back where it was. What goes wrong before `stop` does
not disturb the job at all.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from headrace.errors import EngineError, HeadraceError
from headrace.runtime.executor import ENDED, JobState, Progress
from headrace.runtime.handover import Position, check, hand_over, pause_after, position_of, retire
from headrace.runtime.spark.checkpoint import last_committed, last_planned
from headrace.runtime.storage import StorageSilent, keep_at, kept_in, tidy

_AT_ONCE = 8
PRICE = "price"
"""Among the facts of the last step: milliseconds for which the job stood still because it was moved."""


class Step(StrEnum):
    PREPARE = "prepare"
    STOP = "stop"
    HAND_OVER = "hand over"
    REWIRE = "rewire"
    START = "start"
    CONFIRM = "confirm"
    CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class Move:
    id: int
    job: str
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One step that is about to be done at a site. `facts` are texts and whole numbers."""

    step: Step
    site: str
    facts: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a move ended. `site` is where the job runs now; `moved`: whether that is the target."""

    move: Move
    site: str
    moved: bool
    pause: float | None = None
    """Seconds from the last batch at the old site to the first at the new one; None: there were not both."""
    reason: str = ""
    """Why it is not where it was to go."""


class Unsettled(EngineError):
    """Nowhere can the job be started now; the move stays open and is resumed later."""

    kind = "move not settled"


class Journal(Protocol):
    """Keeps entries for good: `write` and `end` return once a power cut would not lose them."""

    def write(self, move: Move, entry: Entry) -> None: ...

    def end(self, outcome: Outcome) -> None: ...

    def open_moves(self) -> Sequence[tuple[Move, Sequence[Entry]]]:
        """Moves that were begun and have not ended, with all that was written, the oldest first."""
        ...


class Sites(Protocol):
    """What a move needs of the sites. Every call may raise a HeadraceError."""

    def answers(self, site: str) -> bool: ...

    def others(self, job: str) -> Sequence[str]:
        """Sites that could take the job where neither source nor target can, the best first."""
        ...

    def prepare(self, job: str, site: str) -> None:
        """Make the site ready for the job, without touching what the job has kept."""
        ...

    def runs(self, job: str, site: str) -> bool:
        """Whether this process has a copy of the job running there. It knows nothing of other processes."""
        ...

    def stop(self, job: str, site: str) -> None:
        """Stop the copy that this process has there, at a batch boundary."""
        ...

    def clear(self, job: str, site: str) -> None:
        """The fence. Return once no copy of the job is running there, whoever started it; stop or kill one
        that is. Raises where that cannot be known."""
        ...

    def state(self, job: str, site: str) -> Path:
        """The job's folder as the site sees it."""
        ...

    def keeps(self, job: str, site: str) -> Path | None:
        """Where the site has the checkpoints of the job, other than in the job's folder."""
        ...

    def start(self, job: str, site: str) -> None: ...

    def progress(self, job: str) -> Progress: ...


Carrying = Generator[None, None, Outcome]
"""A move on its way. It pauses whenever its job was started somewhere and has to be waited for."""
Hook = Callable[[Move, str], None]
"""(move, the site the job will run at): leads a channel there. May be called again after a crash."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds. `first_batch`: until a start is given up; `quiet`: a job that has run for so long without a
    batch has no input, and need not be waited for; `look`: between two looks; `between`: for which the end
    of a batch is waited for, at most, before a job is stopped in the midst of one."""

    first_batch: float = 60.0
    quiet: float = 10.0
    look: float = 0.05
    between: float = 3.0


class Relocator:
    """Carries moves through. Calls for different jobs may come from several threads."""

    def __init__(
        self,
        sites: Sites,
        journal: Journal,
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        hooks: Sequence[Hook] = (),
        patience: Patience | None = None,
    ) -> None:
        self._sites, self._journal, self._clock, self._sleep = sites, journal, clock, sleep
        self._hooks, self._patience = hooks, patience or Patience()

    # -- moving -------------------------------------------------------------------------------------

    def move(self, move: Move) -> Outcome:
        """All steps. Raises Unsettled where the job can be started nowhere at the moment."""
        refused = self.prepare(move)
        return refused or self.carry(move)

    def move_all(self, moves: Sequence[Move]) -> list[Outcome | HeadraceError]:
        """Several jobs at once; one that fails does not keep the others."""

        def one(move: Move) -> Outcome | HeadraceError:
            try:
                return self.move(move)
            except HeadraceError as error:
                return error

        if not moves:
            return []
        with ThreadPoolExecutor(min(len(moves), _AT_ONCE)) as pool:
            return list(pool.map(one, moves))

    def prepare(self, move: Move) -> Outcome | None:
        """The first step, which may take long and disturbs nobody. The outcome, where the target cannot take
        the job: the job runs on where it is. A source that is dead is no reason to stay there."""
        self._journal.write(move, Entry(Step.PREPARE, move.target))
        try:
            self._sites.prepare(move.job, move.target)
        except HeadraceError as error:
            if self._sites.answers(move.source):
                return self._end(Outcome(move, move.source, False, reason=error.render()))
        return None

    def carry(self, move: Move) -> Outcome:
        """The steps after `prepare`. They begin when the job has just ended a batch, if that is soon, and not
        at all where the target is not there any more: the job runs well where it is."""
        # Asked before the wait, so that the pause is not longer by it; a dead source is for the fence.
        alive = self._sites.answers(move.source)
        if alive and not self._sites.answers(move.target):
            return self._end(Outcome(move, move.source, False, reason=f"{move.target} does not answer"))
        if alive:
            self._await_commit(move)
        return _ended(self._carrying(move, alive))

    def carry_all(self, moves: Sequence[Move], silent: str = "") -> list[Outcome | HeadraceError]:
        """The same for several jobs that stand still, by one thread: all are started before the first is
        waited for. `silent`: a site that is known not to answer, and need not be asked once for every job."""
        return _all([self._carrying(move, False if move.source == silent else None) for move in moves])

    def _carrying(self, move: Move, alive: bool | None) -> Carrying:
        """`alive`: whether the source answers; None: nobody has asked it."""
        entries = [Entry(Step.PREPARE, move.target)]
        alive = self._sites.answers(move.source) if alive is None else alive
        began = self._clock()
        self._write(move, entries, Entry(Step.STOP, move.source))
        reason = "" if alive else f"{move.source} does not answer"
        try:
            if alive:
                self._sites.stop(move.job, move.source)
        except HeadraceError as error:
            reason = error.render()
        # The target has just been asked, and asking again would be part of the pause.
        order = [move.target, move.source]
        told = self._settle(move, entries, order, reason, move.target, None if reason else began)
        return (yield from told)

    def _await_commit(self, move: Move) -> None:
        """Until a batch has just ended, if one will soon. Stopped in the midst of one, the job would do it
        again at the target, and all that was done of it would be part of the pause."""
        # Nothing that goes wrong here may keep the job where it is: it is only for a shorter pause.
        with suppress(HeadraceError, OSError, ValueError):
            state, most = self._sites.state(move.job, move.source), self._patience.between
            checkpoint = kept_in(state)
            newest = last_committed(checkpoint)
            apart = pause_after(state, newest - 1) or 0.0
            if apart > most and last_planned(checkpoint) <= newest:
                return
            # Batches that are not there by then have no input, or take too long to wait for.
            until = self._clock() + min(most, 2 * apart)
            while self._clock() < until and last_committed(checkpoint) == newest:
                if not self._sites.runs(move.job, move.source) or self._has_ended(move.job):
                    return
                self._sleep(self._patience.look)

    def _has_ended(self, job: str) -> bool:
        return self._sites.progress(job).state in ENDED

    # -- after a crash ------------------------------------------------------------------------------

    def resume(self, but: Container[int] = ()) -> list[Outcome | HeadraceError]:
        """Carry every open move to an end: one running copy of each job. All jobs are started before the
        first is waited for. `but`: moves, by their ids, that somebody is preparing."""
        left = [(move, entries) for move, entries in self._journal.open_moves() if move.id not in but]
        return _all([self._resuming(move, list(entries)) for move, entries in left])

    def _resuming(self, move: Move, entries: list[Entry]) -> Carrying:
        if not is_handed_over(entries):
            if self._sites.runs(move.job, move.source):
                return self._end(Outcome(move, move.source, False, reason="the move was interrupted"))
            order = [move.source, move.target]
        else:
            order = [wanted_at(move, entries), move.target, move.source]
        return (yield from self._settle(move, entries, order, "the move was interrupted"))

    def place(self, move: Move, entries: Sequence[Entry]) -> tuple[str, str]:
        """For a manager that starts all its jobs anew: what `resume` does, up to the start. The site where
        the job is to be started, and what is wrong with what it has kept; the move is ended by the caller.

        A folder that is not as it was left is no reason to stop there where the move has not carried it
        anywhere: nobody would have looked, had there been no move, and a start looks for itself."""
        made = list(entries)
        self._clear(move, made)
        wanted = wanted_at(move, made)
        order = _different([wanted, move.target, move.source, *self._sites.others(move.job)])
        site = next((one for one in order if self._sites.answers(one)), wanted)
        left, here = (self._sites.state(move.job, one) for one in (home_of(move, made), site))
        try:
            self._hand_over(move, made, site)
        except (HeadraceError, ValueError) as error:
            if left != here:
                raise
            return site, error.render() if isinstance(error, HeadraceError) else str(error)
        return site, ""

    # -- the steps ----------------------------------------------------------------------------------

    def _settle(
        self,
        move: Move,
        entries: list[Entry],
        order: Iterable[str],
        reason: str,
        sure: str = "",
        began: float | None = None,
    ) -> Carrying:
        """Start one copy at the first of these sites that can, or at any other. `began`: when the job was
        told to stop, if it ran until then."""
        told, tried = [reason] if reason else [], ""
        for site in _different([*order, *self._sites.others(move.job)]):
            if site != sure and not self._sites.answers(site):
                told.append(f"{site} does not answer")
                continue
            self._clear(move, entries)
            try:
                pause = yield from self._run_at(move, entries, site)
            except StorageSilent as error:
                # No site could start it from anything but what cannot be read.
                raise Unsettled(
                    f"job {move.job} waits: {error.message}. {error.hint}", detail=error.detail
                ) from error
            except HeadraceError as error:
                told.append(error.render())
                tried = site
                continue
            moved = site == move.target
            # A job without input has paused long before it was stopped, and it is no price of the move.
            paid = None if pause is None or began is None else min(pause, self._clock() - began)
            self._clean(move, entries, site, paid if moved else None)
            return self._end(Outcome(move, site, moved, pause, "" if moved else "\n".join(told)))
        if tried and self._sites.answers(tried):
            # It is not for want of a site: it has failed, and stays where it failed last.
            self._clear(move, entries)
            return self._end(Outcome(move, tried, False, reason="\n".join(told)))
        raise Unsettled(
            f"job {move.job} can be started nowhere now: it waits, with all it has kept",
            detail="\n".join(told),
            hint="Start a site; the move is carried on from its journal.",
        )

    def _clear(self, move: Move, entries: Iterable[Entry]) -> None:
        """No copy is left anywhere, or this raises."""
        for site in suspects(move, entries):
            self._sites.clear(move.job, site)

    def _run_at(self, move: Move, entries: list[Entry], site: str) -> Generator[None, None, float | None]:
        """Start there and see it run; the pause."""
        at = self._hand_over(move, entries, site)
        self._write(move, entries, Entry(Step.REWIRE, site))
        for hook in self._hooks:
            hook(move, site)
        self._write(move, entries, Entry(Step.START, site))
        self._sites.start(move.job, site)
        began = self._clock()
        self._write(move, entries, Entry(Step.CONFIRM, site))
        yield
        self._confirm(move, site, began)
        return pause_after(self._sites.state(move.job, site), at.batch)

    def _hand_over(self, move: Move, entries: list[Entry], site: str) -> Position:
        """From whoever has it. What was left is known from the journal, so that it is checked against what
        the last copy had, and not against itself."""
        holder = home_of(move, entries)
        left, here = (self._sites.state(move.job, one) for one in (holder, site))
        found = position_of(left)
        facts: dict[str, str | int] = {
            "from": holder,
            "fingerprint": found.fingerprint,
            "batch": found.batch,
        }
        promised = _promised(entries) or found
        self._write(move, entries, Entry(Step.HAND_OVER, site, facts))
        hand_over(left, here, promised)
        keep_at(here, self._sites.keeps(move.job, site))
        check(here, promised)
        return found

    def _confirm(self, move: Move, site: str, began: float) -> None:
        """Until a batch was run there. Raises EngineError where that does not come about."""
        while True:
            seen, waited = self._sites.progress(move.job), self._clock() - began
            if seen.state is JobState.FINISHED or (seen.batch is not None and seen.state not in ENDED):
                return
            if seen.state in ENDED:
                raise EngineError(f"job {move.job} {seen.state} at {site}", detail=seen.error)
            quiet = seen.state is JobState.RUNNING and waited >= self._patience.quiet
            if quiet and self._sites.answers(site):
                return
            if waited >= self._patience.first_batch:
                raise EngineError(f"job {move.job} had no batch at {site} in {waited:.0f} seconds")
            self._sleep(self._patience.look)

    def _clean(self, move: Move, entries: list[Entry], site: str, paid: float | None) -> None:
        """Nobody can start from what another storage still has of the job."""
        facts = {} if paid is None else {PRICE: max(0, round(paid * 1000))}
        self._write(move, entries, Entry(Step.CLEAN, site, facts))
        here = self._sites.state(move.job, site)
        for other in suspects(move, entries):
            retire(self._sites.state(move.job, other), here)
        places: list[Path | None] = []
        for other in suspects(move, entries):
            # The job runs. What is left in a storage that is gone by now is swept when it is back.
            with suppress(HeadraceError):
                places.append(self._sites.keeps(move.job, other))
        tidy(here, places)

    def _write(self, move: Move, entries: list[Entry], entry: Entry) -> None:
        self._journal.write(move, entry)
        entries.append(entry)

    def _end(self, outcome: Outcome) -> Outcome:
        self._journal.end(outcome)
        return outcome


def _ended(carrying: Carrying) -> Outcome:
    """Carried on to its end."""
    while True:
        try:
            next(carrying)
        except StopIteration as end:
            found: Outcome = end.value
            return found


def _all(begun: Sequence[Carrying]) -> list[Outcome | HeadraceError]:
    """Each as far as the start of its job, then each to its end. One that fails does not keep the others."""
    found = [_stepped(one) for one in begun]
    return [_finished(one) if ended is None else ended for one, ended in zip(begun, found, strict=True)]


def _finished(carrying: Carrying) -> Outcome | HeadraceError:
    try:
        return _ended(carrying)
    except HeadraceError as error:
        return error


def _stepped(carrying: Carrying) -> Outcome | HeadraceError | None:
    """Up to the start of its job; None: it goes on from there."""
    try:
        next(carrying)
    except StopIteration as end:
        found: Outcome = end.value
        return found
    except HeadraceError as error:
        return error
    return None


def is_handed_over(entries: Iterable[Entry]) -> bool:
    """Whether the job no longer belongs to the source."""
    return any(entry.step is Step.HAND_OVER for entry in entries)


def wanted_at(move: Move, entries: Iterable[Entry]) -> str:
    """Where the job belongs: at the source, or where it was handed over to last."""
    given = [entry.site for entry in entries if entry.step is Step.HAND_OVER]
    return given[-1] if given else move.source


def home_of(move: Move, entries: Iterable[Entry]) -> str:
    """The site whose folder has all that the job has kept. A hand-over that nothing follows may be half done;
    the one it comes from still has everything."""
    home, coming = move.source, ""
    for entry in entries:
        if coming and entry.step is not Step.HAND_OVER:
            home, coming = coming, ""
        if entry.step is Step.HAND_OVER:
            coming = entry.site
    return home


def suspects(move: Move, entries: Iterable[Entry]) -> list[str]:
    """Where a copy may be running: at the source, and wherever a start was tried."""
    return _different([move.source, *(entry.site for entry in entries if entry.step is Step.START)])


def _promised(entries: Iterable[Entry]) -> Position | None:
    """The furthest that a hand-over has seen the job come."""
    seen = [
        Position(str(entry.facts["fingerprint"]), int(entry.facts["batch"]))
        for entry in entries
        if entry.step is Step.HAND_OVER
    ]
    return max(seen, key=lambda one: one.batch, default=None)


def _different(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
