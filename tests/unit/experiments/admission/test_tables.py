"""Tables, bars and claims of made-up results: what they must say is known."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace

import pytest

from headrace.experiments.admission.bars import bars
from headrace.experiments.admission.board import Board
from headrace.experiments.admission.cases import BASE, SMALL, Setting
from headrace.experiments.admission.claims import CLAIMS, judge
from headrace.experiments.admission.judgement import Evidence
from headrace.experiments.admission.report import markdown, text_tables
from headrace.experiments.admission.results import Results, Row
from headrace.experiments.admission.tables import batch_lines, make_tables
from headrace.experiments.judged import Claim, statement
from headrace.planners.admission.soda_workload import CLUSTER
from headrace.planners.admission.workload import Setup
from tests.unit.experiments.admission.made_up import bound_of, results


def claims_of(made: Results) -> dict[str, Claim]:
    return {claim.text: claim for claim in judge(Evidence(Board(made), make_tables(made)))}


def test_all_claims_hold_on_figures_made_for_it() -> None:
    found = claims_of(results())
    assert {text: claim.verdict for text, claim in found.items()} == dict.fromkeys(found, "holds")
    assert len(found) == len(CLAIMS)


def times(factor: float, planner: str, which: Callable[[Setup], bool]) -> Callable[[Row, Setup], Row]:
    """So much more is admitted by a planner, where `which` says so."""

    def edit(row: Row, setup: Setup) -> Row:
        if row.planner != planner or not which(setup):
            return row
        curve = tuple(int(one * factor) for one in row.curve)
        return replace(row, admitted=row.admitted * factor, curve=curve)

    return edit


def batched(row: Row, setup: Setup) -> Row:
    return replace(row, admitted=row.admitted * 2) if row.batch > 1 else row


def slow(value: float, which: Callable[[Setup], bool]) -> Callable[[Row, Setup], Row]:
    def edit(row: Row, setup: Setup) -> Row:
        mine = row.loaded and row.planner == "milp" and which(setup)
        return replace(row, times=tuple(value for _ in row.times)) if mine else row

    return edit


def unproven(row: Row, setup: Setup) -> Row:
    return replace(row, proven=0) if row.loaded and row.hosts == 100 else row


def loads(early: tuple[float, ...], late: tuple[float, ...] = (0.95,)) -> Callable[[Row, Setup], Row]:
    def edit(row: Row, setup: Setup) -> Row:
        mine = row.planner == "milp" and row.cpu_late
        return replace(row, cpu_early=early, cpu_late=late) if mine else row

    return edit


def one_way(ways: int) -> Callable[[Setup], bool]:
    return lambda setup: setup.ways == (ways,)


@pytest.mark.parametrize(
    ("claim", "edit"),
    [
        ("SQPR admits more than the heuristic", times(2, "heuristic", lambda setup: True)),
        ("SQPR is less than 25 %", times(0.5, "milp", lambda setup: True)),
        ("nothing is above", times(1.2, "headrace", lambda setup: setup == BASE)),
        ("batches admit fewer", batched),
        ("more overlap", times(0.1, "milp", lambda setup: setup.zipf == 2 or setup.streams == 50)),
        ("grows super-linearly", times(0.4, "milp", lambda setup: setup.hosts == 16)),
        ("the gap to the bound widens", times(0.5, "milp", lambda setup: setup.hosts == 4)),
        ("near optimal", times(0.5, "milp", lambda setup: setup.cpu == 600)),
        ("more complex queries, fewer", times(9, "milp", one_way(5))),
        ("efficiency does not depend", times(0.5, "milp", one_way(4))),
        ("planning takes longer with more hosts", slow(1.0, lambda setup: setup.hosts == 100)),
        ("up to 100 hosts", unproven),
        ("planning takes longer with more streams", slow(1.0, one_way(5))),
        ("complexity slows it less", slow(10_000.0, one_way(5))),
        ("SQPR admits more than SODA", times(0.5, "milp", lambda setup: setup == CLUSTER)),
        ("SQPR admits linearly", times(0.5, "milp", lambda setup: setup == CLUSTER)),
        ("SQPR does not admit all", times(1.2, "milp", lambda setup: setup == CLUSTER)),
        ("both balance CPU", loads((0.1, 0.9), (0.1, 0.9))),
        ("SQPR uses more CPU", loads((0.1,))),
        ("at 150 queries", lambda row, setup: replace(row, cpu_late=(0.5,) if row.cpu_late else ())),
        ("both roughly balance", lambda row, _: replace(row, net_early=(1.0, 90.0), net_late=(1.0, 90.0))),
    ],
)  # fmt: skip
def test_a_claim_fails_where_the_figures_say_otherwise(claim: str, edit: Callable[[Row, Setup], Row]) -> None:
    found = next(one for text, one in claims_of(results(edit)).items() if text.startswith(claim))
    assert found.verdict == "does not hold", found


def test_without_sqpr_its_claims_are_not_compared() -> None:
    found = claims_of(results(setting=Setting(seeds=2, milp_seeds=0)))
    verdicts = [claim.verdict for claim in found.values()]
    assert verdicts.count("not compared") == sum(asked.of_sqpr for asked in CLAIMS) == len(verdicts) - 1
    assert found["nothing is above the optimistic bound"].verdict == "holds"


def test_lines_are_compared_seed_by_seed() -> None:
    tables = make_tables(results())
    line = tables.series("4a", "", "headrace")[100.0]
    assert line.of_bound == pytest.approx(99.0)
    assert line.seeds == 3
    assert line.admitted == pytest.approx(bound_of(BASE) * 0.99 * 0.99)
    assert tables.series("4a", "", "milp")[100.0].seeds == 1
    assert list(tables.series("5a", "small", "milp")) == [4, 8, 16]
    assert list(batch_lines(tables, "milp")) == [1, 2, 5]


def test_curves_are_of_the_seeds_that_all_have() -> None:
    tables = make_tables(results())
    assert (tables.common["4(a) 100 Mbps"], tables.common["4(a) 50 Mbps"]) == (1, 3)
    assert tables.ceilings["4(a) 100 Mbps"] == pytest.approx(1.1 * bound_of(BASE))
    assert tables.curves["7(a)"]["Headrace"][-1] == pytest.approx((237 + 235) / 2)
    assert set(tables.curves["4(a) small"]) >= {"SQPR, 1 s", "SQPR, 0.2 s"}


def test_plans_above_the_offline_bound_are_counted() -> None:
    assert make_tables(results()).passed == 0
    assert make_tables(results(times(2, "headrace", lambda setup: setup == SMALL))).passed > 0


@pytest.mark.parametrize(
    ("edit", "met"),
    [
        (times(1.06, "headrace", lambda setup: True), [True] * 8),
        (times(0.7, "headrace", lambda setup: True), [False] * 4 + [True, True, False, True]),
        (lambda row, _: replace(row, mean_ms=9.0, p99_ms=90), [False, *[True] * 3, *[False] * 2, True, True]),
    ],
)  # fmt: skip
def test_bars(edit: Callable[[Row, Setup], Row], met: list[bool]) -> None:
    assert [bar.met for bar in bars(Board(results(edit)))] == met


@pytest.mark.parametrize("setting", [Setting(seeds=2), Setting(milp_seeds=0, quick=True)])
def test_the_report_is_whole(setting: Setting) -> None:
    made = results(setting=setting)
    tables = make_tables(made)
    claims = judge(Evidence(Board(made), tables))
    judged = bars(Board(made))
    text = markdown(made, tables, claims, judged)
    for table in text_tables(tables, claims, judged):
        assert table.title in text
        assert {len(row) for row in table.rows} == {len(table.columns)}, table.title
    assert statement(claims) in text
    assert ("A quick run" in text) == setting.quick
    assert ("SQPR was not run" in text) == (setting.milp_seeds == 0)
    json.dumps(asdict(tables), allow_nan=False)
