"""Ours: a move is made if what it gains within a horizon is worth what it costs.

    held up = sum over sites of  rows a second there * max(0, 1 - full / cost of the site)
    gain    = (held up before - held up after) * horizon
    cost    = rows a second of what is moved * (its pause + the time for its state)

All three are rows. A site with cost c does only full / c of its work in time; one that is not full holds
nothing up, so sites that merely differ are left alone. Operators go alone, or with others that hang together
with them, which can save connections; where nothing can go anywhere by itself, two are exchanged.

It cannot oscillate: a change is made only if its gain is more than `margin` times its cost, so what is held
up falls with each one, and under constant load there are finitely many. Against loads that change there is
the dead band of Algorithm 5 (`percent_difference`), the time an operator rests after a move, and that going
back would have to pay once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from headrace.planners.distribution.rules import move_cost
from headrace.planners.distribution.running import After, Change, Running
from headrace.planners.distribution.usage import ROUNDING

MOST_EXCHANGES = 10_000
ALIKE = 0.99
STILL = 0.9
"""The part of what was expected of a change that must be left after others were made."""


class _Found(NamedTuple):
    net: float
    """Gain less `margin` times the cost."""
    gain: float
    cost: float
    fuller: float
    """The higher cost of the sites concerned, afterwards."""
    changes: tuple[Change, ...]


def pays(running: Running) -> str:
    """Why no (further) operator is moved."""
    while True:
        full = [site for site, cost in running.costs.items() if _is_full(running, cost.cost)]
        if not full:
            more = " any more" if running.moves else ""
            return f"no site is filled beyond {running.rules.full:.0%}{more}"
        nearest: _Found | None = None
        for kind in (_singles, _exchanges):
            found = sorted(_judged(running, kind(running, full)), key=lambda one: one.net, reverse=True)
            nearest = max(filter(None, (nearest, *found[:1])), key=lambda one: one.net, default=None)
            if _made(running, _ordered(running, found)):
                break
        else:
            return _why(running, full, nearest)


def held_up(running: Running, sites: Mapping[str, After]) -> float:
    """Rows a second at these sites that are not worked on in time."""
    full = running.rules.full
    return sum(one.rows * (1 - full / one.cost) for one in sites.values() if one.cost > full)


def _is_full(running: Running, cost: float) -> bool:
    return cost > running.rules.full * (1 + ROUNDING)


def _judged(running: Running, candidates: Iterable[tuple[Change, ...]]) -> Iterator[_Found]:
    """Those that gain anything, whether they pay or not."""
    rules = running.rules
    for changes in candidates:
        after = running.tried(changes)
        held = held_up(running, {site: After(running.costs[site].cost, running.rows[site]) for site in after})
        gain = held - held_up(running, after)
        if gain > ROUNDING * held:
            cost = sum(move_cost(running.problem, rules, tuple(names)) for names, _ in changes)
            net = gain * rules.horizon - rules.margin * cost
            fuller = max(site.cost for site in after.values())
            yield _Found(net, gain * rules.horizon, cost, fuller, changes)


def _made(running: Running, found: Sequence[_Found]) -> bool:
    """Make the best change, then each next one that, looked at again, still pays about as much: to judge all
    of them anew after every change would take too long. Whether any was made."""
    made = False
    for one in found:
        if one.net <= 0:
            break
        if any(running.stays(name) for names, _ in one.changes for name in names):
            continue
        again = next(_judged(running, [one.changes]), None) if made else one
        if again is not None and again.net >= STILL * one.net and not running.breaks(one.changes):
            _make(running, again)
            made = True
    return made


def _ordered(running: Running, found: Sequence[_Found]) -> list[_Found]:
    """Those as good as the best, to a hundredth, first: the one that saves most connections, then the one
    that leaves most room. What a connection takes may not be known, and it is never nothing."""

    def key(one: _Found) -> tuple[int, float]:
        saved = sum(running.connections_removed(names, target) for names, target in one.changes)
        return saved, -one.fuller

    count = sum(one.net >= ALIKE * found[0].net for one in found) if found and found[0].net > 0 else 0
    return [*sorted(found[:count], key=key, reverse=True), *found[count:]]


def _make(running: Running, one: _Found) -> None:
    for names, target in one.changes:
        source = running.table[names[0]]
        full = source if _is_full(running, running.costs[source].cost) else target
        text = (
            f"{full} is filled to {running.costs[full].cost:.1%}: in {running.rules.horizon:.6g} s "
            f"{one.gain:,.0f} rows less wait, the move holds up {one.cost:,.0f}"
        )
        running.apply(names, target, one.gain / len(one.changes), text)


def _singles(running: Running, full: Sequence[str]) -> Iterator[tuple[Change, ...]]:
    for source in full:
        for part in running.parts(source):
            for target in running.targets:
                if target != source:
                    yield ((part, target),)


def _exchanges(running: Running, full: Sequence[str]) -> Iterator[tuple[Change, ...]]:
    left = MOST_EXCHANGES
    for source in full:
        if source not in running.targets:
            continue
        for target in running.targets:
            if target == source:
                continue
            for mine in running.eligible(source):
                for theirs in running.eligible(target):
                    yield ((mine,), target), ((theirs,), source)
                    left -= 1
                    if not left:
                        return


def _why(running: Running, full: Sequence[str], seen: _Found | None) -> str:
    site = max(full, key=lambda one: running.costs[one].cost)
    if not any(running.eligible(one) for one in full):
        if not running.on[site]:
            return f"{site} is full of what is not ours"
        name = min(running.on[site])
        return f"no operator of {site} may be moved ({name}: {running.stays(name)})"
    if seen is None:
        return f"no move would leave {', '.join(full)} less behind"
    net, gain, cost, _, changes = seen
    moved = " and ".join(f"{', '.join(names)} to {target}" for names, target in changes)
    if net > 0:
        return f"moving {moved} would pay, but {running.breaks(changes)}"
    wanted = running.rules.margin
    return (
        f"the best move, {moved}, would spare {gain:,.0f} rows in {running.rules.horizon:.6g} s and hold up "
        f"{cost:,.0f}: it must spare {wanted:.3g} times as many"
    )
