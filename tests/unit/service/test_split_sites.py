"""Where split jobs are as the file changes: as trees and other jobs, where a query names its site, or where
they were put; and where they were moved."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.catalog.model import Project
from headrace.plan.federated import Engine, FederatedJob
from headrace.service.deployment import Planner, Situation, reconcile
from headrace.service.keeper import Keeper, Lives
from headrace.service.layout import state_file
from headrace.service.moving import at_homes, moves_of, site_of
from headrace.state.records import Deployment, Edits
from headrace.state.store import Store
from tests.unit.service import federated_sample, sample

SITES = "sites:\n" + "".join(f'  {name}: {{endpoint: "sc://{name}:1"}}\n' for name in "abc")


def project(root: Path, pattern: str = "'off'", rest: str = "") -> Project:
    auto = f"#engine: auto{rest}"
    planner = f"planner: {{federation: auto, distribution: {pattern}}}"
    queries = {"near": federated_sample.NEAR + auto, "top": federated_sample.TOP + auto}
    return federated_sample.write(root, SITES + planner, **queries)


def decided(
    project: Project, deployment: Deployment, homes: dict[str, str]
) -> tuple[FederatedJob, Deployment]:
    now = Situation(project, deployment, Edits(), frozenset(project.queries), homes=homes)
    wanted = reconcile(now, Planner())
    [job] = at_homes(wanted.placed, homes, project.sites).federated
    assert site_of(project, wanted.deployment, homes, job.id) == job.site
    if deployment.queries:
        assert site_of(project, deployment, homes, job.id) == job.site, "known before it is started there"
    return job, wanted.deployment


@pytest.mark.parametrize("moved", [False, True])
def test_a_split_job_is_where_the_file_says_unless_it_was_moved(tmp_path: Path, moved: bool) -> None:
    job, first = decided(project(tmp_path, "ours"), Deployment(), {})
    put = replace(first, federated=tuple(replace(one, site="b") for one in first.federated))
    homes = {job.id: "b"} if moved else {}
    assert decided(project(tmp_path, "ours"), put, homes)[0].site == "b", "it names none, and stays"
    later, kept = decided(project(tmp_path, "ours", "\n    site: c"), put, homes)
    assert later.site == ("b" if moved else "c") and later.id == job.id
    assert [one.site for one in kept.federated] == ["c"]
    assert decided(project(tmp_path), put, homes)[0].site == ("b" if moved else "a"), "off: the first site"


def test_who_takes_over_from_a_moved_job_is_where_that_is(tmp_path: Path) -> None:
    found = project(tmp_path)
    with Store(state_file(found)) as store, moves_of(found) as moves:

        def keeper() -> Keeper:
            lives = Lives(moves.homes, moves.forget, moves.settle)
            return Keeper(found, store, sample.Clock(), Planner(), lambda *_: None, lives)

        keeping = keeper()
        [old] = keeping.prepare((), fresh=False, drain=False).placed.federated
        moves.settle(old.id, "b")
        engines = {member.query: tuple(Engine.SPARK for _ in member.engines) for member in old.members}
        written = keeping.hand_over(old, engines, 20_000_000)
        assert written is not None and written[1].site == "b"
        again = keeper().prepare((), fresh=False, drain=False).placed.federated
        assert {job.id: job.site for job in again} == {old.id: "b", written[1].id: "b"}
