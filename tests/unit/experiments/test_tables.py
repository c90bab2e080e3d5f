"""The tables' numbers against plain loops over the rows, and against costs made to give the paper's."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace

import pytest

from headrace.experiments.weaving.board import averaged, workload_costs
from headrace.experiments.weaving.claims import Evidence, distance_verdict, judge, share_verdict
from headrace.experiments.weaving.results import OURS, OURS_BALANCED, THIRTEEN, Results, Row
from headrace.experiments.weaving.tables import PAPER_TABLE_3, make_tables
from tests.unit.experiments.made_up import paper_like, random_costs, results

SEEDS = [0, 1, 2]


def by_case(found: Results) -> dict[object, dict[str, list[Row]]]:
    cases: dict[object, dict[str, list[Row]]] = {}
    for row in found.rows:
        cases.setdefault(row.parameters, {}).setdefault(row.optimiser, []).append(row)
    return cases


def mean_cost(rows: list[Row], criterion: str) -> float:
    return statistics.fmean(getattr(row, criterion) for row in rows)


@pytest.mark.parametrize("seed", SEEDS)
def test_table_3_is_what_a_plain_count_gives(seed: int) -> None:
    found = results(random_costs(seed))
    for cell in make_tables(found).table_3:
        wins, above = 0, []
        for case in by_case(found).values():
            best = min(mean_cost(case[name], cell.criterion) for name in THIRTEEN)
            mine = mean_cost(case[cell.optimiser], cell.criterion)
            if mine <= best * (1 + 1e-9):
                wins += 1
            else:
                above.append(100 * (mine / best - 1))
        assert cell.best == pytest.approx(100 * wins / 20)
        assert cell.above == pytest.approx(statistics.fmean(above))


@pytest.mark.parametrize("seed", SEEDS)
def test_table_3_per_workload(seed: int) -> None:
    """Each repeat alone: the mean of the shares of the repeats is the share of all workloads."""
    found = results(random_costs(seed))
    parts = [tuple(replace(r, repeat=0) for r in found.rows if r.repeat == k) for k in (0, 1)]
    halves = [make_tables(Results(part, found.readings)).table_3 for part in parts]
    for i, cell in enumerate(make_tables(found).table_3_workloads):
        assert cell.best == pytest.approx((halves[0][i].best + halves[1][i].best) / 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_figure_2_is_scaled_per_experiment(seed: int) -> None:
    found = results(random_costs(seed))
    bars = make_tables(found).figure_2["total"]
    for name in (*THIRTEEN, OURS):
        scaled = []
        for case in by_case(found).values():
            costs = [mean_cost(case[n], "total") for n in THIRTEEN]
            mine = mean_cost(case[name], "total")
            scaled.append(100 * (mine - min(costs)) / (max(costs) - min(costs)))
        assert bars[name].mean == pytest.approx(statistics.fmean(scaled), abs=1e-9)
        assert bars[name].deviation == pytest.approx(statistics.pstdev(scaled))


@pytest.mark.parametrize("seed", SEEDS)
def test_bars_per_workload(seed: int) -> None:
    found = results(random_costs(seed))
    rows = {(r.parameters, r.repeat, r.optimiser): r for r in found.rows}
    both, front, ratios = [], [], []
    for parameters, repeat in sorted({(r.parameters, r.repeat) for r in found.rows}):
        at = {
            name: rows[parameters, repeat, name] for name in (*THIRTEEN, OURS, OURS_BALANCED, "ours, front")
        }
        both.append(at[OURS].total <= at["WG_TN"].total and at[OURS].max <= at["WG_I"].max)
        total, peak = min(at[n].total for n in THIRTEEN), min(at[n].max for n in THIRTEEN)
        front.append(any(t <= total and m <= peak for t, m in at["ours, front"].front))
        ratios.append(math.log(at[OURS_BALANCED].max / at["WG_I"].max))
    bars = make_tables(found).bars_workloads
    assert bars.both == pytest.approx(100 * statistics.fmean(both))
    assert bars.front == pytest.approx(100 * statistics.fmean(front))
    assert bars.balanced_max == pytest.approx(math.exp(statistics.fmean(ratios)))
    assert 0 < bars.both < 100


def test_repeats_are_averaged_per_experiment() -> None:
    found = results(lambda number, name, repeat: (number + 10.0 * repeat + 1, 1.0), experiments=7, repeats=3)
    costs = averaged(workload_costs(found))
    at = dict(zip(costs.cases, costs.total["WG_I"], strict=True))
    wanted = {row.parameters: row.total + 10 for row in found.rows if row.repeat == 0}
    assert at == wanted


def test_figure_3_and_seconds() -> None:
    """All cost the same here: Figure 2 has no scale, and says 0."""
    tables = make_tables(results(lambda number, name, repeat: (100.0, 40.0 + 20 * repeat)))
    assert tables.figure_2["total"]["W_I"].mean == 0
    assert tables.figure_3["G_RR"] == pytest.approx((50.0, 50 / 3, 50 / 3, 50 / 3))
    assert tables.seconds["W_I"] == pytest.approx((0.0015, 0.002))


def test_costs_with_the_papers_shares_give_its_table() -> None:
    tables = make_tables(results(paper_like, experiments=100))
    for cell in tables.table_3:
        assert (cell.best, cell.above) == pytest.approx(PAPER_TABLE_3[cell.optimiser, cell.criterion])


def test_claims_follow_the_data() -> None:
    """All eight of Table 3's figures hold where they were put into the costs, not when names change."""
    good = results(paper_like, experiments=100)
    verdicts = [claim.verdict for claim in judge(Evidence(good, make_tables(good)))]
    assert verdicts[:8] == ["reproduced"] * 8

    swap = {"WG_TN": "G_RR", "G_RR": "WG_TN", "WG_I": "W_RR", "W_RR": "WG_I"}
    bad = results(
        lambda number, name, repeat: paper_like(number, swap.get(name, name), repeat), experiments=100
    )
    claims = judge(Evidence(bad, make_tables(bad)))
    assert (claims[0].ours, claims[0].verdict) == ("0.0 %", "not reproduced")
    assert all(c.paper for c in claims)


