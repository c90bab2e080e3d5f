"""What is told of rebalancing: the rules that are used, and why a job may not be moved.

A service keeps it with what it gathers, at each decision, so that `status` says by which rules that very
service decides: its command may have been given others than the project file has.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict

from headrace.catalog.model import Project, Rebalance
from headrace.errors import UserError
from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.problem import Problem
from headrace.planners.distribution.rules import History, Rules
from headrace.planners.distribution.running import Running
from headrace.service.gathered import STATISTICS, Gathered
from headrace.service.layout import own_folder
from headrace.service.rebalancing_how import How, Mode
from headrace.state.statistics import Statistics
from headrace.units import format_size

TOLD = "rebalancing"


class RebalancingData(TypedDict):
    """`rules` as in the project file, with policy and model."""

    mode: str | None
    """None: what runs does not rebalance, or nothing runs; the rules are those of the project file."""
    rules: dict[str, Any]
    decided: float | None
    """When it was last decided, in seconds since the epoch."""
    why: str
    """Why nothing (more) was moved then."""
    stays: dict[str, str]
    """Job -> why it could not be moved then."""


def rules_data(asked: Rebalance) -> dict[str, Any]:
    return asked.model_dump(mode="json")


def stays(gathered: Gathered, problem: Problem, rules: Rules, history: History, at: float) -> dict[str, str]:
    """Why a job may not be moved now, by job; those that may are not in it."""
    running = Running(problem, MODELS["cpu"], rules, history, at)
    found = {one.id: running.stays(one.id) for one in problem.operators}
    return {name: _in_words(gathered, problem, rules, name, why) for name, why in found.items() if why}


def _in_words(gathered: Gathered, problem: Problem, rules: Rules, name: str, why: str) -> str:
    """The planner knows operators, and not what made one of them unmovable."""
    operator, facts = problem.operator[name], gathered.jobs[name]
    low, high = rules.state_bytes
    if facts.bound:
        return facts.bound
    if gathered.busy(name) is None:
        return "nothing is known of it yet"
    if not operator.movable:
        return "a query of it names its site"
    if rules.operators is not None and name not in rules.operators:
        return "no query of it is among the jobs that may be moved"
    if operator.state_bytes < low:
        return f"its state of {format_size(operator.state_bytes)} is less than {format_size(low)}"
    if operator.state_bytes > high:
        return f"its state of {format_size(operator.state_bytes)} is more than {format_size(high)}"
    return why


def told_text(mode: Mode, how: How, every: float, at: float, why: str, kept: Mapping[str, str]) -> str:
    rules = {**rules_data(how.asked), "every": f"{every:g}s", "patience": f"{how.rules.patience:g}s"}
    data = RebalancingData(mode=mode, rules=rules, decided=at, why=why, stays=dict(kept))
    return json.dumps(data)


def told_of(project: Project, since: str | None) -> RebalancingData:
    """What the service that runs since then has told, or else what the project file says."""
    told = _read(project)
    if told is None or since is None or (told["decided"] or 0.0) < datetime.fromisoformat(since).timestamp():
        rules = rules_data(project.planner.rebalance)
        return RebalancingData(mode=None, rules=rules, decided=None, why="", stays={})
    return told


def _read(project: Project) -> RebalancingData | None:
    path = own_folder(project) / STATISTICS
    if not path.exists():
        return None
    try:
        with Statistics(path) as file:
            text = file.text(TOLD)
        data = json.loads(text or "{}")
        return RebalancingData(
            mode=str(data["mode"]),
            rules=dict(data["rules"]),
            decided=float(data["decided"]),
            why=str(data["why"]),
            stays={str(job): str(why) for job, why in data["stays"].items()},
        )
    except (UserError, ValueError, KeyError, TypeError, AttributeError):
        return None
