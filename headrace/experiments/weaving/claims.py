"""What the paper claims, what we find, and whether it is the same; each by a rule that is written here.

Shares of cases: reproduced within 5 points of the paper's figure, partly within 15.
Distances: reproduced within a quarter of the paper's figure (or half a point), partly when smaller than said.
Sentences ("most", "very similar", ...): the rule stands in the claim's own function and in its text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from headrace.experiments.weaving.board import Costs, Criterion, at_most, averaged, workload_costs
from headrace.experiments.weaving.causes import (
    fewer_slides_than_nodes,
    rivals,
    spread,
    strongest,
    where_beaten,
    worst_instead,
)
from headrace.experiments.weaving.results import MAIN, THIRTEEN, Results
from headrace.experiments.weaving.tables import (
    PAPER_TABLE_3,
    PAPER_TABLE_4,
    Breakdown,
    Tables,
    fork_costs,
    geometric_mean,
)
from headrace.experiments.weaving.workload import EXPERIMENT_2

Verdict = Literal["reproduced", "partly", "not reproduced", "not run"]

SHARE_NEAR, SHARE_FAR = 5.0, 15.0
SIMILAR = 1.05
"""`equal or very similar`: at most 5 % dearer."""


@dataclass(frozen=True, slots=True)
class Claim:
    text: str
    where: str
    """In the paper."""
    paper: str
    ours: str
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True)
class Evidence:
    results: Results
    tables: Tables

    @cached_property
    def costs(self) -> Costs:
        return averaged(workload_costs(self.results))

    def cell(self, name: str, criterion: Criterion) -> Breakdown:
        found = (b for b in self.tables.table_3 if (b.optimiser, b.criterion) == (name, criterion))
        return next(found)

    def ranked(self, criterion: Criterion) -> list[str]:
        """The thirteen by Figure 2's mean, the best first."""
        bars = self.tables.figure_2[criterion]
        return sorted(THIRTEEN, key=lambda name: bars[name].mean)


def judge(evidence: Evidence) -> tuple[Claim, ...]:
    return tuple(claim(evidence) for claim in CLAIMS)


def share_verdict(paper: float, ours: float) -> Verdict:
    away = abs(paper - ours)
    return "reproduced" if away <= SHARE_NEAR else ("partly" if away <= SHARE_FAR else "not reproduced")


def distance_verdict(paper: float, ours: float) -> Verdict:
    if abs(paper - ours) <= max(0.25 * paper, 0.5):
        return "reproduced"
    return "partly" if ours < paper else "not reproduced"


def _holds(whole: bool, part: bool) -> Verdict:
    return "reproduced" if whole else ("partly" if part else "not reproduced")


