"""Ours: moves are made if what they gain within a horizon is worth what they cost.

    gain = (held up before - held up after) * horizon                                 rows
    cost = sum over the pipelines that are touched of  rows a second * longest pause  rows

Held up, and what a pipeline is: see `pipelines`. A pause is that of a move and the time for its state. A site
with cost c does only full / c of its work in time; one that is not full holds nothing up, so sites that
merely differ are left alone.

Two ways lead to a better table: a few steps from what runs (`mending`), and a table made anew (`anew`). On
either way, moves that do not pay beside the others are taken back. The better one is made if its gain is
above `margin` times its cost.

It cannot oscillate: what is held up falls with each round that moves, and under constant load there are
finitely many tables. The fullest site, if it is too full, never gets fuller: not even the slowest pipeline
ends below where it began. Against loads that change there is the dead band of Algorithm 5
(`percent_difference`), the time an operator rests after a move, that going back would have to pay once more,
and that a table is made anew only for much (`MUCH`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.planners.distribution.anew import placed_anew
from headrace.planners.distribution.mending import Step, mend, singles, steps
from headrace.planners.distribution.rules import move_cost
from headrace.planners.distribution.running import Change, Running
from headrace.planners.distribution.usage import ROUNDING

MOST_ROUNDS = 60
MUCH = 0.05
"""The part of the rows of slow pipelines, or of those of the slowest, that a table made anew must gain beyond
a few steps. Loads are measured and vary, and for every one of them the best table is another."""


_Move = tuple[tuple[str, ...], str]
"""Operators that go together, and where."""


class _Plan(NamedTuple):
    net: float
    """Gain less `margin` times the cost."""
    gain: float
    cost: float
    top: float
    """The cost of the fullest site, afterwards."""
    moves: Sequence[Change]


NOTHING = _Plan(0.0, 0.0, 0.0, 0.0, ())


def pays(running: Running) -> str:
    """Why no (further) operator is moved."""
    if not _full(running):
        return f"no site is filled beyond {running.rules.full:.0%}"
    best = _best(running)
    if best.net > 0:
        _make(running, best)
    return _why(running, best)


def _full(running: Running) -> list[str]:
    limit = running.rules.full * (1 + ROUNDING)
    return [site for site, one in running.costs.items() if one.cost > limit]


def _best(running: Running) -> _Plan:
    """A sum over pipelines may leave one far behind for the others; so the slowest has a say of its own."""
    trial = running.trial()
    mend(trial, MOST_ROUNDS)
    near = _thinned(running, trial)
    much = MUCH * running.rows_slowed * running.rules.horizon
    left = running.held_up * running.rules.horizon - near.gain
    if left < much and _speed(running, near) > 1 - MUCH:
        return near
    far = _far(running)
    together = far.net > near.net and far.gain - near.gain >= much
    slowest = far.net > 0 and _speed(running, far) - _speed(running, near) >= MUCH
    return far if together or slowest else near


def _speed(running: Running, plan: _Plan) -> float:
    """The part that the slowest pipeline would do in time."""
    top = plan.top if plan.net > 0 else running.top
    return min(1.0, running.rules.full / top) if top > 0 else 1.0


def _far(running: Running) -> _Plan:
    table = placed_anew(running)
    changes = _changes(running, table or {})
    if not changes or running.breaks(changes):
        return NOTHING
    trial = running.trial()
    trial.put(changes)
    mend(trial, MOST_ROUNDS)
    return _thinned(running, trial)


def _thinned(running: Running, trial: Running) -> _Plan:
    """The way to the trial, without the moves that do not pay beside the others, the dearest first, and
    without the pipelines whose moves do not pay for their standstill."""
    rules, most = running.rules, max(running.top, running.rules.full) * (1 + ROUNDING)
    moves = dict.fromkeys(_changes(running, trial.table))
    alone = sorted(((move_cost(running.problem, rules, one[0]), [one]) for one in moves), reverse=True)
    for cost, some in (*alone, *_by_pipeline(running, list(moves))):
        back = [(names, running.table[names[0]]) for names, target in some if (names, target) in moves]
        after = trial.tried(back)
        lost = (after.held_up - trial.held_up) * rules.horizon
        full = max(after.costs.values(), default=0.0)
        if back and lost <= rules.margin * cost and full <= most and not trial.breaks(back):
            trial.put(back)
            moves = {one: None for one in moves if one not in some}
    gain = (running.held_up - trial.held_up) * rules.horizon
    if trial.top > most or gain <= ROUNDING * running.held_up * rules.horizon:
        return NOTHING
    cost = running.standstill(tuple(moves))
    return _Plan(gain - rules.margin * cost, gain, cost, trial.top, tuple(moves))


def _by_pipeline(running: Running, moves: list[_Move]) -> list[tuple[float, list[_Move]]]:
    found: dict[int, list[_Move]] = {}
    for move in moves:
        found.setdefault(running.pipeline(move[0][0]), []).append(move)
    return [(running.standstill(some), some) for some in found.values()]


def _changes(running: Running, table: Mapping[str, str]) -> list[_Move]:
    """What differs, as moves: operators that hang together and go the same way go together."""
    left = {name: site for name, site in table.items() if running.table[name] != site}
    found = []
    while left:
        start = next(iter(left))
        way = running.table[start], left[start]
        same = {name for name, site in left.items() if (running.table[name], site) == way}
        part = running.piece(start, same)
        found.append((tuple(name for name in running.problem.operator if name in part), way[1]))
        for name in part:
            del left[name]
    return found


def _make(running: Running, plan: _Plan) -> None:
    costs = {site: one.cost for site, one in running.costs.items()}
    full, fullest = _full(running), max(costs, key=costs.__getitem__)
    others = len(plan.moves) - 1
    moved = f"this and {others} more are moved" if others else "this is moved"
    for names, target in plan.moves:
        source = running.table[names[0]]
        named = source if source in full else fullest
        text = (
            f"{named} is filled to {costs[named]:.1%}: in {running.rules.horizon:.6g} s "
            f"{plan.gain:,.0f} rows less wait, and {plan.cost:,.0f} while {moved}"
        )
        running.apply(names, target, plan.gain / len(plan.moves), text)


def _why(running: Running, best: _Plan) -> str:
    full = _full(running)
    if not full:
        return f"no site is filled beyond {running.rules.full:.0%} any more"
    if running.moves:
        return f"{', '.join(full)} stay filled beyond {running.rules.full:.0%}, and no further move would pay"
    site = max(full, key=lambda one: running.costs[one].cost)
    if not any(running.eligible(one) for one in full):
        if not running.on[site]:
            return f"{site} is full of what is not ours"
        name = min(running.on[site])
        return f"no operator of {site} may be moved ({name}: {running.stays(name)})"
    if best.moves:
        return _too_little(running, best)
    seen = max(steps(running, singles(running)), key=lambda step: step.net, default=None)
    if seen is None or seen.gain <= 0:
        return f"no move would leave {', '.join(full)} less behind"
    return _barred(running, seen)


def _barred(running: Running, seen: Step) -> str:
    limit = running.breaks(seen.changes)
    if limit:
        return f"moving {_told(seen.changes)} would pay, but {limit}"
    cost = running.standstill(seen.changes)
    return _too_little(running, _Plan(0.0, seen.gain, cost, running.top, seen.changes))


def _too_little(running: Running, plan: _Plan) -> str:
    rules = running.rules
    return (
        f"the best move, {_told(plan.moves)}, would spare {plan.gain:,.0f} rows in {rules.horizon:.6g} s "
        f"and hold up {plan.cost:,.0f}: it must spare {rules.margin:.3g} times as many"
    )


def _told(moves: Sequence[Change]) -> str:
    return " and ".join(f"{', '.join(names)} to {target}" for names, target in moves)
