"""The whole report of the experiment, plots included, from made-up results."""

from __future__ import annotations

import json
from pathlib import Path

from headrace.service.experiment_federation import report_from
from tests.unit.experiments.federation.made_up import results


def test_a_report_is_made_from_a_file(tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    kept.write_text(results(left_out=((20000, "sssss"),)).to_json(), encoding="utf-8")
    report = report_from(kept, tmp_path / "out")
    names = {path.name for path in report.files}
    assert {"report.md", "tables.json", "federation-fig5.png", "federation-fig6.svg"} <= names
    assert all(path.stat().st_size for path in report.files)
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "| cq1 | 20,000 | ssddd |" in text
    assert (
        json.loads((tmp_path / "out" / "tables.json").read_text(encoding="utf-8"))["experiment"]
        == "federation"
    )
