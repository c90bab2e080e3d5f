"""A run is metered by what its snapshots tell."""

from __future__ import annotations

import time
from pathlib import Path

from headrace.runtime.executor import JobState, Progress
from headrace.service.calibration_file import calibration_file
from headrace.service.meter import Meter
from headrace.service.run import Snapshot, Watched
from tests.unit.service.test_predict import placed, priced, project


def snapshot(batch: int, rows: int) -> Snapshot:
    def told(name: str) -> Progress:
        return Progress(name, JobState.RUNNING, batch=batch, input_rows=rows, batch_millis=100)

    members = tuple(Watched(name, "local", told(name), "t") for name in "ab")
    return Snapshot((*members, Watched("c", "local", None)), 1.0)


def test_a_tree_counts_once_however_many_members_tell_of_it(tmp_path: Path) -> None:
    found = project(tmp_path)
    priced(found, job=2.0, batch=1.0, row=1e-6)
    meter = Meter(time.monotonic)
    meter.see(snapshot(0, 500_000))
    meter.see(snapshot(2, 1_000_000))
    (site,) = meter.report(found, placed(found))
    (tree,) = site["jobs"]
    assert (tree["job"], tree["predicted_cpu_seconds"]) == ("t", 2.0 + 3 + 1)
    assert tree["measured_cpu_seconds"] == round(meter.usage.cpu_seconds, 2)
    assert meter.usage.memory > 10_000_000 and site["measured_memory"] == meter.usage.memory


def test_a_calibration_that_cannot_be_read_does_not_spoil_a_run(tmp_path: Path) -> None:
    found = project(tmp_path)
    plan = placed(found)
    meter = Meter(time.monotonic)
    meter.see(snapshot(1, 100))
    calibration_file(found).parent.mkdir()
    calibration_file(found).write_text("{")
    assert meter.report(found, plan) == ()


def test_a_long_run_is_sampled_less_often_than_it_is_looked_at() -> None:
    """Half a second of a minute is not to be missed; of an hour it is not worth a look at all processes."""
    clock = [0.0]
    meter = Meter(lambda: clock[0])

    def sampled(*moments: float) -> list[float]:
        found = []
        for clock[0] in moments:
            meter.see(snapshot(0, 0))
            found.append(meter.usage.seconds)
        return found

    assert sampled(0.0, 0.5, 20.0, 20.5) == [0.0, 0.5, 20.0, 20.5]
    assert sampled(100.0, 100.5, 102.5) == [100.0, 100.0, 102.5]
    assert sampled(3600.0, 3604.5, 3605.0) == [3600.0, 3600.0, 3605.0]
