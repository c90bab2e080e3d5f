"""Tables, bars, claims, files and plots from made-up results."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.errors import UserError
from headrace.experiments.distribution.bars import bars, highest
from headrace.experiments.distribution.cases import OURS
from headrace.experiments.distribution.claims import judge
from headrace.experiments.distribution.plots import draw
from headrace.experiments.distribution.report import markdown
from headrace.experiments.distribution.results import (
    MovedJoin,
    Placed,
    Priced,
    Ran,
    Rebalanced,
    Recovered,
    Results,
    read_results,
)
from headrace.experiments.distribution.runs import prices_of
from headrace.experiments.distribution.tables import make_tables, speed
from headrace.experiments.judged import Bar, Claim
from headrace.service.experiment_distribution import setting_of
from tests.unit.experiments.distribution.made_up import PRICES, results

_REAL = (Ran, MovedJoin, Recovered)


def judged(found: Results) -> tuple[dict[str, Bar], dict[str, Claim]]:
    tables = make_tables(found)
    return {bar.text: bar for bar in bars(tables)}, {claim.text: claim for claim in judge(tables)}


def changed(kind: type, **values: Any) -> Results:
    made = results()
    return Results(
        tuple(replace(row, **values) if isinstance(row, kind) else row for row in made.rows), made.made
    )


def test_made_up_results_meet_all_bars() -> None:
    found, _ = judged(results())
    assert all(bar.met for bar in found.values()), [bar for bar in found.values() if not bar.met]
    assert found["Pause of a moved join, p95, s"].here == "2.5"
    text = "Measured: the same on two sites of a core each, from everything at one"
    assert found[text].here == "95.0% (without moving 60.0%), 2 jobs moved"


def test_runs_that_failed_are_bars_that_are_missed_and_no_pictures(tmp_path: Path) -> None:
    made = results()
    rows = [
        replace(r, seconds=0.0, curve=(), problem="gone") if isinstance(r, _REAL) else r for r in made.rows
    ]
    found = Results(tuple(rows), made.made)
    told, _ = judged(found)
    recovered = told["Measured: the same on two sites of a core each, from everything at one"]
    assert (recovered.met, recovered.here) == (False, "not measured: 3 runs failed")
    assert not told["Result rows lost or doubled while a join was moved"].met
    tables = make_tables(found)
    drawn = {path.name for path in draw(tables, tmp_path)}
    text = markdown(found, tables, judge(tables), bars(tables))
    assert drawn and set(re.findall(r"\]\(([^)]+\.png)\)", text)) <= drawn


def test_each_bar_is_missed_by_what_is_below_it() -> None:
    lost, _ = judged(changed(MovedJoin, missing=1))
    assert not lost["Result rows lost or doubled while a join was moved"].met
    slow, _ = judged(changed(MovedJoin, pauses=(1.0, 3.1)))
    assert not slow["Pause of a moved join, p95, s"].met
    worse, _ = judged(changed(Rebalanced, after=0.89))
    assert not any(bar.met for text, bar in worse.items() if text.startswith("Model, ours at"))
    text = "Measured: the same on two sites of a core each, from everything at one"
    same, _ = judged(changed(Recovered, rows_out=700, wanted_out=750.0))
    assert same[text].here.startswith("100.0% (without moving 100.0%)") and not same[text].met
    behind, _ = judged(changed(Recovered, wanted_out=2000.0))
    assert behind[text].here.startswith("95.0%") and not behind[text].met
    even, _ = judged(changed(Placed, connections=20, max_load=0.4))
    assert not even["20 operators: grouping has fewer connections than round robin"].met
    ours = "operators: ours has no more connections than grouping, and a lower highest load"
    assert not even[f"20 {ours}"].met
    assert even[f"5 {ours}"].met, "a chain of equal operators cannot be better"


def test_what_came_out_is_counted_by_the_clock_however_few_batches_it_came_in() -> None:
    """A job that gives much in two batches and then stands still once looked like the fastest."""
    made = results()
    burst = ((0.0, 0.0), (1.0, 10.0), (2.0, 200.0), (3.0, 400.0), (10.0, 400.0))
    rows = [
        replace(r, rows_out=400, curve=burst) if isinstance(r, Recovered) and r.policy == "pays" else r
        for r in made.rows
    ]
    told, _ = judged(Results(tuple(rows), made.made))
    bar = told["Measured: the same on two sites of a core each, from everything at one"]
    assert (bar.met, bar.here) == (False, "40.0% (without moving 60.0%), 2 jobs moved")


def test_ours_may_have_no_connection_more_than_grouping() -> None:
    made = results()
    rows = tuple(
        replace(row, connections=99) if isinstance(row, Placed) and row.pattern == OURS else row
        for row in made.rows
    )
    found, _ = judged(Results(rows, made.made))
    bar = found["20 operators: ours has no more connections than grouping, and a lower highest load"]
    assert (bar.met, bar.here) == (False, "more connections on 8, higher load on 0, lower on 8 of 8")


def test_claims_are_judged_by_their_rules() -> None:
    _, found = judged(results())
    verdicts = {text: claim.verdict for text, claim in found.items()}
    # 140 and 180 rows/s at five sites, 100 at one.
    assert verdicts["20 operators by round robin: five sites do 25% more than one"] == "holds"
    assert found["20 operators by grouping: five sites do 25% more than one"].ours.startswith("+80%")
    assert verdicts["40 operators by grouping: five sites do 33% more than one"] == "holds"
    # 0.9 of 30 minutes done instead of 0.5.
    told = found["20 operators at three sites: redistribution doubles what round robin does"]
    assert told.ours == "degradation +80%, balance +60%, pays +100% in 30 minutes (model)"
    assert told.verdict == "partly"
    assert verdicts["A join moved back and forth does not lower the throughput"] == "holds"
    assert verdicts["A move loses nothing"] == "holds"
    assert verdicts["20 operators: grouping always wins over round robin"] == "holds"
    overhead = found[
        "To distribute a plan takes no more than to run it at one site, even where the load is light"
    ]
    assert (overhead.ours, overhead.verdict) == ("0.20 to 1.00 cores, 5.0 x", "does not hold")
    assert verdicts["Several sites do up to twice of what one does"] == "partly"


def test_what_was_not_run_is_not_compared() -> None:
    _, found = judged(results(real=False))
    told = [claim for claim in found.values() if claim.verdict == "not compared"]
    assert {claim.ours for claim in told} == {"not run"}
    assert len(told) == 6
    _, failed = judged(changed(Ran, problem="a job failed"))
    assert sum(claim.verdict == "not compared" for claim in failed.values()) == 4


def test_rows_a_second_are_counted_from_batch_to_batch() -> None:
    # 100 rows every 2 s, the first after 1 s: 5 batches in 10 s, and the sixth is missed or not.
    steps = tuple((t / 2, 100.0 * ((t // 2 + 1) // 2)) for t in range(20))
    assert speed(steps) == pytest.approx(50)
    assert speed((*steps, (10.9, 500.0))) == pytest.approx(50)
    assert speed(((0.0, 0.0), (5.0, 0.0), (10.0, 80.0))) == 8
    assert speed(((0.0, 0.0),)) == 0


def test_medians_are_over_the_seeds() -> None:
    found = make_tables(results()).placement("40", 3, "balanced")
    assert (found.ms, found.seeds, found.lower, found.higher) == (1.5, 2, 2, 0)


def test_prices_come_from_sites_that_had_something_to_do() -> None:
    rows = [row for row in results().rows if isinstance(row, Ran)]
    told = prices_of(rows)
    assert told.points == sum(row.sites for row in rows)
    assert prices_of(rows[:1]).points == 0
    idle = replace(rows[3], counts=tuple((1.0, 0.0, 0.0, 0.0, 0.0, 0.0) for _ in range(5)))
    assert prices_of([*rows, idle]).points == told.points


def test_few_pauses_are_judged_by_the_longest() -> None:
    assert highest((1.0, 9.0)) == 9.0
    assert highest(tuple(float(n) for n in range(1, 101))) == pytest.approx(95.95)


def test_results_come_back_from_their_file() -> None:
    made = results()
    assert read_results(made.to_json(), "x") == made


def test_files_that_lack_the_model_are_refused() -> None:
    made = results()
    part = Results(tuple(row for row in made.rows if not isinstance(row, Placed)), made.made)
    with pytest.raises(UserError, match="lacks rows of the model"):
        read_results(part.to_json(), "x")
    wrong = replace(made, rows=(Priced(PRICES, 0, 0.0),))
    with pytest.raises(UserError):
        read_results(wrong.to_json().replace("distribution", "placement"), "x")


def test_settings_from_words() -> None:
    assert setting_of(real="20, 5").real == (5, 20)
    assert setting_of(real="none").real == ()
    assert setting_of(quick=True).command == "headrace experiment distribution --quick"
    asked = setting_of(seeds=3, real="none", seconds=30)
    assert asked.command == "headrace experiment distribution --seeds 3 --real none --seconds 30"
