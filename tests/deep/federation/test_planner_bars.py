"""The bars of the issue for the optimiser: plans examined and time, by the benchmark that prints Tables 2
and 3."""

from __future__ import annotations

import pytest

from benchmarks.federation_planner import TABLE_2, TABLE_3, main, measured, print_table_3, table_2
from headrace.planners.federation.templates import plug_queries


def test_table_2() -> None:
    rows = table_2(3)
    for row, (papers, milliseconds) in zip(rows, TABLE_2.values(), strict=True):
        assert row.plans_by_paper_on_paper_tree == papers
        assert max(row.plans, row.plans_on_paper_tree or 0) <= papers
        assert row.total_ms < milliseconds
    # Processor time, so that a busy machine does not matter much.
    assert rows[1].total_ms < 50
    assert rows[2].total_ms < 1000


def test_table_3(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [measured(name, query, 1, TABLE_3[name]) for name, query in plug_queries().items()]
    print_table_3(rows)
    assert all(row.total_ms < (row.paper_ms or 0) for row in rows)
    assert "CQ6" in capsys.readouterr().out


def test_the_benchmark_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr("sys.argv", ["federation_planner", "--runs", "1", "--json", f"{tmp_path}/out.json"])
    main()
    assert "8,411" in capsys.readouterr().out
