"""Which jobs of a run should be elsewhere, from what was gathered of it; and asking for it, now and then.

    gathered -> Problem as it was seen -> policy (planners/distribution) -> moves -> state/moves.py

A job is an operator here, and a site a query processor. What a move costs is measured: its pause is that of
the latest moves. Sites of several regions have two tiers of managers (planners/distribution/regional.py):
regions even out their own sites, and jobs go from one to another only where a whole region is too full.

Against oscillation: the dead band and the margin of the policies, a rest for every job that was moved,
patience before the first move, and nothing is decided while moves go on, jobs start, or the last move is so
young that the figures are still those of before.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median
from typing import Literal

from headrace.catalog.model import Project
from headrace.catalog.model import Site as Declared
from headrace.errors import HeadraceError, UserError
from headrace.ids import did_you_mean
from headrace.planners.distribution.costs import MODELS, Costing, CostTable
from headrace.planners.distribution.observed import (
    Observations,
    OperatorSeen,
    SiteSeen,
    with_observations,
)
from headrace.planners.distribution.problem import Operator, Problem, Query, Site, Stream
from headrace.planners.distribution.regional import label, redistribute_tiers
from headrace.planners.distribution.rules import Decision, History, Rules
from headrace.planners.distribution.solve import DEFAULT_MODEL
from headrace.runtime.executor import JobState
from headrace.service.distributing import is_free
from headrace.service.estimates import expected_rate
from headrace.service.fleet import Fleet
from headrace.service.gathered import Gathered
from headrace.service.gathering import Gathering, Note
from headrace.service.probing import REMOTE
from headrace.service.spreading import used_sites
from headrace.state.moves import MoveRecord, Moves

Mode = Literal["off", "dry", "auto"]
MODES: tuple[Mode, ...] = ("off", "dry", "auto")
POLICIES: Mapping[str, str] = {"ours": "pays", "balance": "balance", "degradation": "degradation"}
"""As users call them, and as the planner does."""
MODEL = DEFAULT_MODEL
EVERY = 30.0
SETTLE = 20.0
"""Seconds after a move in which the figures are still those of before."""
LATEST = 100
"""Moves of the journal that are looked at."""
_AVOID = 300.0
"""Seconds in which a site is given nothing after a move to it has failed."""
_LEAST_GAIN = 5.0
"""Percent. Costs are measured, and vary: with less, jobs would follow the noise."""
_HISTORY = "history of {}"


@dataclass(frozen=True, slots=True)
class How:
    """`policy` by the name that users know."""

    policy: str = "ours"
    model: str = MODEL
    rules: Rules = field(default_factory=Rules)


def how_of(policy: str, model: str, patience: float = 0.0) -> How:
    """Raises UserError for names that do not exist."""
    for what, name, known in (("policy", policy, POLICIES), ("cost model", model, MODELS)):
        if name not in known:
            raise UserError(f'there is no {what} "{name}"', hint=did_you_mean(name, known, f"{what} names"))
    return How(policy, model, Rules(patience=patience, least_gain=_LEAST_GAIN))


# -- the problem ------------------------------------------------------------------------------------


def problem_of(project: Project, gathered: Gathered, homes: Mapping[str, str] | None = None) -> Problem:
    """The jobs that run, as they were seen. `homes`: where they are now, if not where they were seen. One of
    which nothing is known yet stays where it is."""
    homes = homes or {}
    at = {name: homes.get(name, one.site) for name, one in gathered.jobs.items() if one.runs}
    at = {name: site for name, site in at.items() if site in project.sites}
    read = dict.fromkeys(stream for name in at for stream in gathered.jobs[name].streams)
    streams = {name: project.streams[name] for name in read if name in project.streams}
    makers = {made: name for name in at if (made := gathered.jobs[name].writes) is not None}
    problem = Problem(
        sites=tuple(
            Site(one.name, one.cpu, float(one.memory), float(one.bandwidth), region=one.region)
            for one in sites_of(project, at.values())
        ),
        operators=tuple(
            _operator(gathered, name, streams, makers, named=_is_named(project, gathered.jobs[name].queries))
            for name in at
        ),
        queries=tuple(Query(query, (name,)) for query, name in _answered(gathered, at).items()),
        streams=tuple(Stream(_stream(name), expected_rate(one), one.site) for name, one in streams.items()),
        table=at,
    )
    return with_observations(problem, observations(gathered, at))


def sites_of(project: Project, taken: Collection[str] = ()) -> list[Declared]:
    """The sites that jobs are at or could be sent to: `local` is in every project, whoever wants it."""
    used = {site.name for site in used_sites(project)} | set(taken)
    return [site for name, site in project.sites.items() if name in used]


def _stream(name: str) -> str:
    """Jobs may be called as streams are."""
    return f"stream {name}"


def _answered(gathered: Gathered, names: Collection[str]) -> dict[str, str]:
    """By query; of one that two split jobs give while one takes over, the later."""
    return {query: name for name in names for query in gathered.jobs[name].queries}


def _is_named(project: Project, queries: Collection[str]) -> bool:
    """Whether a query of a job names its site, where those that name none are distributed: it is meant."""
    return project.distributes and not is_free(project, queries)


def _operator(
    gathered: Gathered, name: str, streams: Collection[str], makers: Mapping[str, str], *, named: bool
) -> Operator:
    facts = gathered.jobs[name]
    known = gathered.busy(name) is not None
    inputs = [_stream(one) for one in facts.streams if one in streams]
    inputs += [makers[one] for one in facts.reads if one in makers]
    movable, width = known and not facts.bound and not named, max(facts.width, 1.0)
    return Operator(name, tuple(inputs), cpu=0.0, kind=facts.kind, width=width, movable=movable)


def observations(gathered: Gathered, names: Collection[str]) -> Observations:
    cores = gathered.cores()
    jobs = {name: _seen(gathered, name, cores.get(name)) for name in names}
    sites = {site: belief["cpu"] for site in _sites(gathered) if (belief := gathered.site(site)) is not None}
    rates: dict[str, float] = {}
    for name in names:
        facts, belief = gathered.jobs[name], gathered.job(name)
        read, taken = facts.streams, None if belief is None else belief["rows_in"]
        if len(read) == 1 and not facts.reads and taken is not None:
            # Jobs that fall behind read a stream slower than it comes: the fastest tells most.
            rates[_stream(read[0])] = max(taken, rates.get(_stream(read[0]), 0.0))
    return Observations(jobs, {site: SiteSeen(cpu=cpu) for site, cpu in sites.items()}, rates)


def _sites(gathered: Gathered) -> Iterator[str]:
    for key in gathered.beliefs:
        kind, _, name = key.partition(" ")
        if kind == "site":
            yield name


def _seen(gathered: Gathered, name: str, cores: float | None) -> OperatorSeen:
    belief = gathered.job(name)
    if belief is None:
        return OperatorSeen()
    return OperatorSeen(
        rows_in=belief["rows_in"],
        rows_out=belief["rows_out"],
        cpu=cores,
        batch_seconds=belief["batch_seconds"],
        batches=belief["batches"],
        state_rows=belief["state_rows"],
        state_bytes=gathered.state_bytes(name),
        lag_seconds=belief["lag_seconds"],
    )


def cost_tables(problem: Problem) -> dict[str, CostTable]:
    """By model: how full each site is, and what each job has of it."""
    return {name: Costing(problem, model).table(problem.table) for name, model in MODELS.items()}


# -- what a decision goes by ------------------------------------------------------------------------


def measured_rules(
    rules: Rules, project: Project, gathered: Gathered, records: Sequence[MoveRecord], at: float
) -> Rules:
    """With the pauses of the latest moves, and the sites that can be given something."""
    pauses: dict[str, float] = {}
    for record in reversed(records):
        if record.state == "moved" and record.pause is not None:
            pauses[record.job] = record.pause
    usual = median(pauses.values()) if pauses else rules.pause
    return replace(
        rules, pause=usual, pauses=pauses, sites=frozenset(_targets(project, gathered, records, at))
    )


def _targets(project: Project, gathered: Gathered, records: Sequence[MoveRecord], at: float) -> Iterator[str]:
    """A site for each Spark, that is not known to be down, and to which no move has failed lately."""
    failed = {one.target for one in records if one.state == "stayed" and at - _ended(one) < _AVOID}
    engines: set[str] = set()
    for site in sites_of(project):
        engine = site.endpoint if site.endpoint.startswith(REMOTE) else ""
        if engine not in engines and site.name not in failed and site.name not in gathered.down:
            yield site.name
        engines.add(engine)


def _ended(record: MoveRecord) -> float:
    return -float("inf") if record.ended is None else datetime.fromisoformat(record.ended).timestamp()


def not_yet(gathered: Gathered, records: Sequence[MoveRecord], at: float) -> str:
    """Why nothing can be decided now; empty: it can."""
    going = [record for record in records if record.ended is None]
    if going:
        return f"{going[0].job} is being moved to {going[0].target}"
    age = at - max(map(_ended, records), default=-float("inf"))
    if age < SETTLE:
        return f"the last move ended {age:.0f} s ago: the figures are still those of before"
    if not any(facts.runs for facts in gathered.jobs.values()):
        return "no job runs"
    starting = [name for name, facts in gathered.jobs.items() if facts.state == JobState.STARTING]
    return f"{starting[0]} is just being started" if starting else ""


@dataclass(frozen=True, slots=True)
class Remembered:
    """What one decision tells the next, also over a restart; for each cost model."""

    baseline: Mapping[str, float] = field(default_factory=dict)
    uneven_since: float | None = None
    there: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The jobs of each site, and of each region, when its baseline was taken: with others it means
    nothing."""

    def history(self, problem: Problem, records: Sequence[MoveRecord]) -> History:
        there = _there(problem, problem.table)
        baseline = {s: c for s, c in self.baseline.items() if list(self.there.get(s, ())) == there.get(s, [])}
        moved: dict[str, float] = {}
        for record in reversed(records):
            if record.ended is not None:
                moved[record.job] = _ended(record)
        return History(baseline, moved, self.uneven_since)

    def after(
        self, decision: Decision, problem: Problem, history: History, at: float, *, acted: bool
    ) -> Remembered:
        """`acted`: whether the moves of the decision were asked for."""
        if acted or not decision.moves:
            table = decision.table if acted else problem.table
            there = _there(problem, table)
            return Remembered(decision.history.baseline, decision.history.uneven_since, there)
        costs = {site: one.cost for site, one in decision.before.sites.items()}
        since = history.uneven_since if history.uneven_since is not None else at
        return Remembered({**costs, **history.baseline}, since, _there(problem, problem.table))


