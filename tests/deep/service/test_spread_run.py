"""Projects that are spread over sites, on the fake engine: order, failures, what stays and what goes."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.catalog.model import FileSource, Sink, SinkKind
from headrace.errors import EngineError, UserError
from headrace.plan.channels import ChannelJob, ChannelPlan
from headrace.plan.placed import TreeJob
from headrace.runtime.channels import files
from headrace.runtime.channels.ports import Ports
from headrace.runtime.executor import JobContext
from headrace.runtime.fake import FakeExecutor, Script
from headrace.service.channel_layout import channel_of
from headrace.service.layout import job_folder, own_folder
from headrace.service.moving import ask_move
from headrace.service.planning import plan_project
from headrace.service.run import Options
from headrace.service.spread_data import spread_data, spread_lines
from tests.unit.service.disk_engine import Killed
from tests.unit.service.spread_world import COUNT, DRAIN, PAIR, QUERIES, World


class FailsOnce(FakeExecutor):
    """What the scripts say is true of the first start only."""

    def start_channel(self, job: ChannelJob, context: JobContext, ports: Ports, *, drain: bool) -> None:
        super().start_channel(job, context, ports, drain=drain)
        self.scripts = {name: script for name, script in self.scripts.items() if name != job.id}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture
def drained(world: World) -> World:
    assert world.run().exit_code == 0
    return world


def _tree(plan: ChannelPlan) -> str:
    (tree,) = plan.trees
    return tree.id


def _shared(plan: ChannelPlan) -> str:
    """The maker that both joins' queries read."""
    (found,) = [
        m.id for m in plan.makers if {"pair", "other"} <= {r.id for r in plan.readers(m.writes or "")}
    ]
    return found


def _feeder(plan: ChannelPlan) -> ChannelJob:
    """The maker that the tree reads."""
    (found,) = [m for m in plan.makers if _tree(plan) in {r.id for r in plan.readers(m.writes or "")}]
    return found


def _ended(world: World) -> set[str]:
    """The makers whose channels have ended."""
    plan = world.plan
    return {plan.maker(one.id).id for one in plan.streams if channel_of(world.project, one).ended()}


@pytest.mark.parametrize("parallel", [1, 8])
def test_makers_come_first_and_all_come_to_an_end(world: World, parallel: int) -> None:
    world.settings(spread="true", parallel=str(parallel))
    outcome = world.run()
    assert (outcome.exit_code, outcome.failures) == (0, ())
    plan, order = world.plan, world.started()
    assert {job.query for job in plan.jobs if job.query} == {"pair", "other"}
    assert set(order) == {*(job.id for job in plan.jobs), _tree(plan), "near"}
    for job in plan.jobs:
        assert all(order.index(plan.maker(name).id) < order.index(job.id) for name in job.reads)
    assert world.executor.most_at_once <= parallel
    assert world.states() == dict.fromkeys(QUERIES, "finished")
    sites = {job.id: world.executor.context(job.id).endpoint for job in plan.jobs}
    assert sites == {job.id: world.project.sites[job.site].endpoint for job in plan.jobs}
    world.check()


