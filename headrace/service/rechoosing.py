"""When another split of a query is better now: what was seen, against what was chosen for other rates.

Pure functions. A split costs something to change (the stream is read once more, windows are kept twice for a
while), and rates go up and down, so another one must win clearly and several times in a row (hysteresis).

Seen is how many rows come, and how many the relations have that a split job counts: what goes into the window
tables, results of windows, joined rows. A job counts only where its parts meet, so the next split may not see
what this one was left for. What was seen once is therefore kept (`Known`), as something that does not change
with the rate: of rows of streams their share of all rows that come, of windows the rows in one of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.plan import logical as lp
from headrace.plan.federated import Engine, FederatedMember
from headrace.planners.federation.problem import Split

MICROS = 1_000_000
Engines = tuple[Engine, ...]
Node = tuple[str, int]
"""A query, and the number of a node of its plan."""
Known = dict[int, float]
"""What was seen of the nodes of a plan, by number: shares, or rows in a window."""


@dataclass(frozen=True, slots=True)
class Rules:
    margin: float = 0.25
    """By which share the other split must be cheaper."""
    least: float = 0.05
    """And by how many cores."""
    looks: int = 3
    """So many times in a row, by rates taken anew each time."""
    every: float = 10.0
    """Seconds between two looks."""
    stale: float = 120.0
    """What was seen longer ago, in seconds, says nothing."""
    span: float = 30.0
    """Seconds of event time that a rate is taken over, at least."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a job was at one moment."""

    rows: int
    """Read since its start, over all its streams."""
    event: int
    """Microseconds of event time."""
    at: float
    """Seconds of the clock."""
    made: Mapping[Node, int] = field(default_factory=dict)
    """Rows of each relation that is counted, since the job's first start."""


@dataclass(slots=True)
class Observing:
    """The rate of a job's rows in event time: the same whether rows flow or are caught up with."""

    rules: Rules
    rate: float | None = None
    """Rows per second; None: not known yet."""
    made: dict[Node, float] = field(default_factory=dict)
    """Rows per second of the relations that are counted."""
    taken: float = -math.inf
    """When the rates were taken, in seconds of the clock."""
    _first: Seen | None = None

    def see(self, seen: Seen) -> None:
        first = self._first
        if first is None or seen.rows < first.rows or seen.event < first.event:
            self._first = seen
            return
        span = (seen.event - first.event) / MICROS
        if span >= self.rules.span:
            self.rate, self.taken, self._first = (seen.rows - first.rows) / span, seen.at, seen
            both = seen.made.keys() & first.made.keys()
            self.made = {node: (seen.made[node] - first.made[node]) / span for node in both}

    def current(self, at: float) -> float | None:
        """The rate, unless it was taken too long ago."""
        return self.rate if at - self.taken <= self.rules.stale else None


def scaled(declared: Mapping[str, float], seen: float) -> dict[str, float]:
    """Rates of the streams of a job whose sum is seen: they are taken to rise and fall together."""
    total = sum(declared.values())
    return {name: rate * seen / total for name, rate in declared.items()} if total else {}


def known_from(plan: lp.LogicalPlan, made: Mapping[int, float], rate: float) -> Known:
    """What is worth keeping of rates of nodes that were seen while `rate` rows came in all."""
    found, nodes = Known(), list(lp.nodes(plan))
    for number, one in made.items():
        if nodes[number].shape is lp.Shape.STREAM and rate > 0:
            found[number] = one / rate
        elif nodes[number].shape is lp.Shape.WINDOWED:
            found[number] = one * _slide(plan) / MICROS
    return found


def _slide(plan: lp.LogicalPlan) -> int:
    """Of all windows of a query: they end together."""
    return next(node.spec.slide for node in lp.nodes(plan) if isinstance(node, lp.Window))


def seen_at(
    plan: lp.LogicalPlan, known: Known, declared: Mapping[str, float], rate: float
) -> tuple[dict[str, float], dict[lp.LogicalPlan, float]]:
    """Rows per second of each stream, and what is known of other nodes, where `rate` rows come in all.
    Streams of which nothing is known share the rest as they are declared."""
    rates, seen = dict[str, float](), dict[lp.LogicalPlan, float]()
    for number, counted in enumerate(lp.nodes(plan)):
        if number not in known:
            continue
        node = _without_projections(counted)
        if isinstance(node, lp.StreamScan):
            rates[node.stream] = known[number] * rate
        else:
            seen[node] = known[number] * (rate if node.shape is lp.Shape.STREAM else 1.0)
    rest = {name: one for name, one in declared.items() if name not in rates}
    return rates | scaled(rest, max(0.0, rate - sum(rates.values()))), seen


