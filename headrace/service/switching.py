"""Live re-choice: while a run goes on, its splits are looked at again at the rates that are seen.

    looks -> [ both jobs ] -> old one bounded -> new one started -> old one finished -> [ the new one ]

A handover is at an instant V: the old job gives the windows that end by V, the new one all later ones. It is
written down first ([ ] = one transaction), so that after a kill the next run finds one job or both, each with
its bound. A new job is started only once the old one has taken its bound; where that comes too late, since a
later window may have been given, V is moved on and written down again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from headrace.catalog.model import Project
from headrace.errors import EngineError
from headrace.plan.federated import Engine, FederatedJob, FederatedMember
from headrace.plan.logical import Window, nodes, streams_of
from headrace.runtime.executor import ENDED, JobState
from headrace.service.estimates import expected_rate
from headrace.service.federated_records import giving, live
from headrace.service.federating import Choice, can_be_handed_over, choose
from headrace.service.federating_load import readers_of_too_much, split_cost
from headrace.service.federating_seen import load_seen, save_seen
from headrace.service.fleet import Fleet, Unit
from headrace.service.keeper import Engines, Keeper
from headrace.service.layout import job_folder
from headrace.service.moments import Clock
from headrace.service.rechoosing import Looks, Rules, Seen, handover_at, seen_at
from headrace.units import format_instant

Start = Callable[[Unit], None]


@dataclass(frozen=True, slots=True)
class _Handover:
    old: FederatedJob
    """With its bound."""
    new: FederatedJob

    @property
    def queries(self) -> tuple[str, ...]:
        return tuple(member.query for member in self.new.members)

    @property
    def at(self) -> int:
        return max(member.after or 0 for member in self.new.members)


class Switching:
    def __init__(
        self,
        keeper: Keeper,
        fleet: Fleet,
        clock: Clock,
        note: Callable[[str], None],
        rules: Rules | None = None,
    ) -> None:
        self._keeper, self._fleet, self._clock, self._note = keeper, fleet, clock, note
        self._rules = rules or Rules()
        self._looks = Looks(self._rules, known=load_seen(keeper.project))
        self._began = clock()
        self._looked: datetime | None = None
        self._held: list[_Handover] = []
        """New jobs that wait for the old one to take its bound."""

    @property
    def busy(self) -> bool:
        return bool(self._held)

    def prepare(self, units: Sequence[Unit]) -> list[Unit]:
        """What to start at the beginning of a run. A job that takes over from another and was never started
        waits here; the other one is started without its bound, which it may have refused."""
        for new in units:
            if isinstance(new, FederatedJob) and self._never_started(new):
                old = next((unit for unit in units if _hands_over(unit, new)), None)
                if isinstance(old, FederatedJob):
                    self._held.append(_Handover(old, new))
        waiting = {held.new.id for held in self._held}
        free = {held.old.id: held for held in self._held}
        return [_unbounded(unit, free.get(unit.id)) for unit in units if unit.id not in waiting]

    def _never_started(self, job: FederatedJob) -> bool:
        return not job_folder(self._keeper.project, job.id).exists()

    def look(self, start: Start, *, anew: bool = True) -> None:
        """Take the next step of every handover and, with `anew`, see now and then whether there should be
        another: not while the input is read to its end, which would be read once more."""
        for held in list(self._held):
            self._go_on(held, start)
        for job in self._jobs():
            self._retire(job)
        if anew and self._due():
            for job in self._jobs():
                self._observe(job)
                self._rechoose(job)

    def _due(self) -> bool:
        now = self._clock()
        if self._looked is not None and (now - self._looked).total_seconds() < self._rules.every:
            return False
        self._looked = now
        return True

    def _jobs(self) -> list[FederatedJob]:
        return [unit for unit in self._fleet.units.values() if isinstance(unit, FederatedJob)]

    # -- whether ------------------------------------------------------------------------------------

    def _seconds(self) -> float:
        return (self._clock() - self._began).total_seconds()

    def _observe(self, job: FederatedJob) -> None:
        """A job that has taken over reads what was before, too, which says nothing of now."""
        progress = self._fleet.states.get(job.id)
        if progress is None or progress.state in ENDED or progress.watermark is None:
            return
        if progress.watermark > max(member.after or 0 for member in job.members):
            made = {(query, number): rows for query, number, rows in progress.made}
            self._looks.see(job.id, Seen(progress.input_rows, progress.watermark, self._seconds(), made))
            for member in live(job):
                # Also while it hands over: the next one may not see as much.
                self._looks.learn(job.id, member, self._seconds())

    def _rechoose(self, job: FederatedJob) -> None:
        rate, project = self._looks.rate(job.id, self._seconds()), self._keeper.project
        progress = self._fleet.states.get(job.id)
        if rate is None or progress is None or progress.state is not JobState.RUNNING:
            return
        if any(held.old.id == job.id for held in self._held):
            return  # What is written down of the job has a bound that it has not taken yet.
        found: dict[str, Engines] = {}
        reasons: dict[str, str] = {}
        for member in self._free(job):
            choice, why = self._judged(project, job, member, rate)
            if why:
                found[member.query], reasons[member.query] = choice.engines, why
        leaving = _together(found)
        held = f", {progress.state_rows:,} rows held" if progress.state_rows else ""
        for query in leaving:
            self._note(f"{query}: another split is better at {rate:,.4g} rows/s{held}: {reasons[query]}")
        if leaving:
            self._hand_over(job, leaving)

    def _free(self, job: FederatedJob) -> Iterable[FederatedMember]:
        """The members that may be moved: the planner chose for them, and no handover is under way."""
        queries = self._keeper.project.queries
        everyone = [*self._jobs(), *(held.new for held in self._held)]
        for member in live(job):
            known = queries.get(member.query)
            alone = member.until is None and len(giving(everyone, member.query)) == 1
            if known is not None and alone and can_be_handed_over(self._keeper.project, known, member.plan):
                yield member

    def _judged(
        self, project: Project, job: FederatedJob, member: FederatedMember, rate: float
    ) -> tuple[Choice, str]:
        """The best split at this rate and these sizes, and why it is to be taken; nothing where it is not."""
        streams = {name for one in job.members for name in streams_of(one.plan)}
        declared = {name: expected_rate(project.streams[name]) for name in streams}
        known = self._looks.known.get(member.plan_fingerprint, {})
        rates, seen = seen_at(member.plan, known, declared, rate)
        query = project.queries[member.query]
        choice = choose(project, query, member.plan, site=job.site, rates=rates, seen=seen, reorder=False)
        assert isinstance(choice, Choice)  # It runs split, so it can be.
        current, problem, _ = split_cost(project, job.site, member, rates, seen)
        fits = not readers_of_too_much(problem, current.engines)
        verdict = self._looks.judge(job.id, member.query, current, choice.answer.split, fits=fits)
        return choice, verdict.why if verdict.switch else ""

    # -- how ----------------------------------------------------------------------------------------

    def _hand_over(self, old: FederatedJob, engines: dict[str, Engines]) -> None:
        at = self._instant(old, engines)
        if at is None:
            return
        self._save()
        written = self._keeper.hand_over(old, engines, at)
        if written is not None:
            self._held.append(_Handover(*written))

    def _save(self) -> None:
        deployed = {member.plan_fingerprint for job in self._jobs() for member in job.members}
        known = {name: one for name, one in self._looks.known.items() if name in deployed}
        save_seen(self._keeper.project, known)

    def _instant(self, old: FederatedJob, queries: Iterable[str]) -> int | None:
        """None: the old job has taken nothing in yet."""
        seen = self._fleet.seen_until(old.id)
        if seen is None:
            return None
        plans = [member.plan for member in old.members if member.query in set(queries)]
        specs = [node.spec for plan in plans for node in nodes(plan) if isinstance(node, Window)]
        return handover_at(seen, max(spec.range for spec in specs), max(spec.slide for spec in specs))

    def _go_on(self, held: _Handover, start: Start) -> None:
        if held.old.id not in self._fleet.states:
            return  # It waits for its turn itself.
        try:
            # Where it is now: it may have been moved since.
            old = replace(held.old, site=self._fleet.units[held.old.id].site)
            bounded = self._fleet.bound(old, held.queries, held.at)
        except EngineError:
            return  # Its site is lost. Another one takes it over, and then the bound.
        self._held.remove(held)
        if bounded:
            when = format_instant(held.at)
            self._note(f"{', '.join(held.queries)}: windows that end after {when} are given by {held.new.id}")
            start(held.new)
        else:
            self._held.append(self._later(held))

    def _later(self, held: _Handover) -> _Handover:
        """The bound came too late: another one, written down in place of the first."""
        engines = {member.query: member.engines for member in held.new.members}
        at = self._instant(held.old, engines)
        written = None if at is None else self._keeper.hand_over(held.old, engines, at, instead=held.new)
        return held if written is None else _Handover(*written)

    def _retire(self, job: FederatedJob) -> None:
        """A job that has given all it is to give, while others give the rest."""
        progress = self._fleet.states.get(job.id)
        over = progress is not None and progress.state is JobState.FINISHED
        if not over or any(member.until is None for member in live(job)) or self._held:
            return
        others = [other for other in self._jobs() if other.id != job.id]
        if all(giving(others, member.query) for member in live(job)) and self._keeper.retire(job):
            self._save()
            self._fleet.forget(job.id)
            self._keeper.remove_ready()


def _together(found: dict[str, Engines]) -> dict[str, Engines]:
    """Of those that are to leave a job, the ones that share the next. A query that goes to Spark alone gets
    a job to itself, as in `split_jobs`; then it is the others' turn."""
    for query, engines in found.items():
        if Engine.DUCKDB not in engines:
            return {query: engines}
    return found


def _hands_over(unit: Unit, new: FederatedJob) -> bool:
    if not isinstance(unit, FederatedJob):
        return False
    after = {member.query: member.after for member in new.members}
    return any(m.until is not None and m.until == after.get(m.query) for m in live(unit))


def _unbounded(unit: Unit, held: _Handover | None) -> Unit:
    if held is None or not isinstance(unit, FederatedJob):
        return unit
    members = (replace(m, until=None) if m.query in held.queries else m for m in unit.members)
    return replace(unit, members=tuple(members))
