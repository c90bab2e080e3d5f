"""How it is decided what to move: the rules of the project file, or those that a command is given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal

from headrace.catalog.model import Rebalance
from headrace.catalog.rules import with_rules
from headrace.errors import UserError
from headrace.ids import did_you_mean
from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.rules import Rules
from headrace.units import MICROS

Mode = Literal["off", "dry", "auto"]
MODES: tuple[Mode, ...] = ("off", "dry", "auto")
POLICIES: Mapping[str, str] = {"ours": "pays", "balance": "balance", "degradation": "degradation"}
"""As users call them, and as the planner does."""
_SECOND = MICROS["second"]

__all__ = ["MODES", "POLICIES", "How", "Mode", "every_of", "how_of", "patience_of", "with_rules"]


@dataclass(frozen=True, slots=True)
class How:
    """`policy` by the name that users know. `rules` have the queries of `asked.jobs` in the place of
    operators until it is known which jobs there are (`measured_rules`)."""

    policy: str = "ours"
    model: str = "cpu"
    rules: Rules = field(default_factory=Rules)
    asked: Rebalance = field(default_factory=Rebalance)
    """The same as a user has it, with policy and model."""


def how_of(
    policy: str | None = None,
    model: str | None = None,
    patience: float = 0.0,
    asked: Rebalance | None = None,
) -> How:
    """By these rules; what is said of policy and model wins. `patience`: seconds for which sites must have
    been uneven; a user who asks for a decision has waited. Raises UserError for names that do not exist."""
    for what, name, known in (("policy", policy, POLICIES), ("cost model", model, MODELS)):
        if name is not None and name not in known:
            raise UserError(f'there is no {what} "{name}"', hint=did_you_mean(name, known, f"{what} names"))
    asked = asked or Rebalance()
    asked = asked.model_copy(update={"policy": policy or asked.policy, "model": model or asked.model})
    most = asked.state.most
    rules = Rules(
        percent_difference=asked.percent_difference,
        operators=None if asked.jobs is None else frozenset(asked.jobs),
        sites=None if asked.sites is None else frozenset(asked.sites),
        state_bytes=(float(asked.state.least), inf if most is None else float(most)),
        degraded=asked.degraded,
        least_gain=asked.least_gain,
        full=asked.full / 100,
        horizon=asked.horizon / _SECOND,
        margin=asked.margin,
        rest=asked.rest / _SECOND,
        patience=patience,
    )
    return How(asked.policy, asked.model, rules, asked)


def every_of(asked: Rebalance) -> float:
    """Seconds between two decisions."""
    return asked.every / _SECOND


def patience_of(asked: Rebalance, every: float) -> float:
    """Of a service: until the next decision, unless it was said otherwise."""
    return every if asked.patience is None else asked.patience / _SECOND
