"""`headrace calibrate` without an engine: what is refused, and what is shown of figures that were found."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from headrace.cost.federation import DEFAULTS
from headrace.service import calibrate as service
from headrace.service import calibrate_federation as engines
from headrace.service.calibration_file import Calibration, FederationCalibration, MeasuredCase
from headrace.state.lock import RunLock
from tests.unit.cli.entry import call, make_project
from tests.unit.service.test_calibration_file import calibration

Capture = pytest.CaptureFixture[str]


def federation() -> FederationCalibration:
    case = MeasuredCase(case="scan", measured=1.0, predicted=1.1)
    return FederationCalibration(
        endpoint="local[2]",
        machine="",
        date="",
        headrace="",
        seconds=2.0,
        cases=(case,),
        held_out=case,
        costs=DEFAULTS.to_dict(),
    )


def test_a_site_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    done = call(capsys, "calibrate", folder, "--site", "locale")
    assert (done.code, done.out) == (2, "")
    assert 'site "locale" does not exist' in done.err and "local" in done.err
    assert not (folder / ".headrace").exists(), "nothing half done"


def test_a_file_that_cannot_be_read_is_told_before_anything_runs(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    (folder / ".headrace").mkdir()
    (folder / ".headrace" / "calibration.json").write_text("{")
    for command in ("calibrate", "plan"):
        done = call(capsys, command, folder, "--json")
        assert (done.code, done.json["error"]) == (2, "user error")
        assert "calibration.json" in done.json["message"]


def test_not_beside_a_run(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    (folder / ".headrace").mkdir()
    with RunLock(folder / ".headrace" / "run.lock"):
        assert call(capsys, "calibrate", folder).code == 2


def test_what_is_shown(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    def measured(project: object, site: str, environ: object, now: datetime, **options: Any) -> Calibration:
        asked.update(options, site=site)
        options["tell"]("rows", 1, 2)
        return calibration()

    def split(project: object, site: str, *_: object, **options: Any) -> FederationCalibration:
        asked["split"] = options["effort"]
        return federation()

    monkeypatch.setattr(service, "calibrate", measured)
    monkeypatch.setattr(engines, "calibrate_federation", split)
    done = call(capsys, "calibrate", make_project(tmp_path / "p"), "--quick")
    assert asked["split"] is engines.QUICK and "duck_scan" in done.out
    assert done.code == 0 and asked["site"] == "local" and asked["effort"] is service.QUICK
    assert "1/2 rows" in done.err
    assert "error 10% in the middle, 20% at most" in done.out
    assert "predicted from the others: -20%" in done.out
    data = call(capsys, "calibrate", tmp_path / "p", "--json").json
    assert asked["effort"] is service.FULL and data["federation"]["costs"] == DEFAULTS.to_dict()
    asked.clear()
    only = call(capsys, "calibrate", tmp_path / "p", "--json", "--only", "federation").json
    assert "cases" not in only and asked == {"split": engines.FULL}
    assert "federation" not in call(capsys, "calibrate", tmp_path / "p", "--json", "--only", "windows").json
    assert (data["site"], data["unit"], len(data["cases"])) == ("local", "cpu", 3)


def test_plan_tells_what_is_predicted(tmp_path: Path, capsys: Capture) -> None:
    folder = make_project(tmp_path / "p")
    assert "predicted on local: " in call(capsys, "plan", folder, "--brief").out
    data = call(capsys, "plan", folder, "--json").json["predicted"]
    assert [site["site"] for site in data["sites"]] == ["local"]
    queries = sorted(query for job in data["jobs"] for query in job["queries"])
    assert queries == ["beats", "counts", "high", "shown"]
    assert data["sites"][0]["cpu"] == pytest.approx(sum(job["cpu"] for job in data["jobs"]))
