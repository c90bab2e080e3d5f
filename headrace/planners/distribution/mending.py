"""From the table that runs, step by step: what leaves the sites that hold pipelines up.

A step is an operator or some that hang together, or, where no such step is any good, an exchange of two. It
is good if less is held up afterwards, or as much and the sites that are too full are so by less, which leads
over plateaus: of two sites that are equally slow, one has to come first. No step makes the fullest site
fuller. Steps are only thought of; what was moved twice counts once, and `pays` decides about all together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from headrace.planners.distribution.rules import move_cost
from headrace.planners.distribution.running import After, Change, Running
from headrace.planners.distribution.usage import ROUNDING

MOST_EXCHANGES = 3_000
ALIKE = 0.99
STILL = 0.9
"""The part of what was expected of a step that must be left after others were taken."""
EXACT = 1e-6
"""Less relief than this, relatively, is rounding, and would be sought for ever."""


class Step(NamedTuple):
    changes: tuple[Change, ...]
    gain: float
    """Rows within the horizon that will not be held up."""
    cost: float
    """Rows that the moves hold up."""
    net: float
    """Gain less `margin` times the cost."""
    relief: float
    """By how much the strain of the sites concerned falls."""
    fuller: float
    """The highest cost among them, afterwards."""


def mend(trial: Running, most_rounds: int) -> None:
    """Change the trial until nothing is held up, no step is good any more, or there were too many."""
    for _ in range(most_rounds):
        if not any(_taken(trial, kind(trial)) for kind in (singles, _exchanges)):
            return


def _taken(trial: Running, candidates: Iterable[tuple[Change, ...]]) -> bool:
    """Take the best step, then each next one that, looked at again, is still about as good: to look at all of
    them anew after every step would take too long. Whether any was taken."""
    gone: set[str] = set()
    for step in _ordered(trial, list(steps(trial, candidates))):
        names = {name for part, _ in step.changes for name in part}
        if names & gone:
            continue
        again = next(steps(trial, [step.changes]), None) if gone else step
        if again is not None and _is_still(again, step) and not trial.breaks(step.changes):
            trial.put(step.changes)
            gone |= names
    return bool(gone)


def _is_still(again: Step, step: Step) -> bool:
    if step.net > 0:
        return again.net >= STILL * step.net
    return again.relief > 0 and again.relief >= STILL * step.relief


def steps(trial: Running, candidates: Iterable[tuple[Change, ...]]) -> Iterator[Step]:
    """Those that are good, whether they pay or not."""
    rules, held, top = trial.rules, trial.held_up, max(trial.top, trial.rules.full)
    for changes in candidates:
        after = trial.tried(changes)
        fuller = max(after.costs.values())
        if fuller > top * (1 + ROUNDING) or after.held_up > held * (1 + ROUNDING):
            continue
        gain = (held - after.held_up) * rules.horizon
        relief = _relief(trial, after)
        if gain > ROUNDING * held * rules.horizon or relief > 0:
            cost = sum(move_cost(trial.problem, rules, tuple(names)) for names, _ in changes)
            yield Step(changes, gain, cost, gain - rules.margin * cost, relief, fuller)


def _relief(trial: Running, after: After) -> float:
    """Strain is the sum of squares of what is too much, so that the fullest sites count most."""
    full = trial.rules.full
    before = sum(max(0.0, trial.costs[site].cost - full) ** 2 for site in after.costs)
    then = sum(max(0.0, cost - full) ** 2 for cost in after.costs.values())
    return before - then if before - then > EXACT * before else 0.0


def _ordered(trial: Running, found: Sequence[Step]) -> list[Step]:
    """Those that pay, the best first; then those that only bring relief. As good as the best, to a hundredth,
    is as good: then the one that saves most connections, then the one that leaves most room. What a
    connection takes may not be known, and it is never nothing."""

    def key(step: Step) -> tuple[int, float]:
        saved = sum(trial.connections_removed(names, target) for names, target in step.changes)
        return saved, -step.fuller

    paying = sorted((s for s in found if s.net > 0), key=lambda step: step.net, reverse=True)
    others = sorted((s for s in found if s.net <= 0), key=lambda step: step.relief, reverse=True)
    count = sum(step.net >= ALIKE * paying[0].net for step in paying) if paying else 0
    return [*sorted(paying[:count], key=key, reverse=True), *paying[count:], *others]


def singles(trial: Running) -> Iterator[tuple[Change, ...]]:
    for source in trial.slowest:
        for part in trial.parts(source):
            for target in trial.targets:
                if target != source:
                    yield ((part, target),)


def _exchanges(trial: Running) -> Iterator[tuple[Change, ...]]:
    left = MOST_EXCHANGES
    for source in trial.slowest:
        if source not in trial.targets:
            continue
        for target in trial.targets:
            if target == source:
                continue
            for mine in trial.eligible(source):
                for theirs in trial.eligible(target):
                    yield ((mine,), target), ((theirs,), source)
                    left -= 1
                    if not left:
                        return