def test_readings_combine_only_what_belongs_together() -> None:
    """By the listing WG_TN has a lower total, by the plan WG_I a lower max; merged first, all cost 1.5."""
    base = results(lambda number, name, repeat: (2.0, 2.0), experiments=4, repeats=1)
    rows = [row for row in base.rows if row.optimiser in THIRTEEN]
    more = [replace(r, reading="stop=listing", total=1.0) for r in rows if r.optimiser == "WG_TN"]
    more += [replace(r, reading="insert=plan", max=1.0) for r in rows if r.optimiser == "WG_I"]
    more += [replace(r, reading="preprocess", total=1.5, max=1.5) for r in rows]
    more += [
        replace(r, reading="preprocess, stop=listing", total=1.0) for r in rows if r.optimiser == "WG_TN"
    ]
    more += [replace(r, reading="preprocess, insert=plan", max=1.8) for r in rows if r.optimiser == "WG_I"]
    found = make_tables(Results((*base.rows, *more), base.readings)).table_3_readings
    shares = {name: [cell.best for cell in cells] for name, cells in found.items()}
    assert shares == {  # WG_I max, WG_TN max, WG_I total, WG_TN total
        "as set": [100, 100, 100, 100],
        "stop=listing": [100, 100, 0, 100],
        "insert=plan": [100, 0, 100, 100],
        "preprocess": [100, 100, 100, 100],
        "preprocess, stop=listing": [100, 0, 0, 100],
        "preprocess, insert=plan": [0, 100, 0, 100],
        "stop=listing, insert=plan": [100, 0, 0, 100],
        "preprocess, stop=listing, insert=plan": [0, 0, 0, 100],
    }


@pytest.mark.parametrize(
    ("paper", "ours", "verdict"),
    [
        (90, 85, "reproduced"),
        (90, 84.9, "partly"),
        (80, 65, "partly"),
        (80, 64.9, "not reproduced"),
        (5, 21, "not reproduced"),
    ],
)
def test_verdict_on_shares(paper: float, ours: float, verdict: str) -> None:
    assert share_verdict(paper, ours) == verdict


@pytest.mark.parametrize(
    ("paper", "ours", "verdict"),
    [
        (48, 60, "reproduced"),
        (48, 60.1, "not reproduced"),
        (48, 35, "partly"),
        (0.2, 0.6, "reproduced"),
        (3, 4, "not reproduced"),
    ],
)
def test_verdict_on_distances(paper: float, ours: float, verdict: str) -> None:
    assert distance_verdict(paper, ours) == verdict