def _sentences(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _nearest_reading(
    tables: Tables, name: str, criterion: Criterion, said: float, value: Callable[[Breakdown], float]
) -> str:
    """Whether another reading of the paper comes nearer to its figure; on the first repeat."""
    found = {
        reading: next(value(c) for c in cells if (c.optimiser, c.criterion) == (name, criterion))
        for reading, cells in tables.table_3_readings.items()
    }
    nearest = min(found, key=lambda reading: abs(found[reading] - said))
    if len(found) == 1:
        return ""
    if nearest == MAIN:
        return "No other reading comes nearer to the paper."
    return f"The reading nearest to the paper is `{nearest}` with {found[nearest]:.1f} %."


def _best_share(name: str, criterion: Criterion) -> Callable[[Evidence], Claim]:
    def claim(e: Evidence) -> Claim:
        said, found = PAPER_TABLE_3[name, criterion][0], e.cell(name, criterion).best
        why = _sentences(
            rivals(e.costs, name, criterion),
            spread(e.costs, name, criterion),
            _nearest_reading(e.tables, name, criterion, said, lambda cell: cell.best),
        )
        return Claim(
            f"{name} is the best of the thirteen on {criterion} cost in {said:.0f} % of the cases",
            "Table 3", f"{said:.0f} %", f"{found:.1f} %", share_verdict(said, found), why,
        )  # fmt: skip

    return claim


def _distance(name: str, criterion: Criterion) -> Callable[[Evidence], Claim]:
    def claim(e: Evidence) -> Claim:
        said, above = PAPER_TABLE_3[name, criterion][1], e.cell(name, criterion).above
        found = "always best" if above is None else f"{above:.1f} %"
        return Claim(
            f"Where {name} is not best on {criterion} cost, it is within {said:g} % of the best on average",
            "Table 3", f"{said:g} %", found, distance_verdict(said, above or 0.0),
            _sentences(
                where_beaten(e.costs, name, criterion),
                _nearest_reading(e.tables, name, criterion, said, lambda cell: cell.above or 0.0),
            ),
        )  # fmt: skip

    return claim


def _first_two(criterion: Criterion, names: tuple[str, str]) -> Callable[[Evidence], Claim]:
    """Reproduced: the two are first and second by Figure 2's mean; partly: one of them is first."""

    def claim(e: Evidence) -> Claim:
        ranked = e.ranked(criterion)
        bars = e.tables.figure_2[criterion]
        order = ", ".join(f"{name} {bars[name].mean:.1f} %" for name in ranked[:4])
        verdict = _holds(set(ranked[:2]) == set(names), ranked[0] in names)
        text = (
            f"{names[0]} and {names[1]} give the best plans on {criterion} cost (first two by mean quality)"
        )
        panel = "Fig. 2a" if criterion == "max" else "Fig. 2b"
        return Claim(text, f"{panel}, section 7.2", "first two", order, verdict)

    return claim


def _siblings(criterion: Criterion, weave: str, group: str) -> Callable[[Evidence], Claim]:
    """Reproduced: in more than half of the cases where the W sibling is best; partly: in a quarter."""

    def claim(e: Evidence) -> Claim:
        costs = e.costs.of(criterion)
        cases = at_most(costs[weave], e.costs.best(criterion))
        text = f"Where {weave} is best on {criterion} cost, {group} is equal or within 5 % in most cases"
        where = "section 7.2"
        if not cases.any():
            return Claim(text, where, "the majority", f"{weave} is never best", "not reproduced")
        near = 100.0 * float((costs[group][cases] <= SIMILAR * costs[weave][cases]).mean())
        ours = f"{near:.1f} % of {int(cases.sum())} cases"
        return Claim(text, where, "the majority", ours, _holds(near > 50, near > 25))

    return claim


def _not_worse(criterion: Criterion, weave: str, group: str) -> Callable[[Evidence], Claim]:
    """Reproduced: at or below in every case; partly: in nine of ten."""

    def claim(e: Evidence) -> Claim:
        costs = e.costs.of(criterion)
        fine = 100.0 * float(at_most(costs[group], costs[weave]).mean())
        ratio = geometric_mean(costs[group] / costs[weave])
        text = f"{group} is at least as good as {weave} on {criterion} cost"
        ours = f"in {fine:.1f} % of the cases; geometric mean of the ratio {ratio:.3f}"
        return Claim(text, "section 6", "better", ours, _holds(fine == 100, fine >= 90))

    return claim


def _rescued(criterion: Criterion, weave: str, group: str) -> Callable[[Evidence], Claim]:
    """Where G_TL beats the W sibling, the WG sibling is at or below G_TL. Reproduced: in more than half."""

    def claim(e: Evidence) -> Claim:
        costs = e.costs.of(criterion)
        cases = ~at_most(costs[weave], costs["G_TL"])
        text = f"Where G_TL beats {weave} on {criterion} cost, {group} is at or below G_TL in most cases"
        where = "section 7.2"
        if not cases.any():
            return Claim(text, where, "most", f"G_TL never beats {weave}", "not reproduced")
        fine = 100.0 * float(at_most(costs[group][cases], costs["G_TL"][cases]).mean())
        ours = f"{fine:.1f} % of {int(cases.sum())} cases"
        return Claim(text, where, "most", ours, _holds(fine > 50, fine > 25))

    return claim


def _falls_behind(e: Evidence) -> Claim:
    """WG_TN's distance on max exceeds WG_I's on total; the distance is over all cases against each other."""
    behind_max = 100 * (geometric_mean(e.costs.max["WG_TN"] / e.costs.max["WG_I"]) - 1)
    behind_total = 100 * (geometric_mean(e.costs.total["WG_I"] / e.costs.total["WG_TN"]) - 1)
    text = "WG_TN falls behind WG_I on max more than WG_I falls behind WG_TN on total"
    ours = f"{behind_max:+.1f} % against {behind_total:+.1f} % (geometric means)"
    why = _sentences(
        strongest(e.costs, e.costs.max["WG_TN"] / e.costs.max["WG_I"], "WG_TN's max over WG_I's", "{:.2f}"),
        strongest(
            e.costs, e.costs.total["WG_I"] / e.costs.total["WG_TN"], "WG_I's total over WG_TN's", "{:.2f}"
        ),
    )
    return Claim(text, "Take-away 1", "yes", ours, _holds(behind_max > behind_total, False), why)


def _fast(e: Evidence) -> Claim:
    slowest = max(THIRTEEN, key=lambda name: e.tables.seconds[name][0])
    seconds = e.tables.seconds[slowest][0]
    text = "All optimisers generate a plan in under 13 s on average"
    why = (
        ""
        if seconds >= 13
        else "Edges are counted without laying out the composite slide, and incrementally."
    )
    ours = f"slowest {slowest}, {seconds:.4f} s"
    return Claim(
        text, "Table 4", f"slowest W_TL, {PAPER_TABLE_4['W_TL']} s", ours, _holds(seconds < 13, False), why
    )


def _orders_of_magnitude(e: Evidence) -> Claim:
    """Reproduced: ten times or more, on both costs, against the best optimiser outside the two pairs."""
    others = [n for n in THIRTEEN if n not in ("W_TN", "WG_TN", "W_I", "WG_I")]
    total = geometric_mean(e.costs.best("total", others) / e.costs.total["WG_TN"])
    peak = geometric_mean(e.costs.best("max", others) / e.costs.max["WG_I"])
    text = "WG_TN and WG_I give plans orders of magnitude better than the others"
    ours = f"the best other costs {total:.2f} of WG_TN's total and {peak:.2f} of WG_I's max"
    verdict = _holds(min(total, peak) >= 10, max(total, peak) >= 10)
    return Claim(text, "section 1, contributions", "10 and more", ours, verdict)


def _group_only_worst(e: Evidence) -> Claim:
    """Reproduced: the worst of the thirteen on total is a group-only one in at least 90 % of the cases."""
    names = [n for n in THIRTEEN if n.startswith("G_")]
    grouped = e.costs.worst("total", names)
    share = 100.0 * float(at_most(e.costs.worst("total"), grouped).mean())
    text = "Without sharing (group only) the total is the worst, save where sharing does not pay"
    verdict, why = _holds(share >= 90, share >= 50), worst_instead(e.costs, names)
    return Claim(text, "sections 4, 6.1", "not in numbers", f"worst in {share:.1f} %", verdict, why)


def _lowest_is_poor(e: Evidence) -> Claim:
    """Reproduced: WG_TL gains less than 10 % on W_TL on both costs."""
    total = geometric_mean(e.costs.total["WG_TL"] / e.costs.total["W_TL"])
    peak = geometric_mean(e.costs.max["WG_TL"] / e.costs.max["W_TL"])
    text = "WG_TL does not give much better plans than W_TL (less than 10 % cheaper)"
    ours = f"{total:.3f} of W_TL's total, {peak:.3f} of its max (geometric means)"
    verdict = _holds(min(total, peak) >= 0.9, max(total, peak) >= 0.9)
    why = strongest(e.costs, e.costs.total["WG_TL"] / e.costs.total["W_TL"], "The ratio of totals", "{:.2f}")
    return Claim(text, "section 6.1", "not much better", ours, verdict, why)


def _balance_2(e: Evidence) -> Claim:
    """Reproduced: dearest over mean node is 1.5 or more for W_TN and WG_TN, 1.1 or less for W_I and WG_I."""
    bars = e.tables.figure_3
    names = ("W_TN", "WG_TN", "W_I", "WG_I")
    text = (
        "Experiment 2: W_TN and WG_TN are very unbalanced (max/mean >= 1.5), W_I and WG_I balanced (<= 1.1)"
    )
    if not bars:
        return Claim(text, "Fig. 3", "not in numbers", "", "not run")
    ratio = {n: max(bars[n]) / float(np.mean(bars[n])) for n in names}
    uneven = [ratio[n] >= 1.5 for n in names[:2]]
    even = [ratio[n] <= 1.1 for n in names[2:]]
    ours = ", ".join(f"{n} {ratio[n]:.2f}" for n in names)
    verdict = _holds(all(uneven) and all(even), any(uneven) and any(even))
    return Claim(text, "Fig. 3", "not in numbers", ours, verdict)


def _total_2(e: Evidence) -> Claim:
    """Reproduced: within 2 %; partly: within 10 %."""
    bars = e.tables.figure_3
    text = "Experiment 2: WG_I's total is practically as low as WG_TN's (within 2 %)"
    if not bars:
        return Claim(text, "Fig. 3", "practically", "", "not run")
    ratio = sum(bars["WG_I"]) / sum(bars["WG_TN"])
    ours = f"{ratio:.3f} of WG_TN's"
    verdict = _holds(ratio <= 1.02, ratio <= 1.1)
    return Claim(text, "Fig. 3, section 7.2", "practically", ours, verdict, _insertions_2(e.results))


def _insertions_2(results: Results) -> str:
    """WG_I in Experiment 2 by every rule of insertion that was run, first repeat."""
    rows = [r for r in results.rows if r.parameters == EXPERIMENT_2 and r.repeat == 0]
    base = next(r for r in rows if r.optimiser == "WG_TN" and r.reading == MAIN)
    inserted = [r for r in rows if r.optimiser == "WG_I" and (r.reading == MAIN or "insert=" in r.reading)]
    told = [f"{r.reading} {r.total / base.total:.2f} and {r.max / base.max:.2f}" for r in inserted]
    return f"On one workload, total and max against WG_TN's by rule of insertion: {', '.join(told)}."


def _preprocessing_total(e: Evidence) -> Claim:
    """Reproduced: at or below in every run of every optimiser; partly: in nine of ten."""
    text = "Merging identical slides first is always good for the total"
    forks = fork_costs(e.results)
    if "preprocess" not in forks:
        return Claim(text, "section 6, note", "always", "", "not run")
    base, merged = workload_costs(e.results, repeat=0), forks["preprocess"]
    fine = {n: 100 * float(at_most(merged.total[n], base.total[n]).mean()) for n in merged.total}
    mean = float(np.mean(list(fine.values())))
    worst = min(fine, key=lambda n: fine[n])
    ours = f"in {mean:.1f} % of the runs; least for {worst}, {fine[worst]:.1f} %"
    return Claim(text, "section 6, note", "always", ours, _holds(mean == 100, mean >= 90))


def _preprocessing_max(e: Evidence) -> Claim:
    """Reproduced: the mean ratio of the max grows with every doubling of the nodes; partly: from 4 to 32."""
    text = "Merging identical slides first is good for the max only with few nodes"
    forks = fork_costs(e.results)
    if "preprocess" not in forks:
        return Claim(text, "section 6, note", "not in numbers", "", "not run")
    base, merged = workload_costs(e.results, repeat=0), forks["preprocess"]
    nodes = np.array([case.nnum for case in base.cases])
    counts = sorted({case.nnum for case in base.cases})
    found = [_mean_ratio(merged, base, nodes == n) for n in counts]
    ours = ", ".join(f"{n} nodes {r:.2f}" for n, r in zip(counts, found, strict=True))
    rising = len(found) > 1 and all(a < b for a, b in pairwise(found))
    verdict = _holds(rising and found[0] < 1 < found[-1], found[0] < found[-1])
    why = fewer_slides_than_nodes(e.results, e.costs)
    return Claim(text, "section 6, note", "not in numbers", f"max after / before: {ours}", verdict, why)


def _mean_ratio(after: Costs, before: Costs, cases: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> float:
    ratios = [after.max[n][cases] / before.max[n][cases] for n in after.max]
    return geometric_mean(np.concatenate(ratios))


CLAIMS: Sequence[Callable[[Evidence], Claim]] = (
    _best_share("WG_TN", "total"),
    _distance("WG_TN", "total"),
    _best_share("WG_I", "max"),
    _distance("WG_I", "max"),
    _best_share("WG_I", "total"),
    _distance("WG_I", "total"),
    _best_share("WG_TN", "max"),
    _distance("WG_TN", "max"),
    _first_two("total", ("WG_TN", "W_TN")),
    _first_two("max", ("WG_I", "W_I")),
    _siblings("total", "W_TN", "WG_TN"),
    _siblings("max", "W_I", "WG_I"),
    _not_worse("total", "W_TN", "WG_TN"),
    _not_worse("total", "W_I", "WG_I"),
    _rescued("total", "W_TN", "WG_TN"),
    _rescued("max", "W_I", "WG_I"),
    _falls_behind,
    _group_only_worst,
    _lowest_is_poor,
    _orders_of_magnitude,
    _fast,
    _balance_2,
    _total_2,
    _preprocessing_total,
    _preprocessing_max,
)