def _without_projections(node: lp.LogicalPlan) -> lp.LogicalPlan:
    """What the planner asks for: a projection has as many rows as what is below it."""
    while isinstance(node, lp.Project):
        node = node.input
    return node


@dataclass(frozen=True, slots=True)
class Standing:
    """Which other split was best lately, and how often in a row."""

    engines: Engines | None = None
    looks: int = 0
    taken: float = -math.inf
    """When the rates were taken by which it was best last."""


@dataclass(frozen=True, slots=True)
class Verdict:
    standing: Standing
    switch: bool
    why: str = ""


def judge(
    standing: Standing, current: Split, best: Split, rules: Rules, *, taken: float, fits: bool = True
) -> Verdict:
    """`current` and `best` are costs at the rates that were taken last. One measurement is one look, however
    often it is looked at: a single burst must not count as several in a row."""
    why = wins(current, best, rules, fits=fits)
    if not why:
        return Verdict(Standing(), False)
    looks = 1
    if standing.engines == best.engines:
        looks = standing.looks + (1 if taken > standing.taken else 0)
    return Verdict(Standing(best.engines, looks, taken), looks >= rules.looks, why)


def wins(current: Split, best: Split, rules: Rules, *, fits: bool = True) -> str:
    """Why the best split is clearly better, in the order of Definition 1; empty where it is not. `fits`:
    whether what the split that runs keeps fits the database. One that does not will fail, whatever it costs
    until then; the best one was chosen among those that fit."""
    if best.engines == current.engines:
        return ""
    if not fits:
        return "what the split that runs has to keep does not fit the memory of its database"
    if best.feasible and not current.feasible:
        return f"the split that runs cannot keep up (C_b {current.bottleneck:.3g}), another can"
    if best.feasible != current.feasible:
        return ""
    name = "C_u" if best.feasible else "C_b"
    before = current.utilisation if best.feasible else current.bottleneck
    after = best.utilisation if best.feasible else best.bottleneck
    clear = after <= before * (1 - rules.margin) and before - after >= rules.least
    return f"{name} {after:.3g} instead of {before:.3g}" if clear else ""


def handover_at(seen_until: int, longest: int, slide: int) -> int:
    """Beyond every window that holds a row which the old job has taken in: it gives those, the new one all
    later ones, of which it has every row."""
    return -(-(seen_until + longest) // slide) * slide


@dataclass(slots=True)
class Looks:
    """What is known of the queries of one run."""

    rules: Rules = field(default_factory=Rules)
    standing: dict[str, Standing] = field(default_factory=dict)
    observing: dict[str, Observing] = field(default_factory=dict)
    """By job."""
    known: dict[str, Known] = field(default_factory=dict)
    """By the fingerprint of a plan: another query of that name is another one, and so is another order."""

    def see(self, job: str, seen: Seen) -> None:
        self.observing.setdefault(job, Observing(self.rules)).see(seen)

    def rate(self, job: str, at: float) -> float | None:
        found = self.observing.get(job)
        return None if found is None else found.current(at)

    def learn(self, job: str, member: FederatedMember, at: float) -> Known:
        """What is known of a query's relations, with what its job has seen of them lately."""
        rate, known = self.rate(job, at), self.known.setdefault(member.plan_fingerprint, {})
        if rate is not None:
            made = self.observing[job].made
            own = {number: one for (query, number), one in made.items() if query == member.query}
            known |= known_from(member.plan, own, rate)
        return known

    def judge(self, job: str, query: str, current: Split, best: Split, *, fits: bool = True) -> Verdict:
        """By what was seen of the job that does the query."""
        known, taken = self.standing.get(query, Standing()), self.observing[job].taken
        verdict = judge(known, current, best, self.rules, taken=taken, fits=fits)
        self.standing[query] = verdict.standing
        return verdict
