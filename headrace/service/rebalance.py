"""`headrace rebalance`: what would move now, why, and having the run that is on do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from headrace.catalog.model import Project
from headrace.errors import UserError
from headrace.planners.distribution.rules import Move
from headrace.service.gathered import STATISTICS, Gathered, gathered_of
from headrace.service.layout import own_folder, state_file
from headrace.service.moments import Clock, now
from headrace.service.moving import ask_move, moves_of, wait_for_move
from headrace.service.project import open_project
from headrace.service.rebalancing import (
    LATEST,
    Decided,
    How,
    decide,
    history_name,
    not_yet,
    priced,
    read_remembered,
    remembered_text,
)
from headrace.service.rebalancing_told import rules_data
from headrace.service.status import process_of
from headrace.state.moves import MoveRecord
from headrace.state.statistics import Statistics

OLD_SECONDS = 60.0
"""Figures of a run that is on are newer than this, or it has stopped gathering them."""


class MoveAdvice(TypedDict):
    jobs: list[str]
    source: str
    target: str
    gain: float
    """By the policy's measure: rows that wait less within the horizon, or the share of a site."""
    cost: float
    """Rows that are held up by the move."""
    pause: float
    """Seconds, as measured of the latest moves, or assumed."""
    why: str


class RebalanceData(TypedDict):
    project: str
    policy: str
    model: str
    rules: dict[str, Any]
    """As in the project file, with policy and model."""
    stays: dict[str, str]
    """Job -> why it may not be moved now."""
    running: bool
    age: float
    """Seconds since the figures were gathered."""
    moves: list[MoveAdvice]
    why: str
    """Why nothing (more) moves."""
    pause_measured: bool
    before: dict[str, float]
    """Site -> cost, 1: full."""
    after: dict[str, float]
    """As predicted."""
    done: list[MoveRecord]
    """What became of the moves; none where it was only asked what would move."""


@dataclass(frozen=True, slots=True)
class Advice:
    decided: Decided
    data: RebalanceData


def advise(project: Project, how: How, clock: Clock = now) -> Advice:
    """What would be moved now. Raises UserError where nothing is known."""
    gathered = gathered_of(project)
    running = process_of(project)["running"]
    if gathered is None or not state_file(project).exists():
        raise UserError(
            "nothing is known of the jobs of this project: no run has gathered statistics yet",
            hint="Start it with: headrace serve, and ask again after half a minute.",
        )
    with moves_of(project) as moves:
        records, homes = priced(moves, moves.latest(LATEST)), moves.homes()
    at = clock().timestamp()
    age = max(0.0, at - gathered.at)
    with Statistics(own_folder(project) / STATISTICS) as file:
        remembered = read_remembered(file.text(history_name(how.model)))
    decided = decide(project, gathered, records, remembered, how, at, _at_home(gathered, homes))
    why = not_yet(gathered, records, at) if running else ""
    return Advice(decided, _data(project, how, decided, why, running=running, age=age))


def _at_home(gathered: Gathered, homes: Mapping[str, str]) -> dict[str, str]:
    return {name: homes[name] for name in gathered.jobs if name in homes}


def _data(
    project: Project, how: How, decided: Decided, why: str, *, running: bool, age: float
) -> RebalanceData:
    decision, rules = decided.decision, decided.rules
    moves = [] if why else [_advice(decided, move) for move in decision.moves]
    after = decision.before if why else decision.after
    return RebalanceData(
        project=project.name,
        policy=how.policy,
        model=how.model,
        rules=rules_data(how.asked),
        stays=dict(decided.stays),
        running=running,
        age=age,
        moves=moves,
        why=why or decision.why,
        pause_measured=bool(rules.pauses),
        before={site: one.cost for site, one in decision.before.sites.items()},
        after={site: one.cost for site, one in after.sites.items()},
        done=[],
    )


def _advice(decided: Decided, move: Move) -> MoveAdvice:
    rules = decided.rules
    pause = max(rules.pauses.get(name, rules.pause) for name in move.operators)
    return MoveAdvice(
        jobs=list(move.operators),
        source=move.source,
        target=move.target,
        gain=move.gain,
        cost=move.cost,
        pause=pause,
        why=move.why,
    )


@dataclass(frozen=True, slots=True)
class Carrying:
    """How moves are asked for and waited for; tests have their own."""

    ask: Callable[[Path, str, str], int] = ask_move
    wait: Callable[[Path, int, float], MoveRecord] = wait_for_move
    clock: Clock = field(default=now)


def rebalance(path: Path, how: How, timeout: float, carrying: Carrying | None = None) -> RebalanceData:
    """Have the run that is on move what the policy says, and wait for it. Raises UserError where nothing
    runs, or where it gathers nothing."""
    carrying = carrying or Carrying()
    project = open_project(path)
    process = process_of(project)
    if not process["running"] or process["doing"] == "drain":
        what = "nothing runs" if not process["running"] else "the run that is on drains its input"
        raise UserError(
            f"{what}, so nothing can be moved",
            hint="Start it with: headrace serve. What would move: headrace rebalance --dry-run",
        )
    advice = advise(project, how, carrying.clock)
    data = advice.data
    if data["age"] > OLD_SECONDS:
        raise UserError(
            f"the figures of the run that is on are {data['age']:.0f} s old: it does not gather them",
            hint="See what it says; start it again.",
        )
    asked = [carrying.ask(path, job, move["target"]) for move in data["moves"] for job in move["jobs"]]
    if asked:
        _remember(project, how, advice, carrying.clock().timestamp())
    return {**data, "done": [carrying.wait(path, move, timeout) for move in asked]}


def _remember(project: Project, how: How, advice: Advice, at: float) -> None:
    """So that policies that compare with what was before know of these moves."""
    decided, name = advice.decided, history_name(how.model)
    with Statistics(own_folder(project) / STATISTICS) as file:
        before = read_remembered(file.text(name))
        after = before.after(decided.decision, decided.problem, decided.history, at, acted=True)
        file.keep({name: remembered_text(after)})
