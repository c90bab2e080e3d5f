"""What a redistribution is asked (Table 5), what it remembers, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from headrace.planners.distribution.costs import CostTable
from headrace.planners.distribution.problem import Problem


@dataclass(frozen=True, slots=True)
class Rules:
    """Table 5, and below what is ours. Percentages are of a full site: costs are normalised, and the listing
    of Algorithm 5 takes their plain difference."""

    percent_difference: float = 10.0
    """Between the fullest and the emptiest site, before anything is looked at. 0: any difference; 100:
    never."""
    operators: frozenset[str] | None = None
    """Those that may be moved; None: all that are movable."""
    sites: frozenset[str] | None = None
    """Those that may get operators; None: all."""
    state_bytes: tuple[float, float] = (0.0, inf)
    """Only operators with so much state are moved."""
    degraded: float = 10.0
    """Degradation: by how many percent a site's figure must have got worse since it was last changed."""
    least_gain: float = 1.0
    """Balance: by how many percent the fuller of two sites must get emptier for a move to be made."""
    full: float = 0.8
    """Pays: a site filled further than this falls behind when its load varies."""
    horizon: float = 600.0
    """Pays: seconds that a move has to pay for itself."""
    margin: float = 2.0
    """Pays: how many times its cost a move must gain."""
    rest: float = 60.0
    """Seconds an operator stays where it was moved to."""
    patience: float = 0.0
    """Seconds the sites must have been uneven."""
    pause: float = 2.5
    """Seconds an operator stands still while it is moved, besides its state."""
    pauses: Mapping[str, float] = field(default_factory=dict)
    """The same by operator, where it was measured."""
    state_rate: float = inf
    """Bytes of state a second; inf: it is handed over by reference."""


@dataclass(frozen=True, slots=True)
class History:
    """What one round tells the next."""

    baseline: Mapping[str, float] = field(default_factory=dict)
    """Cost of each site when operators were last put there or taken away."""
    moved: Mapping[str, float] = field(default_factory=dict)
    """Operator -> when it was last moved, on the clock of `now`."""
    uneven_since: float | None = None


@dataclass(frozen=True, slots=True)
class Move:
    operators: tuple[str, ...]
    """Moved together: they hang together, or leave a site that is gone."""
    source: str
    target: str
    gain: float
    """Balance, Degradation: by how much the cost of the source falls. Pays: rows within the horizon that will
    not be held up. A site that is gone: rows a second that are worked on again."""
    cost: float
    """Rows held up by the move: rows a second that come to what is moved * (pause + time for the state)."""
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    policy: str
    moves: tuple[Move, ...]
    table: Mapping[str, str]
    """After all moves."""
    before: CostTable
    after: CostTable
    """As predicted."""
    why: str
    """Of the moves as a whole, or why nothing moves."""
    history: History


def move_cost(problem: Problem, rules: Rules, operators: tuple[str, ...]) -> float:
    """Rows that wait while these operators stand still together: what comes to them from elsewhere, for as
    long as the slowest is paused and their state is on its way."""
    inside = set(operators)
    rows = sum(
        edge.rate
        for name in operators
        for edge in problem.edges_of[name]
        if edge.reader == name and edge.producer not in inside
    )
    return rows * move_seconds(problem, rules, operators)


def move_seconds(problem: Problem, rules: Rules, operators: tuple[str, ...]) -> float:
    pause = max((rules.pauses.get(name, rules.pause) for name in operators), default=0.0)
    return pause + sum(problem.operator[name].state_bytes for name in operators) / rules.state_rate
