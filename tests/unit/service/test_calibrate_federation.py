"""Cases that measure engines: what work is counted for them, and what becomes of what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.catalog.model import Site
from headrace.cost.federation import DEFAULTS
from headrace.cost.fit import Run, cost
from headrace.errors import UserError
from headrace.plan.federated import operators
from headrace.service import federation_cases as cases
from headrace.service.calibrate_federation import QUICK, conclude
from headrace.service.calibration_file import federation_costs_of, load_calibrations
from tests.unit.service.federated_sample import calibrated, write

SITE = Site(name="local")
TRUE = {name: 3 * price for name, price in {**DEFAULTS.to_dict(), **cases.FIXED}.items()}


def work(case: cases.Case) -> Mapping[str, float]:
    return cases.work_of(case, Path("rows"), SITE, case.batches + 1)


def runs(chosen: tuple[cases.Case, ...]) -> tuple[Run, ...]:
    """As if the true prices were these."""
    return tuple(Run(case.name, work(case), cost(work(case), TRUE)) for case in chosen)


@pytest.mark.parametrize("case", [*cases.CASES, cases.HELD_OUT, *cases.WARM_UPS], ids=lambda case: case.name)
def test_every_case_binds_and_has_an_engine_for_each_operator(case: cases.Case) -> None:
    job = cases.job_of(cases.project_of(case, Path("rows"), SITE))
    assert len(cases.engines_of(case, job)) == len(operators(job.plan))


def test_work_by_hand() -> None:
    """2,000 rows of 100 s pass into 10 groups of tumbling windows of 10 s."""
    case = cases.Case("", "one", "sd", 4_000, 100, 10, 9, 10, 10)
    found = work(case)
    # A statement for each of the ten windows: there are as many batches.
    assert found["statement"] == pytest.approx(10) and found["batch"] == 10
    assert found["spark_filter"] == pytest.approx(4_000)
    assert found["duck_scan"] == pytest.approx(2_000)
    # ts, k and v, and what a row costs by itself; out of it the window's ends, k and the mean.
    assert found["transfer_in"] == pytest.approx(2_000 * (8 + 4 + 8 + 24))
    assert found["transfer_out"] == pytest.approx(10 * 10 * (8 + 8 + 4 + 8 + 24))
    assert "spark_batch" not in found


def test_prices_are_found_again() -> None:
    """Those that the cases have enough of to tell them apart."""
    costs, told = conclude(runs(cases.CASES), runs((cases.HELD_OUT,))[0], quick=False)
    assert all(abs(case.error) < 0.01 for case in told)
    for name in ("transfer_in", "duck_join", "spark_copy", "statement", "spark_state", "duck_scan"):
        assert costs.to_dict()[name] == pytest.approx(TRUE[name], rel=0.05), name


def test_quick_rescales_the_defaults() -> None:
    chosen = tuple(case.scaled(QUICK.scale) for case in QUICK.cases)
    assert len(chosen) == len(cases.KINDS)
    costs, _ = conclude(runs(chosen), runs((cases.HELD_OUT,))[0], quick=True)
    found, known = costs.to_dict(), DEFAULTS.to_dict()
    for kind in cases.KINDS[2:]:
        factors = {round(found[name] / known[name], 9) for name in kind}
        assert len(factors) == 1 and factors.pop() == pytest.approx(3, rel=0.1), kind


def test_what_was_measured_is_used_and_what_was_not_is_not(tmp_path: Path) -> None:
    project = write(tmp_path)
    assert federation_costs_of(project, "local") == (DEFAULTS, None)
    calibrated(project)
    assert federation_costs_of(project, "local")[1] is not None
    assert load_calibrations(project) == {}, "windows were not measured"
    sites = {"local": Site(name="local", endpoint="local[7]")}
    moved = project.model_copy(update={"sites": sites})
    assert federation_costs_of(moved, "local") == (DEFAULTS, None)
    file = tmp_path / ".headrace" / "calibration.json"
    file.write_text(file.read_text().replace("duck_scan", "duck_scans"))
    with pytest.raises(UserError, match="does not have the costs of this version"):
        federation_costs_of(project, "local")
