"""A run begins only when nothing of an earlier one is left alive."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import psutil
import pytest

from headrace.catalog.model import Project, Site
from headrace.plan.placed import Job, PlacedPlan
from headrace.runtime.fake import FakeExecutor
from headrace.runtime.spark import fence
from headrace.service import session
from headrace.service.run import Hooks, Options
from tests.unit.service.sample import counted, only_jobs, placed, project


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


@pytest.mark.parametrize(
    ("at", "memory"),
    [
        (("here", "edge"), "300m"),
        (("here", "there", "edge"), "200m"),
        (("edge",), "200m"),
        (("local",), "500m"),
    ],
)
def test_the_engine_of_the_run_has_the_memory_of_its_own_sites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: tuple[str, ...], memory: str
) -> None:
    """A server elsewhere says nothing of it."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("", (), {"total": 1000 << 20}))
    made = {
        "here": Site(name="here", endpoint="local[4]", memory=300 << 20),
        "there": Site(name="there", endpoint="spark://m:7077", memory=200 << 20),
        "edge": Site(name="edge", endpoint="sc://edge:1", memory=100 << 20),
        "local": Site(name="local"),
    }
    asked = project(tmp_path, at).model_copy(update={"sites": made, "streams": {}, "queries": {}})
    jobs = PlacedPlan(tuple(Job(site, site, site, counted()) for site in at))
    assert session._memory(asked, jobs) == memory
    remote = asked.model_copy(update={"sites": {name: made[name] for name in ("edge", "local")}})
    assert session._memory(remote, PlacedPlan(())) == "500m"
