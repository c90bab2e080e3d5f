"""Where channels lie, and what the jobs at their ends need.

<root>/.headrace/channels/<derived stream>/    parts, marks, readers (runtime/channels/files.py)
<root>/.headrace/jobs/<job>/                   checkpoint and staged rows of the job that makes it
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from headrace.catalog.model import FileSource, Format, Project, Sink, SinkKind, Stream
from headrace.errors import UserError
from headrace.plan.channels import ChannelJob, ChannelPlan, DerivedStream
from headrace.plan.logical import StreamScan, nodes, streams_of
from headrace.plan.placed import TreeJob
from headrace.runtime.channels.files import FileChannel
from headrace.runtime.channels.ports import Ports
from headrace.runtime.channels.protocol import Limit, Size
from headrace.runtime.executor import JobContext
from headrace.runtime.spark.channel_run import advance_by_checkpoint, collect, published_files
from headrace.service.layout import (
    as_files,
    job_folder,
    own_folder,
    results_folder,
    storage_folder,
    tree_context,
)


def channels_folder(project: Project) -> Path:
    return own_folder(project) / "channels"


def channel_of(project: Project, stream: DerivedStream, limit: Limit | None = None) -> FileChannel:
    return FileChannel(channels_folder(project) / stream.id, stream.plan.times, limit)


def as_stream(project: Project, stream: DerivedStream) -> Stream:
    """A derived stream as its readers' engine has it: files in a folder, like another. A tree that reads it
    goes by the delay of its own scan."""
    rows = channels_folder(project) / stream.id / "rows"
    return Stream(
        name=stream.id,
        columns={column.name: column.type for column in stream.plan.schema},
        time=stream.plan.times[0],
        site=stream.site,
        source=FileSource(path=str(rows), format=Format.PARQUET),
    )


def channel_context(
    project: Project, plan: ChannelPlan, job: ChannelJob, master: str | None = None
) -> JobContext:
    """What a job needs besides its plan and its channels."""
    base = {name: as_files(project, stream) for name, stream in project.streams.items()}
    derived = {name: as_stream(project, plan.stream(name)) for name in job.reads}
    if job.query is not None:
        query = project.queries[job.query]
        sink, results = query.sink, results_folder(project, query)
    else:
        sink, results = Sink(kind=SinkKind.PARQUET), job_folder(project, job.id) / "results"
    return JobContext(
        streams={**base, **derived},
        tables=project.tables,
        sink=sink,
        root=project.root.resolve(),
        state=job_folder(project, job.id),
        results=results,
        endpoint=master or project.sites[job.site].endpoint,
        shuffle_partitions=project.planner.shuffle_partitions,
        trigger=project.planner.trigger,
        storage=storage_folder(project, job.site),
    )


def fed_tree_context(
    project: Project, plan: ChannelPlan, tree: TreeJob, master: str | None = None
) -> JobContext:
    """As `tree_context`, with the derived streams that the tree reads, each with the delay that it reads it
    by: that is where the watermark stands when the stream is closed."""
    context = tree_context(project, tree, master)
    scans = {node.stream: node for node in nodes(tree.shape.rows) if isinstance(node, StreamScan)}
    derived = {
        stream.id: as_stream(project, stream).model_copy(update={"watermark": scans[stream.id].watermark})
        for stream in plan.streams
        if stream.id in scans
    }
    return replace(context, streams={**context.streams, **derived})


def advance_trees(project: Project, plan: ChannelPlan, trouble: list[OSError] | None = None) -> None:
    """Tell channels what trees have read. Jobs do it themselves. What goes wrong at one channel goes to
    `trouble`, where that is given, and holds up no other."""
    for tree in plan.trees:
        for stream in plan.streams:
            if stream.id in streams_of(tree.shape.rows):
                with _kept(trouble):
                    channel = channel_of(project, stream)
                    checkpoint = job_folder(project, tree.id) / "checkpoint"
                    advance_by_checkpoint(channel, tree.id, checkpoint)


@contextmanager
def _kept(trouble: list[OSError] | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if trouble is None:
            raise
        trouble.append(error)


def ports_of(project: Project, plan: ChannelPlan, job: ChannelJob, limit: Limit | None = None) -> Ports:
    inputs = {name: channel_of(project, plan.stream(name)) for name in job.reads}
    output = None if job.writes is None else channel_of(project, plan.stream(job.writes), limit)
    return Ports(inputs, output, frozenset(name for name in job.reads if plan.stream(name).never_late))


def enlist_readers(project: Project, plan: ChannelPlan) -> None:
    """Before the first maker starts: nothing is removed that a reader of the plan has not read; readers that
    are no more hold nothing back."""
    for stream in plan.streams:
        channel = channel_of(project, stream)
        wanted = {reader.id for reader in plan.readers(stream.id)}
        for reader in set(channel.readers()) - wanted:
            channel.leave(reader)
        for reader in sorted(wanted):
            channel.enlist(reader)


def makers_ended(project: Project, plan: ChannelPlan, reader: str) -> bool:
    """Whether all that a reader will ever get is there. A tree that is to be drained is started then; a job
    waits for it by itself."""
    read = (s for s in plan.streams if any(one.id == reader for one in plan.readers(s.id)))
    return all(channel_of(project, stream).ended() for stream in read)


def collect_channels(
    project: Project,
    plan: ChannelPlan,
    running: Collection[str] = (),
    before: Mapping[str, int] | None = None,
    trouble: list[OSError] | None = None,
) -> dict[str, int]:
    """Remove what all readers have. Makers that are `running` do it by themselves, and must not be met.
    Returns, by stream, below which part all are gone, for the next call to know (`before`). `trouble` as for
    `advance_trees`."""
    found = dict(before or {})
    for stream in plan.streams:
        maker = plan.maker(stream.id).id
        if maker not in running:
            with _kept(trouble):
                state = job_folder(project, maker)
                channel, given = channel_of(project, stream), published_files(state)
                found[stream.id] = collect(channel, state, given, found.get(stream.id, 0))
    return found


def check_channels(project: Project, plan: ChannelPlan) -> None:
    """Raises UserError for a channel without what its maker has kept, or the other way round: its rows would
    be given twice, or be lost."""
    for stream in plan.streams:
        maker, channel = plan.maker(stream.id).id, channels_folder(project) / stream.id
        state, rows = job_folder(project, maker), channel / "rows"
        lost = not rows.is_dir() and (state / "published.json").exists()
        orphaned = not state.exists() and rows.is_dir() and any(rows.iterdir())
        if lost or orphaned:
            names = sorted(end.id for end in plan.downstream(maker) if end.id in plan.ends)
            queries = [q for tree in plan.trees if tree.id in names for q in (m.query for m in tree.members)]
            queries += [name for name in names if name in project.queries]
            raise UserError(
                f"what {', '.join(names)} read is not whole any more",
                detail=f"There is no folder {channel if lost else state}.",
                hint=f"Run from the beginning with: headrace run --fresh --only {' --only '.join(queries)}",
            )


def remove_channels(project: Project, streams: Iterable[str]) -> None:
    """Channels that no job makes or reads any more."""
    for stream in streams:
        shutil.rmtree(channels_folder(project) / stream, ignore_errors=True)


def sizes(project: Project, plan: ChannelPlan) -> dict[str, Size]:
    """What each channel holds now, by derived stream."""
    return {stream.id: channel_of(project, stream).size() for stream in plan.streams}
