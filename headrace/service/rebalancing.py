"""Which jobs of a run should be elsewhere, from what was gathered of it; and asking for it, now and then.

    gathered -> Problem as it was seen -> policy (planners/distribution) -> moves -> state/moves.py

A job is an operator here, and a site a query processor; sites without an address are one. What a move costs
is measured: for how long the latest moves, other than rescues, held up their jobs. Sites of several regions
have two tiers of managers (planners/distribution/regional.py): regions even out their own sites, and jobs go
from one to another only where a whole region is too full.

Against oscillation: the dead band and the margin of the policies, a rest for every job that was moved,
patience before the first move, and nothing is decided while moves go on, jobs start, or the last move is so
young that the figures are still those of before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from headrace.catalog.model import Project
from headrace.errors import HeadraceError
from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.problem import Problem
from headrace.planners.distribution.regional import label, redistribute_tiers
from headrace.planners.distribution.rules import Decision, History, Rules
from headrace.service.fleet import Fleet
from headrace.service.gathered import Gathered
from headrace.service.gathering import Gathering, Note
from headrace.service.rebalancing_how import MODES, POLICIES, How, Mode, how_of
from headrace.service.rebalancing_problem import cost_tables, of_one_spark, problem_of, sites_of
from headrace.service.rebalancing_rules import ended_at, measured_rules, not_yet, priced
from headrace.service.rebalancing_told import TOLD, stays, told_text
from headrace.state.moves import MoveRecord, Moves

__all__ = [
    "EVERY",
    "LATEST",
    "MODES",
    "Decided",
    "How",
    "Mode",
    "Rebalancing",
    "Remembered",
    "cost_tables",
    "decide",
    "history_name",
    "how_of",
    "measured_rules",
    "not_yet",
    "priced",
    "problem_of",
    "read_remembered",
    "remembered_text",
    "sites_of",
]

EVERY = 30.0
LATEST = 100
"""Moves of the journal that are looked at."""
_HISTORY = "history of {}"


# -- what is remembered ------------------------------------------------------------------------------


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
                moved[record.job] = ended_at(record)
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
    stays: Mapping[str, str]
    """Why a job may not be moved now, by job."""


def decide(
    project: Project,
    gathered: Gathered,
    records: Sequence[MoveRecord],
    remembered: Remembered,
    how: How,
    at: float,
    homes: Mapping[str, str] | None = None,
) -> Decided:
    """What would be moved now, and why. `records` are `priced`. Touches nothing."""
    seen = problem_of(project, gathered, homes)
    problem = of_one_spark(project, seen)
    rules = measured_rules(how.rules, project, gathered, records, at)
    history = remembered.history(problem, records)
    decision = redistribute_tiers(problem, POLICIES[how.policy], MODELS[how.model], rules, history, at)
    moves = tuple(replace(move, source=seen.table[move.operators[0]]) for move in decision.moves)
    decision = replace(decision, moves=moves)
    kept = stays(gathered, problem, rules, history, at)
    return Decided(problem, rules, decision, history, kept)


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
        records = priced(self._moves, records)
        name = history_name(self._how.model)
        remembered = read_remembered(file.text(name))
        found = decide(project, gathered, records, remembered, self._how, at)
        acted = self._mode == "auto" and bool(found.decision.moves)
        for move in found.decision.moves:
            self._ask(move.operators, move.source, move.target, move.why)
        if not found.decision.moves:
            self._told = ""
        after = remembered.after(found.decision, found.problem, found.history, at, acted=acted)
        told = told_text(self._mode, self._how, self._every, at, found.decision.why, found.stays)
        file.keep({name: remembered_text(after), TOLD: told})

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
