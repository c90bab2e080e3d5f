"""Balance (Section 6.3.2): operators from the fullest site to the emptiest, again and again.

The paper leaves open which operator goes. Here it is the one after whose move the fuller of the two sites is
emptiest. A site that is only moderately full loses nothing, as the paper wants it: only the fullest gives.

It ends, within a round and over rounds of constant load: every move lowers the higher one of two costs and
changes no third, so the costs, sorted from the highest, get smaller in lexicographic order, and there are
finitely many tables.
"""

from __future__ import annotations

from headrace.planners.distribution.running import Running, highest


def balance(running: Running) -> str:
    """Why no (further) operator is moved."""
    while True:
        source = highest(running.costs)
        targets = [site for site in running.targets if site != source]
        if not targets:
            return "there is no other site that may get operators"
        target = min(targets, key=lambda site: running.costs[site].cost)
        best = _best(running, source, target)
        if best is None:
            return _why(running, source, target)
        name, fuller = best
        before, after = running.costs[source].cost, running.tried([((name,), target)])
        why = f"{source} is fullest at {before:.0%}, {target} emptiest; the fuller is then at {fuller:.0%}"
        running.apply((name,), target, before - after.costs[source], why)


def _best(running: Running, source: str, target: str) -> tuple[str, float] | None:
    """The operator, and the higher cost of the two sites after its move."""
    least = running.costs[source].cost * (1 - max(running.rules.least_gain, 1e-7) / 100)
    found: list[tuple[float, str]] = []
    for name in running.eligible(source):
        after = running.tried([((name,), target)])
        fuller = max(after.costs.values())
        if fuller < least:
            found.append((fuller, name))
    found.sort(key=lambda one: one[0])
    for fuller, name in found:
        if not running.breaks([((name,), target)]):
            return name, fuller
    return None


def _why(running: Running, source: str, target: str) -> str:
    own = running.on[source]
    free = running.eligible(source)
    if own and not free:
        name = min(own)
        return f"no operator of {source}, the fullest site, may be moved ({name}: {running.stays(name)})"
    return f"no operator of {source} would make it and {target} more even"
