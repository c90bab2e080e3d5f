"""A run begins only when nothing of an earlier one is left alive."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import psutil
import pytest

from headrace.catalog.model import Project
from headrace.plan.placed import PlacedPlan
from headrace.runtime.fake import FakeExecutor
from headrace.runtime.spark import fence
from headrace.service import session
from headrace.service.run import Hooks, Options
from tests.unit.service.sample import only_jobs, placed, project


def test_an_engine_left_behind_is_gone_before_anything_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would write into the folders that `--fresh` has just cleared."""
    found, engine = project(tmp_path, ("a",)), FakeExecutor()

    def executor(
        project: Project,
        placed: PlacedPlan,
        environ: Mapping[str, str],
        on_rows: session.OnRows,
        plan_of: session.PlanOf,
    ) -> FakeExecutor:
        assert not psutil.pid_exists(process.pid)
        return engine

    monkeypatch.setattr(fence, "_GRACE_SECONDS", 0.2)
    monkeypatch.setattr(session, "plan_jobs", lambda project, only: placed(project))
    monkeypatch.setattr(session, "Hooks", partial(Hooks, planner=only_jobs()))
    monkeypatch.setattr(session, "spark_executor", executor)
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        fence.Fence(tmp_path / ".headrace").raise_for(process.pid)
        assert session.run_project(found, Options(drain=True, fresh=True), {}).exit_code == 0
    finally:
        process.kill()
        process.wait()
