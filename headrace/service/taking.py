"""Add and drop on a running project: trees are stopped and started with other members.

    journal: pending -> (one transaction: deployment and change) -> stop -> start -> seen running: settled

Several pending changes are applied together, with one stop and one start of each tree. A tree that does not
start with a new member is started without it, and the change is refused. A job whose move cannot be ended is
left to that move, which knows where a copy may still run: changes to it wait, and those beside them too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta

from headrace.errors import SiteSilent, UserError
from headrace.plan.channels import pruned
from headrace.plan.placed import TreeJob
from headrace.runtime.executor import ENDED, JobState
from headrace.service.deployment import Wanted
from headrace.service.distributing import is_free
from headrace.service.fleet import Fleet, Unit, queries, units_of
from headrace.service.keeper import Keeper
from headrace.service.moments import Clock, timestamp
from headrace.service.spread_records import Spread, gone_makers
from headrace.service.telling import tell
from headrace.state.records import Change
from headrace.state.store import Store

_QUIET = timedelta(seconds=10)
"""A tree that runs and has had no batch for so long has no input; a change need not wait for that."""


class Taking:
    def __init__(
        self, keeper: Keeper, fleet: Fleet, store: Store, clock: Clock, note: Callable[[str], None]
    ) -> None:
        self._keeper, self._fleet, self._store, self._clock = keeper, fleet, store, clock
        self._note = note
        self._open = list(store.unsettled())
        self._stopped: dict[str, datetime] = {}
        """When each tree was stopped for a change that is not settled yet."""
        self._started: dict[str, datetime] = {}
        self._left: dict[int, str] = {}
        """The tree that the query of a drop was in."""
        self.lost: Callable[[], Collection[str]] | None = None
        """Sites that do not answer, as far as is known, and whose jobs go elsewhere. None: nobody watches."""
        self.held: Callable[[], Collection[str]] = tuple
        """Jobs in the middle of a move, of which a copy may run that this process does not know."""
        self._deferred: tuple[frozenset[str], frozenset[int]] | None = None
        self._waits = ""
        """The changes that were last found to wait, and for which jobs."""

    @property
    def busy(self) -> bool:
        """Whether somebody waits for a change to be seen running."""
        return any(self._unit_id(change) is not None for change in self._open)

    # -- starting -----------------------------------------------------------------------------------

    def start(self, unit: Unit) -> None:
        self._started[unit.id] = self._clock()
        error = self._fleet.start(self._keeper.project, unit)
        if error is not None and not self._goes_elsewhere(unit, error):
            self._without_newcomers(unit, error)
        self._keeper.remove(lambda doomed: doomed.tree == unit.id)

    def _goes_elsewhere(self, unit: Unit, error: UserError) -> bool:
        """Its site does not answer, which was not known yet; and it has not asked for that one."""
        silent = self.lost is not None and isinstance(error, SiteSilent)
        return silent and is_free(self._keeper.project, queries(unit))

    def _without_newcomers(self, unit: Unit, error: UserError) -> None:
        names = queries(unit)
        new = [change for change in self._open if change.kind == "add" and change.query in names]
        if not new:
            return
        self._keeper.take_back(new, error.render())
        self._settled(new)
        gone = {change.query for change in new}
        self._fleet.leave(gone)
        for change in new:
            self._note(f"{change.query} was not added: {error.message}")
        if isinstance(unit, TreeJob) and gone != set(names):
            rest = tuple(member for member in unit.members if member.query not in gone)
            self._fleet.start(self._keeper.project, replace(unit, members=rest))
        else:
            self._fleet.forget(unit.id)
            self._without_makers()
            self._keeper.remove_ready()

    def _without_makers(self) -> None:
        """Nobody is left to read what they make."""
        spread = self._fleet.spread
        kept = pruned(spread.plan, self._keeper.channels.ends)
        gone = [one for one in gone_makers(spread.plan, kept) if one in self._fleet.units]
        self._fleet.stop(gone)
        for one in gone:
            self._fleet.forget(one)
        self._fleet.feed(self._keeper.project, replace(spread, plan=kept))

    # -- taking -------------------------------------------------------------------------------------

    def take(self) -> None:
        """Apply what commands have asked for."""
        if not self._store.any_pending():
            return
        held, pending = frozenset(self.held()), self._store.edits().pending
        asked = held, frozenset(change.id for change in pending)
        if held and asked == self._deferred:
            return
        self._deferred = None
        failed = [unit for unit, p in self._fleet.states.items() if p.state in ENDED]
        before = {c.id: self._place(c.query) for c in pending if c.kind == "drop"}

        def may(wanted: Wanted) -> bool:
            if self._leaves_alone(wanted, held):
                return True
            self._deferred = asked
            self._tell_waiting(pending, held)
            return False

        down = () if self.lost is None else self.lost()
        wanted = self._keeper.take(self._names(), [*failed, *held], down, may)
        if self._keeper.waits != self._waits:
            self._waits = self._keeper.waits
            if self._waits:
                self._note(f"changes wait, and are tried again: {self._waits}")
        if wanted is not None:
            self._left |= {change: tree for change, tree in before.items() if tree is not None}
            self._open = list(self._store.unsettled())
            self._change(self._units(wanted, held), Spread(wanted.channels, wanted.placed))

    def _units(self, wanted: Wanted, held: Collection[str]) -> list[Unit]:
        """What should run. What is held is where its move has it: a home would be that of before."""
        units = units_of(wanted.placed, self._keeper.project.queries, wanted.channels)
        sites = {one: self._fleet.units[one].site for one in held if one in self._fleet.units}
        return [replace(unit, site=sites.get(unit.id, unit.site)) for unit in units]

    def _leaves_alone(self, wanted: Wanted, held: Collection[str]) -> bool:
        """Whether what is held stays as it is, or is no more and does not come again."""
        after = {unit.id: unit for unit in self._units(wanted, held)} if held else {}
        return all(after.get(one) == self._fleet.units.get(one) for one in held)

    def _tell_waiting(self, pending: Collection[Change], held: Collection[str]) -> None:
        asked = ", ".join(f"{change.kind} {change.query}" for change in pending)
        jobs = ", ".join(sorted(held))
        self._note(f"{asked}: waits for the end of the move of {jobs}, of which a copy may still run")

    def _names(self) -> list[str]:
        return [name for unit in self._fleet.units.values() for name in queries(unit)]

    def _place(self, query: str) -> str | None:
        unit = self._fleet.unit_of(query)
        return None if unit is None else unit.id

    def _change(self, units: Collection[Unit], spread: Spread) -> None:
        """From what runs to what should run: stops first, so that no query ever runs twice."""
        after = {unit.id: unit for unit in units}
        touched = [one for one, before in self._fleet.units.items() if after.get(one) != before]
        self._fleet.leave(set(self._names()) - {name for unit in units for name in queries(unit)})
        self._stopped |= {one: self._clock() for one in touched if one in after}
        self._fleet.stop(touched)
        for one in touched:
            self._fleet.forget(one)
        self._keeper.remove_ready()
        self._fleet.feed(self._keeper.project, spread)
        for unit in units:
            if unit.id not in self._fleet.units:
                self.start(unit)

    # -- settling -----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Write down the changes that have been seen running, from when on they are valid, and for how long
        the others of their tree stood still."""
        done = [change for change in self._open if self._seen(change)]
        for change in done:
            self._write(change)
        self._settled(done)

    def _unit_id(self, change: Change) -> str | None:
        return self._left.get(change.id) if change.kind == "drop" else self._place(change.query)

    def _seen(self, change: Change) -> bool:
        unit = self._unit_id(change)
        if unit is None:
            return change.kind == "drop"
        progress = self._fleet.states.get(unit)
        if progress is None:
            # A drop whose tree is gone is done; an add waits for its turn.
            return unit not in self._fleet.units
        if self.lost is not None and unit in self._fleet.silent and progress.state is JobState.FAILED:
            # It is started at another site, or there when that is back.
            return False
        quiet = self._clock() - self._started.get(unit, self._clock()) >= _QUIET
        running = progress.state is not JobState.STARTING and (progress.batch is not None or quiet)
        return running or progress.state in ENDED

    def _write(self, change: Change) -> None:
        unit = self._unit_id(change)
        progress = self._fleet.seen.get(change.query)
        valid_from = None if progress is None else progress.valid_from
        state = None if unit is None else self._fleet.states.get(unit)
        stopped = None if unit is None else self._stopped.get(unit)
        ran = state is not None and state.batch is not None
        pause = (self._clock() - stopped).total_seconds() if stopped is not None and ran else None
        told = replace(change, valid_from=valid_from, pause=pause, settled=timestamp(self._clock))
        if change.kind == "add" and progress is not None and progress.state is JobState.FAILED:
            told = replace(told, message=f"it failed: {progress.error}")
        self._store.settle(told)
        self._note(tell(told, self._keeper.deployment))

    def _settled(self, done: list[Change]) -> None:
        self._open = [change for change in self._open if change not in done]
        if not self._open:
            self._stopped.clear()
