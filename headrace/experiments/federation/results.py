"""What the runs gave, one row each of three kinds, and the file they are kept in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from headrace.errors import UserError
from headrace.experiments import kept

EXPERIMENT = "federation"
FORM = 1


@dataclass(frozen=True)
class Search:
    """The optimiser on a query as data. Milliseconds are medians."""

    query: str
    operators: int
    phase_one: float
    phase_two: float
    plans: int
    """Complete plans compared at the root, with our pruning."""
    plans_by_paper: int
    """With the paper's pruning, on the same join tree."""
    phase_two_by_paper: float
    decomposed_by_paper: float
    """Phase two with the paper's pruning and pieces of at most 15 operators."""
    plans_on_its_tree: int = 0
    """With the paper's pruning on the join tree that its numbers give away; 0: not one of Table 2."""


@dataclass(frozen=True)
class Choice:
    """What the planner takes at a rate, and believes of it."""

    query: str
    rate: int
    feasibility: bool
    split: str
    runs_as: str
    """The split that stands for all that run in the same way."""
    bottleneck: float
    utilisation: float


@dataclass(frozen=True)
class Run:
    """A split at a rate, once its windows were full."""

    query: str
    rate: int
    split: str
    names: tuple[str, ...]
    """Splits of those names run like this."""
    batch: int
    """Seconds of event time in a batch."""
    cores: int
    seconds: tuple[float, ...]
    cpu: tuple[float, ...]
    begun: float
    memory: int
    problem: str
    compared: int
    reference: bool
    bottleneck: float
    utilisation: float
    """As the planner believes."""


AnyRow = Search | Choice | Run
_KINDS: Mapping[str, type[AnyRow]] = {"search": Search, "choice": Choice, "run": Run}
R = TypeVar("R", Search, Choice, Run)


@dataclass(frozen=True)
class Results:
    rows: tuple[AnyRow, ...]
    made: Mapping[str, str | float] = field(default_factory=dict)
    """Command, date, machine, wall seconds, clock."""

    def of(self, kind: type[R]) -> list[R]:
        return [row for row in self.rows if isinstance(row, kind)]

    def to_json(self) -> str:
        head = {"experiment": EXPERIMENT, "form": FORM, "made": dict(self.made)}
        names = {kind: name for name, kind in _KINDS.items()}
        return kept.written(head, ({"part": names[type(row)], **asdict(row)} for row in self.rows))


def read_results(text: str, file: str) -> Results:
    """Raises UserError when the text is not what `to_json` writes, or lacks what the tables need."""
    results = kept.read(text, file, {"experiment": EXPERIMENT, "form": FORM}, _results)
    _check_whole(results, file)
    return results


def _results(data: dict[str, Any]) -> Results:
    return Results(tuple(_row(dict(entry)) for entry in data["rows"]), dict(data["made"]))


def _row(entry: dict[str, Any]) -> AnyRow:
    kind = _KINDS[entry.pop("part")]
    values: dict[str, Any] = {
        n: tuple(value) if isinstance(value, list) else value for n, value in entry.items()
    }
    row: AnyRow = kind(**values)
    if isinstance(row, Run) and len(row.seconds) != len(row.cpu):
        raise ValueError(f"{row.query} {row.split} at {row.rate}: lists of different lengths")
    return row


def _check_whole(results: Results, file: str) -> None:
    def lacks(what: str) -> UserError:
        return UserError(f"{file} lacks {what}", hint=kept.HINT)

    if not results.of(Search):
        raise lacks("runs of the optimiser")
    _check_choices(results.of(Choice), results.of(Run), lacks)


def _check_choices(choices: Sequence[Choice], runs: Sequence[Run], lacks: Callable[[str], UserError]) -> None:
    known = {(one.query, one.rate, one.feasibility) for one in choices}
    for run in runs:
        for check in (True, False):
            if (run.query, run.rate, check) not in known:
                raise lacks(f"what is chosen for {run.query} at {run.rate} rows/s")
