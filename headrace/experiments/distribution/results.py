"""What the runs gave, one row each of several kinds, and the file they are kept in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from headrace.errors import UserError
from headrace.experiments import kept
from headrace.experiments.distribution.prices import Prices
from headrace.planners.distribution.rules import Rules

EXPERIMENT = "distribution"
FORM = 1
KEEPS_UP = 0.9
"""A placement that gives so much of what should come out keeps up: a batch may end after the last look."""
ROOM = Rules().full
"""Of the cores of all sites: the room that the policy wants. Without it, what was held up stays so."""

Curve = tuple[tuple[float, float], ...]
"""Seconds, and what there was by then."""


@dataclass(frozen=True)
class Priced:
    """The prices that the model has."""

    prices: Prices
    points: int
    """Sites of real runs that they were fitted to; 0: the default ones."""
    error: float
    """Median, relative, of these sites."""


@dataclass(frozen=True)
class Placed:
    """A pattern on a plan, by the model."""

    plan: str
    sites: int
    seed: int
    pattern: str
    connections: int
    busiest: int
    """Connections of the site with most."""
    joins: int
    """At the site with most."""
    max_load: float
    """Cores that the fullest site takes at the paper's rate."""
    total: float
    """Cores that all sites take."""
    capacity: float
    """Rows a second of each stream at which the fullest site is full."""
    state: float
    """Rows that the site with most has to keep."""
    ms: float


@dataclass(frozen=True)
class Rebalanced:
    """A policy from a start, by the model: thirty rounds of a minute."""

    plan: str
    sites: int
    seed: int
    start: str
    policy: str
    filled: float
    """How full our own placement makes its fullest site at the rate."""
    before: float
    after: float
    """Share of what comes in that is done."""
    moves: int
    rounds: int
    """Those in which something was moved."""
    done: tuple[float, ...]
    """After each minute: how many minutes of input are done."""


@dataclass(frozen=True)
class Ran:
    """A plan on sites of this machine."""

    plan: str
    sites: int
    patterns: tuple[str, ...]
    """That put the operators so."""
    jobs: int
    connections: int
    seconds: float
    rows_in: int
    rows_out: int
    wanted_out: float
    """What the plan should give in that time."""
    cpu: tuple[float, ...]
    """Seconds, by site."""
    own_cpu: float
    """Of the manager."""
    counts: tuple[tuple[float, ...], ...]
    """By site, in the order of Prices."""
    state_rows: int
    batch_seconds: float
    """Of the slowest job's last batch."""
    curve: Curve
    problem: str = ""


@dataclass(frozen=True)
class MovedJoin:
    """The plan with a join that is moved back and forth, or is not."""

    moves: int
    """Asked for."""
    carried: int
    pauses: tuple[float, ...]
    seconds: float
    rows_in: int
    rows_out: int
    right: int
    missing: int
    extra: int
    """Result rows, drained, against a batch evaluation."""
    cpu: float
    curve: Curve
    at: tuple[float, ...] = ()
    """When it was moved, on the clock of the curve."""
    problem: str = ""


@dataclass(frozen=True)
class Recovered:
    """The plan on two sites with a core each, at a rate that one core cannot take."""

    start: str
    """`good`, or `bad`: everything at one site."""
    policy: str
    rate: float
    seconds: float
    """That the last part, which counts, took."""
    rows_in: int
    rows_out: int
    wanted_out: float
    moves: int
    cpu: tuple[float, ...]
    curve: Curve
    at: float = 0.0
    """When the policy was asked, on the clock of the curve."""
    pauses: tuple[float, ...] = ()
    problem: str = ""
    tried: tuple[float, ...] = ()
    """Higher rates, at which it did not keep up or had no room left."""
    rounds: int = 0
    """In which the policy moved something."""
    waited: float = 0.0
    """Seconds after the last move until every job had caught up, or as long as was waited for that."""

    @property
    def speed(self) -> float:
        """Result rows a second, by the clock."""
        return self.rows_out / self.seconds if self.seconds else 0.0

    @property
    def part(self) -> float:
        """Of what should come out, what does."""
        return self.rows_out / self.wanted_out if self.wanted_out else 0.0

    @property
    def keeps_up(self) -> bool:
        return self.part >= KEEPS_UP

    @property
    def has_room(self) -> bool:
        """All sites together are no fuller than the policy wants each: else no placement could catch up."""
        return sum(self.cpu) <= ROOM * self.seconds * len(self.cpu)


AnyRow = Priced | Placed | Rebalanced | Ran | MovedJoin | Recovered
_KINDS: Mapping[str, type[AnyRow]] = {
    "prices": Priced,
    "placed": Placed,
    "rebalanced": Rebalanced,
    "ran": Ran,
    "moved": MovedJoin,
    "recovered": Recovered,
}
R = TypeVar("R", Priced, Placed, Rebalanced, Ran, MovedJoin, Recovered)


@dataclass(frozen=True)
class Results:
    rows: tuple[AnyRow, ...]
    made: Mapping[str, str | float] = field(default_factory=dict)
    """Command, date, machine, wall seconds, clock."""

    def of(self, kind: type[R]) -> list[R]:
        return [row for row in self.rows if isinstance(row, kind)]

    @property
    def priced(self) -> Priced:
        return self.of(Priced)[0]

    def to_json(self) -> str:
        head = {"experiment": EXPERIMENT, "form": FORM, "made": dict(self.made)}
        names = {kind: name for name, kind in _KINDS.items()}
        return kept.written(head, ({"part": names[type(row)], **asdict(row)} for row in self.rows))


def read_results(text: str, file: str) -> Results:
    """Raises UserError when the text is not what `to_json` writes, or lacks what the tables need."""
    results = kept.read(text, file, {"experiment": EXPERIMENT, "form": FORM}, _results)
    kinds = {type(row) for row in results.rows}
    for kind in (Priced, Placed, Rebalanced):
        if kind not in kinds:
            raise UserError(f"{file} lacks rows of the model", hint=kept.HINT)
    return results


def _results(data: dict[str, Any]) -> Results:
    return Results(tuple(_row(dict(entry)) for entry in data["rows"]), dict(data["made"]))


def _row(entry: dict[str, Any]) -> AnyRow:
    kind = _KINDS[entry.pop("part")]
    if kind is Priced:
        entry["prices"] = Prices(**entry["prices"])
    values: dict[str, Any] = {name: _tuples(value) for name, value in entry.items()}
    row: AnyRow = kind(**values)
    return row


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
