"""Degradation (Section 6.3.2): sites that have got worse since they were last changed give operators away.

Worse is a higher cost; with the network model, as in the paper's experiments, a lower output rate. The
dearest operators go first, and before them those whose move removes a connection, until their shares of the
site's cost (Equation 5) make up for what it lost. An operator goes where most connections vanish; of equal
sites, to the emptiest. No site is made fuller by it than the degraded one was.

It ends: after a move the predicted costs are the ones to compare with, and constant load keeps to them.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.planners.distribution.running import Running
from headrace.planners.distribution.usage import ROUNDING

_Found = tuple[tuple[bool, int, float], str, str]


def degradation(running: Running) -> str:
    """Why no (further) operator is moved."""
    worse = {site: share for site in running.costs if (share := _worse(running, site)) > 0}
    if not worse:
        return (
            "no site has got worse since operators were last put there"
            if running.history.baseline
            else ("this is the first look: there is nothing yet to compare with")
        )
    for site in sorted(worse, key=worse.__getitem__, reverse=True):
        _relieve(running, site, worse)
    return "" if running.moves else f"no operator of {', '.join(worse)} can go anywhere better"


def _worse(running: Running, site: str) -> float:
    """The share of its figure that a site lost or put on; 0 where that is within what is allowed."""
    before, now = running.history.baseline.get(site), running.costs[site].cost
    if before is None or max(before, now) <= 0:
        return 0.0
    change = before - now if running.model.falls else now - before
    beyond = before <= 0 or change / before > running.rules.degraded / 100
    return change / max(before, now) if change > 0 and beyond else 0.0


def _relieve(running: Running, site: str, worse: Mapping[str, float]) -> None:
    before = running.costs[site]
    left = worse[site]
    while left > ROUNDING and (found := _next(running, site, worse, before.cost)) is not None:
        (removes, count, _), name, target = found
        share = before.share(name)
        text = f"{site} has got worse by {worse[site]:.1%}, and {name} is {share:.1%} of its cost"
        if removes:
            text += f"; {count} {'connection' if count == 1 else 'connections'} fewer"
        cost = running.costs[site].cost
        running.apply((name,), target, cost - running.tried([((name,), target)]).costs[site], text)
        left -= share


def _next(running: Running, site: str, worse: Mapping[str, float], limit: float) -> _Found | None:
    found: list[_Found] = []
    for name in running.eligible(site):
        adds = running.costs[site].operators[name]
        if adds <= 0:
            continue
        targets = [
            other
            for other in running.targets
            # A site that sends less than it did is no help; one that got fuller may still have room.
            if other != site and not (running.model.falls and other in worse)
        ]
        removed = {target: running.connections_removed((name,), target) for target in targets}
        for target in sorted(targets, key=lambda s: (-removed[s], running.costs[s].cost)):
            if _suits(running, name, target, limit):
                found.append(((removed[target] > 0, removed[target], adds), name, target))
                break
    return max(found, key=lambda one: one[0], default=None)


def _suits(running: Running, name: str, target: str, limit: float) -> bool:
    if not running.model.falls:
        after = running.tried([((name,), target)])
        if after.costs[target] >= limit:
            return False
    return not running.breaks([((name,), target)])
