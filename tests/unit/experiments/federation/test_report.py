"""Bars, claims, files and plots from made-up results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.errors import UserError
from headrace.experiments.federation.bars import bars
from headrace.experiments.federation.board import Board
from headrace.experiments.federation.claims import judge
from headrace.experiments.federation.results import Choice, Results, Run, Search, read_results
from headrace.experiments.federation.tables import make_tables
from headrace.experiments.judged import Bar, Claim
from headrace.service.experiment_federation import report_from, setting_of
from tests.unit.experiments.federation.made_up import results


def judged(found: Results) -> tuple[dict[str, Bar], dict[str, Claim]]:
    tables = make_tables(Board(found))
    return {bar.text: bar for bar in bars(tables)}, {claim.text: claim for claim in judge(tables)}


def test_all_bars_are_met_by_a_choice_that_is_best() -> None:
    found, _ = judged(results())
    assert all(bar.met for bar in found.values()), [bar for bar in found.values() if not bar.met]
    text = "cq1: highest throughput of the split, against Spark alone"
    # Spark alone does at most 200,000 rows in 201 s.
    assert found[text].here == ">= 20.1 x (>= 20,000 to 995 rows/s)"


def test_a_choice_that_falls_short_misses_its_bar() -> None:
    found, _ = judged(results(chosen="ddddd"))
    bar = found["cq3: throughput of the choice, against the best measured"]
    assert not bar.met
    assert bar.here == "at most 52.4 % below, at 20,000 rows/s; CPU at most 320 % above the best's"


def test_a_wrong_answer_misses_the_bar_on_answers() -> None:
    made = results()
    rows = tuple(
        replace(row, problem="wrong: expected 2 rows, got 3")
        if isinstance(row, Run) and row.query == "cq2"
        else row
        for row in made.rows
    )
    found, _ = judged(Results(rows, made.made))
    assert not found["Answers equal the reference and each other's"].met


def test_more_plans_or_time_than_allowed_miss_their_bars() -> None:
    made = results()
    rows = tuple(
        replace(row, plans=8412, phase_two=999.5) if isinstance(row, Search) else row for row in made.rows
    )
    found, _ = judged(Results(rows, made.made))
    assert not found["Plans examined, 8-way join"].met
    assert not found["Plans examined, 4 unary operators"].met
    assert not found["Both phases, 8-way join, ms"].met


def test_claims_are_judged_by_what_was_measured() -> None:
    _, claims = judged(results())
    assert (
        claims["cq1: selections in the stream engine, the rest in the database, at every rate"].verdict
        == "holds"
    )
    alone = claims["cq1: the database alone has a lower throughput than the federated plan"]
    assert (alone.verdict, alone.ours) == ("holds", "9,524 to ~45,000 rows/s")
    assert claims["cq5: the stream engine alone has a higher throughput than any federated plan"].verdict == (
        "does not hold"
    )
    assert (
        claims["cq3: without the feasibility check a worse plan is chosen at high rates"].verdict
        == "does not hold"
    )


def test_the_check_matters_where_the_choice_without_it_is_worse() -> None:
    _, claims = judged(results(unchecked="ddddd"))
    found = claims["cq3: without the feasibility check a worse plan is chosen at high rates"]
    assert (found.verdict, found.ours) == ("holds", "other plans at 3 rates, 1 of them worse")
    same = claims["cq1: the choice is the same with and without the feasibility check"]
    assert same.verdict == "does not hold"


def test_results_are_read_as_they_were_written() -> None:
    made = results()
    assert read_results(made.to_json(), "file") == made


@pytest.mark.parametrize("kind", [Search, Choice])
def test_results_that_lack_something_are_refused(kind: type) -> None:
    made = results()
    less = Results(tuple(row for row in made.rows if not isinstance(row, kind)), made.made)
    with pytest.raises(UserError, match="lacks"):
        read_results(less.to_json(), "file")


def test_a_report_of_the_optimiser_alone_has_no_plots(tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    only = Results(tuple(row for row in results().rows if isinstance(row, Search)))
    kept.write_text(only.to_json(), encoding="utf-8")
    assert {path.suffix for path in report_from(kept, tmp_path).files} == {".md", ".json"}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"rates": "1000,fast"}, "are no rates"),
        ({"rates": "0"}, "are no rates"),
        ({"queries": "cq1,cq7"}, 'there is no query "cq7"'),
        ({"splits": "chosen,left"}, 'there is no split "left"'),
    ],
)
def test_wrong_options_are_refused(asked: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        setting_of(**asked)  # type: ignore[arg-type]


def test_the_command_says_what_is_not_usual() -> None:
    assert setting_of().command == "headrace experiment federation"
    asked = setting_of(quick=True, rates="2000,1000", queries="CQ1", limit=60)
    assert (
        asked.command == "headrace experiment federation --quick --rates 1000,2000 --queries cq1 --limit 60"
    )


def test_where_both_keep_up_and_nothing_is_foretold_what_they_take_decides() -> None:
    tables = make_tables(Board(results()))
    level = tuple(replace(one, rows=20000.0, at_least=True, foretold=None) for one in tables.maxima)
    claims = {claim.text: claim for claim in judge(replace(tables, maxima=level))}
    found = claims["cq1: the database alone has a lower throughput than the federated plan"]
    assert (found.verdict, found.ours) == ("partly", ">= 20,000 to >= 20,000 rows/s, 4.2 to 1 cores")
