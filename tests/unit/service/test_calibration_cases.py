"""The amounts of work of a case, against counting row by row; and what follows from measured runs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.catalog.model import Site
from headrace.cost.fit import KINDS, Run, cost
from headrace.cost.windows import DEFAULTS
from headrace.runtime.windows.opening import edge_classes
from headrace.runtime.windows.tree import woven_spec
from headrace.service import calibration_cases as cases
from headrace.service.calibrate import (
    FULL,
    QUICK,
    Effort,
    Measurements,
    Memory,
    conclude,
    footprint_of,
    memory_of,
)
from headrace.service.calibration_cases import Case, Window, amounts, in_batches, rows_of
from headrace.service.calibration_footprint import Footprint
from headrace.service.measured import Usage

SECOND = 1_000_000
WINDOWS = (Window(7, 3, 2), Window(10, 5, 1), Window(4, 4, 3))
SMALL = Case("small", 400, 60, 5, 3, WINDOWS)


def triples(table: pa.Table) -> list[tuple[int, int, int]]:
    """(batch, time in microseconds, key) of every row."""
    times, keys = table["ts"].cast(pa.int64()).to_pylist(), table["k"].to_pylist()
    each = -(-len(times) // SMALL.batches)
    return [(n // each, t, k) for n, (t, k) in enumerate(zip(times, keys, strict=True))]


def windows_of(window: Window, time: int) -> list[int]:
    """Numbers of the windows that hold an instant."""
    last = time // (window.slide * SECOND)
    return [n for n in range(last - 20, last + 1) if time < n * window.slide * SECOND + window.range * SECOND]


def test_amounts_by_counting() -> None:
    table = rows_of(SMALL)
    found = in_batches(amounts(SMALL, table), 5)
    spec = woven_spec(
        cases.tree_of(cases.project_of(SMALL, Path("rows"), Site(name="local")), Site(name="local"))
    )
    edges = edge_classes(spec.tree.queries)
    rows = [(b, max(t - (t - o) % s for s, o in edges), t, k) for b, t, k in triples(table)]
    cells = [len({(n, k) for _, _, t, k in rows for n in windows_of(w, t)}) for w in WINDOWS]
    assert found == {
        "job": 1,
        "batch": 5,
        "query_batch": 15,
        "row": 400,
        "row_argument": 800,
        "fragment": len({(b, start, k) for b, start, _, k in rows}),
        "fragment_slide": 3 * len({(start, k) for _, start, _, k in rows}),
        "cell": sum(cells),
        "cell_output": 2 * cells[0] + cells[1] + 3 * cells[2],
    }


@pytest.mark.parametrize("window", WINDOWS)
def test_plain_amounts_by_counting(window: Window) -> None:
    case = Case("plain", 400, 60, 5, 3, (window,), plain=True)
    table = rows_of(case)
    found = amounts(case, table)
    expanded = [(b, n, k) for b, t, k in triples(table) for n in windows_of(window, t)]
    assert (found["expanded_row"], found["plain_state"]) == (len(expanded), len(set(expanded)))


def measurements(effort_cases: tuple[Case, ...], prices: dict[str, float]) -> Measurements:
    def run(case: Case) -> Run:
        small = case.scaled(0.05)
        work = in_batches({n: a * 20 for n, a in amounts(small, rows_of(small)).items()}, case.batches + 2)
        return Run(case.name, work, cost(work, prices))

    warm = run(cases.WARM_UP)
    started = Run(warm.name, warm.work, warm.seconds + 17.0)
    return Measurements(started, tuple(map(run, effort_cases)), run(cases.HELD_OUT), Memory(9e8, 2e8, 80.0))


@pytest.mark.parametrize("effort", [FULL, QUICK])
def test_what_follows_from_measured_runs(effort: Effort) -> None:
    defaults = DEFAULTS.to_dict()
    prices = {name: defaults[name] * 3 for kind in KINDS for name in kind}
    found = measurements(effort.cases, prices)
    costs, told = conclude(found, Footprint(30.0, 120.0), quick=effort.quick)
    assert {name: costs.to_dict()[name] for name in prices} == pytest.approx(prices, rel=1e-6)
    assert costs.engine == pytest.approx(17.0, rel=1e-6)
    assert (costs.fragment_state, costs.fragment_memory) == (30.0, 120.0)
    assert (costs.engine_memory, costs.worker_memory, costs.result_memory) == (9e8, 2e8, 80.0)
    assert [one.case for one in told] == [*(case.name for case in effort.cases), cases.HELD_OUT.name]
    assert told[-1].error == pytest.approx(0, abs=1e-3)


def test_memory_is_that_of_the_least_and_of_the_most() -> None:
    """Of two trees, one has 1,000 values of results in each of its two batches."""
    case = Case("c", 1, 60, 1, 2, WINDOWS)
    few, many = ({"cell": n, "cell_output": 2 * n} for n in (1, 500))
    idle, small, large = Usage(1.0, 1.0, 900, 400), Usage(1.0, 1.0, 9_000, 400), Usage(1.0, 1.0, 50_900, 500)
    found = memory_of(idle, [(case, Run("few", few, 1.0), small), (case, Run("many", many, 1.0), large)])
    assert found == Memory(engine=500, worker=200, result=50_000 / 1000)


def test_a_quick_calibration_has_a_case_for_every_kind_of_work() -> None:
    assert len(QUICK.cases) == len(cases.QUICK) >= len(KINDS)
    assert len(FULL.cases) > sum(map(len, KINDS)), "more runs than prices, else their errors say nothing"


def test_the_footprint_of_a_fragment_row() -> None:
    """At least the columns themselves, and not many times that."""
    site = Site(name="local", endpoint="local[2]")
    found = footprint_of(Case("f", 30_000, 120, 100, 4, (Window(600, 1, 5),)), Path("rows"), site)
    assert 10 < found.state < 200 and 40 < found.memory < 800
