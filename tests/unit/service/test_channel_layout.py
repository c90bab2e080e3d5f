"""Where channels lie, who is enlisted, and what is removed of them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.catalog.model import FileSource, Project
from headrace.plan.channels import ChannelPlan
from headrace.runtime.channels.files import FileChannel
from headrace.runtime.channels.protocol import Size
from headrace.service import channel_layout
from headrace.service.channel_layout import (
    advance_trees,
    channel_context,
    channel_of,
    collect_channels,
    enlist_readers,
    fed_tree_context,
    makers_ended,
    ports_of,
    remove_channels,
    sizes,
)
from headrace.service.cutting import spread
from headrace.service.weaving import place
from tests.unit.service.network_sample import project

PAIR = "SELECT a.ts, b.s FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"
COUNT = (
    "SELECT window.start, count(*) AS n FROM a WHERE s = 'x'\nGROUP BY window(ts, '30 seconds', '10 seconds')"
)


@pytest.fixture
def found(tmp_path: Path) -> Project:
    return project(tmp_path, {"pair": ("south", PAIR), "counted": ("south", COUNT)})


@pytest.fixture
def plan(found: Project) -> ChannelPlan:
    return spread(found, place(found, list(found.queries)))


def test_contexts_and_ports(found: Project, plan: ChannelPlan) -> None:
    own = found.root.resolve() / ".headrace"
    for job in plan.jobs:
        context, ports = channel_context(found, plan, job), ports_of(found, plan, job)
        assert context.state == own / "jobs" / job.id
        assert set(context.streams) == {*found.streams, *job.reads}
        assert set(ports.inputs) == set(job.reads)
        assert (ports.output is None) == (job.query is not None)
        for name in job.reads:
            source = context.streams[name].source
            assert isinstance(source, FileSource)
            assert source.path == str(own / "channels" / name / "rows") == str(ports.inputs[name].rows)
    assert channel_context(found, plan, plan.job("pair")).results == found.root.resolve() / "results" / "pair"
    (tree,) = plan.trees
    (stream,) = set(fed_tree_context(found, plan, tree).streams) - set(found.streams)
    assert tree in plan.readers(stream)
    delayed = found.streams["a"].model_copy(update={"watermark": 7_000_000})
    slow = found.model_copy(update={"streams": {**found.streams, "a": delayed}})
    again = spread(slow, place(slow, list(slow.queries)))
    (tree,) = again.trees
    fed = fed_tree_context(slow, again, tree).streams
    assert [fed[name].watermark for name in fed if name not in slow.streams] == [7_000_000]


def test_readers_of_the_plan_are_enlisted_and_no_others(found: Project, plan: ChannelPlan) -> None:
    channel = channel_of(found, plan.streams[0])
    channel.enlist("of-an-older-plan")
    enlist_readers(found, plan)
    for stream in plan.streams:
        wanted = sorted(reader.id for reader in plan.readers(stream.id))
        assert channel_of(found, stream).readers() == wanted != []


def test_what_a_tree_has_read_goes(found: Project, plan: ChannelPlan, tmp_path: Path) -> None:
    (tree,) = plan.trees
    stream = next(one for one in plan.streams if tree in plan.readers(one.id))
    enlist_readers(found, plan)
    channel = channel_of(found, stream)
    row = pa.array([1], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": row}), tmp_path / "part.parquet")
    for number in range(2):
        channel.put(number, tmp_path / "part.parquet")
    for other in set(channel.readers()) - {tree.id}:
        channel.advance(other, 2)
    jobs = found.root.resolve() / ".headrace" / "jobs"
    maker = jobs / plan.maker(stream.id).id
    maker.mkdir(parents=True)
    (maker / "published.json").write_text(json.dumps({"files": 2, "rows": 2}))
    advance_trees(found, plan)
    collect_channels(found, plan)
    assert sizes(found, plan)[stream.id].parts == 2, "the tree has not run"
    _committed(jobs / tree.id / "checkpoint", [channel.rows / "part-000000.parquet"])
    advance_trees(found, plan)
    collect_channels(found, plan)
    assert sizes(found, plan)[stream.id] == Size(1, (tmp_path / "part.parquet").stat().st_size)
    assert not makers_ended(found, plan, tree.id)
    channel.end()
    assert makers_ended(found, plan, tree.id)
    remove_channels(found, [stream.id])
    assert not channel.folder.exists()


def test_a_channel_that_cannot_be_tidied_holds_up_no_other(
    found: Project, plan: ChannelPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *others = [stream.id for stream in plan.streams]
    tidied: list[str] = []

    def collect(channel: FileChannel, state: Path, given: int, gone: int) -> int:
        if channel.folder.name == first:
            raise PermissionError("not yours")
        tidied.append(channel.folder.name)
        return 7

    monkeypatch.setattr(channel_layout, "collect", collect)
    trouble: list[OSError] = []
    assert collect_channels(found, plan, (), {first: 3}, trouble) == {first: 3, **dict.fromkeys(others, 7)}
    assert tidied == others != [] and [str(one) for one in trouble] == ["not yours"]
    with pytest.raises(PermissionError):
        collect_channels(found, plan)


def _committed(checkpoint: Path, files: list[Path]) -> None:
    entries = [json.dumps({"path": path.as_uri(), "batchId": 0}) for path in files]
    logs = {
        "offsets/0": ["v1", '{"batchWatermarkMs": 0}', '{"logOffset": 0}'],
        "commits/0": ["v1", '{"nextBatchWatermarkMs": 0}'],
        "sources/0/0": ["v1", *entries],
    }
    for name, lines in logs.items():
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text("\n".join(lines))
