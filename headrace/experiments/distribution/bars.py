"""The issue's bars that these runs can speak about."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median, quantiles

from headrace.experiments.distribution.cases import (
    FILLED,
    GROUPING,
    LABELS,
    OFF,
    ONE_SITE,
    OURS,
    ROUND_ROBIN,
    SITES,
    SIZES,
)
from headrace.experiments.distribution.tables import Placement, Tables
from headrace.experiments.judged import Bar

RECOVERED = 0.9
PAUSE = 3.0
CHAIN = "5"
"""Five equal operators in a row: grouping cannot be bettered."""


def bars(tables: Tables) -> tuple[Bar, ...]:
    return (
        *_fewer(tables),
        *_ours(tables),
        *_recovered(tables),
        *_recovered_really(tables),
        *_moved(tables),
    )


def _several(tables: Tables, plan: str, pattern: str) -> list[Placement]:
    return [tables.placement(plan, sites, pattern) for sites in SITES if sites > 1]


def _fewer(tables: Tables) -> Iterator[Bar]:
    for size in SIZES:
        found = _several(tables, str(size), GROUPING)
        turns = _several(tables, str(size), ROUND_ROBIN)
        # Five operators on five sites: there is only one way to have one at each.
        able = [(g, r) for g, r in zip(found, turns, strict=True) if not (size == 5 and g.sites == 5)]
        fewer, count = sum(g.fewer for g, _ in able), sum(g.seeds for g, _ in able)
        told = ", ".join(f"{g.connections:g} to {r.connections:g}" for g, r in able)
        text = f"{size} operators: grouping has fewer connections than round robin"
        yield Bar(text, "always", f"{fewer} of {count}; medians {told}", fewer == count, count)


def _ours(tables: Tables) -> Iterator[Bar]:
    for size in SIZES:
        found = _several(tables, str(size), OURS)
        more, higher, lower = (sum(getattr(o, name) for o in found) for name in ("more", "higher", "lower"))
        count = sum(one.seeds for one in found)
        told = f"more connections on {more}, higher load on {higher}, lower on {lower} of {count}"
        lowest = lower > count / 2 or (str(size) == CHAIN and not higher)
        text = f"{size} operators: ours has no more connections than grouping, and a lower highest load"
        note = "; equal operators in a row: lower is not possible" if str(size) == CHAIN else ""
        yield Bar(text, "always", told + note, not more and not higher and lowest, count)


def _recovered(tables: Tables) -> Iterator[Bar]:
    for start in (ROUND_ROBIN, ONE_SITE):
        for filled in FILLED:
            found = [p for p in tables.policies if (p.policy, p.start, p.filled) == ("pays", start, filled)]
            least, before = min(p.least for p in found), min(p.before for p in found)
            text = f"Model, ours at {filled:.0%}: throughput that comes back from {LABELS.get(start, start)}"
            middle = median(p.after for p in found)
            told = f"at least {least:.1%}, median {middle:.1%} (before: from {before:.1%} on)"
            yield Bar(text, f">= {RECOVERED:.0%}", told, least >= RECOVERED, sum(p.seeds for p in found))


def _recovered_really(tables: Tables) -> Iterator[Bar]:
    good, bad = tables.recovery("good", OFF), tables.recovery("bad", OFF)
    again = tables.recovery("bad", "pays")
    text = "Measured: the same on two sites of a core each, from everything at one"
    if good and bad and again:
        # By the clock: from the end of one batch to that of a later one, a job that stands still looks fast.
        back, before = (one.speed / max(good.speed, 1e-9) for one in (again, bad))
        told = f"{back:.1%} (without moving {before:.1%}), {again.moves} jobs moved"
        # Where the bad placement does as well, or the good one as badly, nothing was there to come back.
        met = back >= RECOVERED > before and good.keeps_up
        yield Bar(text, f">= {RECOVERED:.0%}", told, met, 1)
    elif tables.recovered:
        failed = sum(not one.seconds for one in tables.recovered)
        yield Bar(text, f">= {RECOVERED:.0%}", f"not measured: {failed} runs failed", False, 0)


def _moved(tables: Tables) -> Iterator[Bar]:
    moving = tables.moving()
    if moving is None:
        if tables.moved:
            yield Bar("Result rows lost or doubled while a join was moved", "0", "the run failed", False, 0)
        return
    told = f"{moving.missing} missing, {moving.extra} too many, {moving.right:,} right"
    text = "Result rows lost or doubled while a join was moved"
    yield Bar(text, "0", told, not moving.missing and not moving.extra, moving.carried)
    if moving.pauses:
        worst = highest(moving.pauses)
        text = "Pause of a moved join, p95, s"
        yield Bar(text, f"<= {PAUSE:g}", f"{worst:.1f}", worst <= PAUSE, moving.carried)


def highest(pauses: tuple[float, ...]) -> float:
    """The 95th percentile; of a few, the largest."""
    return quantiles(pauses, n=20)[-1] if len(pauses) >= 20 else max(pauses)