class SeesEnds(FakeExecutor):
    """At the start of a tree: whether all that it reads has ended."""

    def start_tree(
        self, tree: TreeJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        folders = [Path(s.source.path) for s in context.streams.values() if isinstance(s.source, FileSource)]
        rows = [folder for folder in folders if folder.name == "rows"]
        self.calls += [("ended", str((folder.parent / "ended.json").exists())) for folder in rows]
        super().start_tree(tree, context, members, drain=drain)


def test_a_tree_is_drained_when_its_makers_have_ended(drained: World) -> None:
    plan = drained.plan
    drained.settings(spread="true", parallel="20")
    slow = SeesEnds({maker.id: Script(batches=30) for maker in plan.makers})
    assert drained.run(executor=slow).exit_code == 0
    assert [what for name, what in slow.calls if name == "ended"] == ["True"]


class SilentWest(SeesEnds):
    """What is started in the west fails before it has touched anything."""

    def start_channel(self, job: ChannelJob, context: JobContext, ports: Ports, *, drain: bool) -> None:
        if context.endpoint == "sc://west:1":
            raise EngineError("west does not answer")
        super().start_channel(job, context, ports, drain=drain)


def test_the_end_that_an_earlier_drain_has_left_is_not_believed(drained: World) -> None:
    plan = drained.plan
    makers = {maker.id for maker in plan.makers}
    assert {maker.site for maker in plan.makers} == {"west"} and _ended(drained) == makers
    drained.down.add("west")
    drained.until = lambda: False
    executor = SilentWest({maker: Script(batches=8) for maker in makers})
    assert drained.run(DRAIN, moving=True, executor=executor).exit_code == 0
    order = drained.started()
    assert order.index(_shared(plan)) < min(order.index("pair"), order.index("other"))
    assert order.index(_feeder(plan).id) < order.index(_tree(plan)), order
    assert ("ended", "False") not in executor.calls and _ended(drained) == makers


class DiesAtOnce(FakeExecutor):
    def start_channel(self, job: ChannelJob, context: JobContext, ports: Ports, *, drain: bool) -> None:
        raise Killed


def test_channels_are_open_before_anything_is_started(drained: World) -> None:
    with pytest.raises(Killed):
        drained.run(Options(drain=True, only=("pair",)), executor=DiesAtOnce())
    assert _ended(drained) == {_feeder(drained.plan).id}, "only of makers that are to run"


def test_what_was_cut_stays_and_what_was_not_stays_whole(world: World) -> None:
    world.settings(spread="false")
    world.run()
    assert not world.plan.jobs and set(world.started()) >= {"pair", "other", "near"}
    world.settings(spread="true")
    world.run()
    assert not world.plan.jobs, "what has run goes on as it was"
    world.run(Options(drain=True, fresh=True))
    plan = world.plan
    assert plan.makers
    world.settings(spread="false")
    world.run()
    assert world.plan == plan and set(world.started()) >= {job.id for job in plan.makers}
    world.run(Options(drain=True, fresh=True))
    assert not world.plan.jobs
    world.check()


def test_only_what_is_asked_for_runs(drained: World) -> None:
    plan = drained.plan
    drained.run(Options(drain=True, only=("pair",)))
    needed = {m.id for m in plan.makers if "pair" in {one.id for one in plan.downstream(m.id)}}
    assert set(drained.started()) == {"pair", *needed} and drained.plan == plan
    drained.check()


def test_who_reads_from_a_failed_maker_fails_with_it(world: World) -> None:
    world.run()
    plan, before = world.plan, world.states()
    maker = _shared(plan)
    outcome = world.run(scripts={maker: Script(fail_at=1, reason="no disk")})
    assert outcome.exit_code == 1
    why = f"{maker}, which makes what it reads, has failed: no disk"
    assert dict(outcome.failures) == {
        "pair": why,
        "other": why,
        maker: "it makes rows for pair, other: no disk",
    }
    assert world.states() == {**before, "pair": "failed", "other": "failed"}
    assert any(note.startswith(f"{maker} has failed; stopped with it") for note in world.notes)


def test_who_waits_for_a_maker_that_is_refused_is_refused(drained: World) -> None:
    plan = drained.plan
    refused = {m.id: Script(refuse=UserError("was drained", hint="use --fresh")) for m in plan.makers}
    outcome = drained.run(scripts=refused)
    assert outcome.exit_code == 2
    assert dict(outcome.failures).keys() == {"pair", "other", "counted", *refused}
    assert all("was drained" in reason for _, reason in outcome.failures)
    assert set(drained.started()) == {"near", *refused}


class EndsTooSoon(FakeExecutor):
    """Makers say at their start that nothing more comes."""

    def start_channel(self, job: ChannelJob, context: JobContext, ports: Ports, *, drain: bool) -> None:
        super().start_channel(job, context, ports, drain=drain)
        if ports.output is not None:
            ports.output.end()


def test_a_maker_that_fails_behind_its_readers_is_a_failure(drained: World) -> None:
    maker = _shared(drained.plan)
    outcome = drained.run(executor=EndsTooSoon({maker: Script(30, fail_at=20, reason="no disk")}))
    assert set(drained.states().values()) == {"finished"}
    assert outcome.failures == ((maker, "it makes rows for pair, other: no disk"),)
    assert (outcome.exit_code, outcome.refused) == (1, 0)


def test_what_was_given_up_is_not_started_elsewhere(drained: World) -> None:
    plan = drained.plan
    (tree,), maker = plan.trees, _feeder(plan)
    left: list[set[str]] = []

    def lost() -> bool:
        fleet = drained.runner._fleet
        assert fleet is not None
        if tree.id in fleet.given_up:
            drained.down.add(tree.site)
        if not any(f"site {tree.site} does not answer" in note for note in drained.notes):
            return False
        left.append(set(fleet.given_up))
        drained.until = None
        fleet.start(drained.project, tree)
        left.append(set(fleet.given_up))
        return True

    drained.until = lost
    scripts = {maker.id: Script(fail_at=1, reason="poison"), "near": Script(batches=2000)}
    assert drained.run(DRAIN, scripts, moving=True).exit_code == 1
    assert left[:2] == [{tree.id}, set()]
    assert drained.started().count(tree.id) == 1, "by this test alone"


def test_a_full_disk_keeps_what_was_read_and_ends_nothing(
    drained: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = drained.plan.job(_shared(drained.plan))
    stream = drained.plan.stream(maker.writes or "")
    channel = channel_of(drained.project, stream)
    part = channel.rows / "part-000000.parquet"
    pq.write_table(pa.table({one: pa.array([1], pa.timestamp("us")) for one in stream.plan.times}), part)
    (job_folder(drained.project, maker.id) / "published.json").write_text('{"files": 1, "rows": 1}')
    for reader in channel.readers():
        channel.advance(reader, 1)

    def full(path: Path, data: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(channel.__class__, "end", lambda one: one._end.touch())
        patched.setattr(files, "write_json", full)
        assert drained.run(scripts={"near": Script(batches=40)}).exit_code == 0
    assert part.exists() and [note for note in drained.notes if "No space left" in note] == drained.notes[:1]
    assert drained.run().exit_code == 0 and drained.notes == [] and not part.exists()


def test_a_service_starts_the_maker_again_and_readers_go_on(world: World) -> None:
    world.run()
    maker = _shared(world.plan)
    world.plot = {60: world.stop}
    world.run(Options(serve=True), {maker: Script(fail_at=2)})
    assert world.started().count(maker) > 2 and world.started().count("pair") == 1


# -- queries come and go ----------------------------------------------------------------------------


def test_a_query_that_is_started_over_leaves_the_others_what_they_read(drained: World) -> None:
    before = drained.plan
    shared = _shared(before)
    (job_folder(drained.project, shared) / "kept").write_text("state")
    (job_folder(drained.project, "pair") / "old").write_text("state")
    drained.run(Options(drain=True, fresh=True, only=("pair",)))
    after = drained.plan
    assert (job_folder(drained.project, shared) / "kept").exists()
    assert not (job_folder(drained.project, "pair") / "old").exists()
    assert after.readers(after.job(shared).writes or "") == (after.job("other"),)
    own = {m.id for m in after.makers if "pair" in {one.id for one in after.downstream(m.id)}}
    assert own and not own & {m.id for m in before.makers}
    drained.check()


def test_all_over_nothing_is_left(drained: World) -> None:
    before = drained.plan
    for maker in before.makers:
        (job_folder(drained.project, maker.id) / "old").write_text("state")
    drained.run(Options(drain=True, fresh=True))
    after = drained.plan
    assert len(after.jobs) == len(before.jobs)
    assert not list(own_folder(drained.project).glob("jobs/*/old"))
    drained.check()


def test_drops_let_go_of_a_channel_one_by_one(world: World) -> None:
    seen: list[ChannelPlan] = []
    world.plot = {
        10: lambda: world.drop("pair"),
        20: lambda: seen.append(world.plan),
        21: world.check,
        22: lambda: world.drop("other"),
        30: world.stop,
    }
    world.run(Options())
    (after_one,) = seen
    assert "pair" not in after_one.ends and "other" in after_one.ends
    calls = world.executor.calls
    maker = next(m.id for m in after_one.makers if "other" in {one.id for one in after_one.downstream(m.id)})
    assert calls.index(("stop", "pair")) < calls.index(("stop", maker)), "it went on for the other"
    assert calls.count(("start", maker)) == 1
    assert world.plan.ends == {_tree(world.plan)} and world.states().keys() == {"counted", "near"}
    world.check()


def test_an_added_query_has_makers_of_its_own(world: World) -> None:
    world.plot = {10: lambda: world.add("again", PAIR), 30: world.check, 31: world.stop}
    world.run(Options())
    plan = world.plan
    assert "again" in plan.ends and world.states()["again"] == "stopped"
    own = [m for m in plan.makers if "again" in {one.id for one in plan.downstream(m.id)}]
    assert own and all(
        {one.id for one in plan.downstream(m.id)} <= {"again", *(o.id for o in own)} for m in own
    )
    order = world.started()
    assert all(order.index(m.id) < order.index("again") for m in own)
    world.plot = {}
    assert world.run().exit_code == 0 and world.plan == plan


def test_a_query_that_does_not_start_is_taken_back_with_its_makers(world: World) -> None:
    world.run(Options(drain=True))
    before = world.plan
    world.plot = {10: lambda: world.add("again", PAIR), 20: world.check, 25: world.stop}
    world.run(Options(), {"again": Script(refuse=UserError("too bad"))})
    assert world.plan == before and any("again was not added" in note for note in world.notes)
    started, stopped = world.started(), [name for what, name in world.executor.calls if what == "stop"]
    new = set(started) - {job.id for job in before.jobs} - {_tree(before), "near", "again"}
    assert new and new <= set(stopped)
    world.check()


def test_an_added_member_reads_what_its_tree_reads(world: World) -> None:
    sql = COUNT.replace("30 seconds", "60 seconds")
    world.plot = {10: lambda: world.add("more", sql), 25: world.stop}
    world.run(Options())
    (tree,) = world.plan.trees
    assert [member.query for member in tree.members] == ["counted", "more"]
    assert world.executor.trees[tree.id] == ("counted", "more")
    world.check()


def test_what_keeps_its_results_in_memory_stays_whole(world: World) -> None:
    queries = dict(world.project.queries)
    queries["pair"] = queries["pair"].model_copy(update={"sink": Sink(kind=SinkKind.MEMORY)})
    world.project = world.project.model_copy(update={"queries": queries})
    assert world.run().exit_code == 0
    assert "pair" not in world.plan.ends and "other" in world.plan.ends
    data = spread_data(world.project, plan_project(world.project))
    assert data["whole"].keys() == {"pair"} and "in memory" in data["whole"]["pair"]
    assert "pair is not spread" in spread_lines(data)[-1]


def test_plan_says_what_runs_where(drained: World) -> None:
    plan, data = drained.plan, spread_data(drained.project, plan_project(drained.project))
    assert [job["job"] for job in data["jobs"]] == [*(job.id for job in plan.jobs), _tree(plan)]
    head, *lines = spread_lines(data)
    assert head == f"spread: {len(data['jobs'])} jobs on 3 sites, {len(plan.makers)} channels"
    shared = plan.job(_shared(plan))
    assert f"  {shared.id} on west reads a, b, makes {shared.writes} for pair, other" in lines


def test_a_channel_that_is_gone_is_not_taken_for_an_empty_one(drained: World) -> None:
    maker = _shared(drained.plan)
    (job_folder(drained.project, maker) / "published.json").write_text('{"files": 3, "rows": 9}')
    channel = own_folder(drained.project) / "channels" / (drained.plan.job(maker).writes or "")
    channel.rename(channel.with_name("elsewhere"))
    with pytest.raises(UserError, match="other, pair read is not whole") as caught:
        drained.run()
    assert "--fresh --only other --only pair" in caught.value.render()
    drained.run(Options(drain=True, fresh=True, only=("pair", "other")))
    assert drained.run().exit_code == 0


# -- moves ------------------------------------------------------------------------------------------


def test_a_maker_is_moved_and_stays_where_it_is(drained: World) -> None:
    maker = drained.plan.job(_shared(drained.plan))
    drained.plot = {10: lambda: ask_move(drained.root, maker.id, "south")}
    drained.until = lambda: any(note.startswith(f"{maker.id} moved") for note in drained.notes)
    drained.run(Options(), moving=True)
    assert any(note.startswith(f"{maker.id} moved from {maker.site} to south") for note in drained.notes)
    assert drained.executor.context(maker.id).endpoint == drained.project.sites["south"].endpoint
    plan = drained.plan
    drained.plot, drained.until = {10: drained.stop}, None
    drained.run(Options(), moving=True)
    assert drained.executor.context(maker.id).endpoint == "sc://south:1" and drained.plan == plan
    with pytest.raises(UserError, match="is at south already"):
        ask_move(drained.root, maker.id, "south")
    with pytest.raises(UserError, match="no job"):
        ask_move(drained.root, "send-nothing", "south")


def test_a_maker_of_a_lost_site_goes_on_elsewhere(drained: World) -> None:
    maker = drained.plan.job(_shared(drained.plan))
    drained.plot = {10: lambda: drained.down.add(maker.site)}
    drained.until = lambda: any(note.startswith(f"{maker.id} moved") for note in drained.notes)
    outcome = drained.run(Options(), moving=True)
    assert outcome.failures == ()
    assert any(f"{maker.id} moved from {maker.site}" in note for note in drained.notes), drained.notes


def test_a_maker_that_fails_with_its_site_does_not_take_its_readers_along(drained: World) -> None:
    maker = drained.plan.job(_shared(drained.plan))
    drained.down.add(maker.site)
    drained.until = lambda: any(note.startswith(f"{maker.id} moved") for note in drained.notes)

    outcome = drained.run(Options(), moving=True, executor=FailsOnce({maker.id: Script(fail_at=2)}))
    assert outcome.failures == () and drained.started().count(maker.id) == 2
    assert drained.started().count("pair") == 1, "its readers have not noticed"