def _there(problem: Problem, table: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for job, site in sorted(table.items()):
        for place in (site, label(problem.site[site].region)):
            found.setdefault(place, []).append(job)
    return found


def remembered_text(one: Remembered) -> str:
    return json.dumps({"baseline": dict(one.baseline), "since": one.uneven_since, "there": dict(one.there)})


def read_remembered(text: str | None) -> Remembered:
    """Nothing is remembered where the text is none of ours."""
    try:
        data = json.loads(text or "{}")
        baseline = {str(site): float(cost) for site, cost in data["baseline"].items()}
        since = None if data["since"] is None else float(data["since"])
        return Remembered(
            baseline, since, {s: [str(one) for one in jobs] for s, jobs in data["there"].items()}
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return Remembered()


def history_name(model: str) -> str:
    return _HISTORY.format(model)


@dataclass(frozen=True, slots=True)
class Decided:
    problem: Problem
    rules: Rules
    decision: Decision
    history: History


def decide(
    project: Project,
    gathered: Gathered,
    records: Sequence[MoveRecord],
    remembered: Remembered,
    how: How,
    at: float,
    homes: Mapping[str, str] | None = None,
) -> Decided:
    """What would be moved now, and why. Touches nothing."""
    problem = problem_of(project, gathered, homes)
    rules = measured_rules(how.rules, project, gathered, records, at)
    history = remembered.history(problem, records)
    decision = redistribute_tiers(problem, POLICIES[how.policy], MODELS[how.model], rules, history, at)
    return Decided(problem, rules, decision, history)


# -- in a run ---------------------------------------------------------------------------------------


class Rebalancing:
    """Called once a round: gathers, and every `every` seconds decides. `off` only remembers how full sites
    were, for policies that are asked later; `dry` tells what it would do; `auto` asks for it."""

    def __init__(
        self,
        gathering: Gathering,
        moves: Moves,
        how: How,
        mode: Mode = "off",
        every: float = EVERY,
        note: Note = lambda _: None,
    ) -> None:
        self._gathering, self._moves, self._how, self._mode = gathering, moves, how, mode
        self._every, self._note = every, note
        self._decided = -float("inf")
        self._told = ""

    def close(self) -> None:
        self._moves.close()

    def look(self, project: Project, fleet: Fleet) -> None:
        if not self._gathering.look(project, fleet):
            return
        at = self._gathering.latest.at
        # A clock that was set back must not keep it from ever deciding again.
        if 0 <= at - self._decided < self._every:
            return
        self._decided = at
        try:
            self._decide(project, at)
        except HeadraceError as error:
            self._tell(f"nothing is rebalanced: {error.message}")

    def _decide(self, project: Project, at: float) -> None:
        gathered, records = self._gathering.latest, self._moves.latest(LATEST)
        file = self._gathering.file
        if file is None or not_yet(gathered, records, at):
            return
        name = history_name(self._how.model)
        remembered = read_remembered(file.text(name))
        found = decide(project, gathered, records, remembered, self._how, at)
        acted = self._mode == "auto" and bool(found.decision.moves)
        for move in found.decision.moves:
            self._ask(move.operators, move.source, move.target, move.why)
        if not found.decision.moves:
            self._told = ""
        after = remembered.after(found.decision, found.problem, found.history, at, acted=acted)
        file.keep({name: remembered_text(after)})

    def _ask(self, jobs: Sequence[str], source: str, target: str, why: str) -> None:
        for job in jobs:
            if self._mode == "auto":
                self._moves.ask(job, source, target)
                self._note(f"{job} is moved from {source} to {target}: {why}")
            elif self._mode == "dry":
                self._tell(f"{job} would be moved from {source} to {target}: {why}")

    def _tell(self, text: str) -> None:
        """Not again and again the same: figures in it differ a little every time."""
        about = text.partition(": ")[0]
        if about not in self._told:
            self._told += f"{about}\n"
            self._note(text)
