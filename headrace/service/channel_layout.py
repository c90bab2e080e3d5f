"""Where channels lie, and what the jobs at their ends need.

<root>/.headrace/channels/<derived stream>/    parts, marks, readers (runtime/channels/files.py)
<root>/.headrace/jobs/<job>/                   checkpoint and staged rows of the job that makes it
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from headrace.catalog.model import FileSource, Format, Project, Sink, SinkKind, Stream
from headrace.plan.channels import ChannelJob, ChannelPlan, DerivedStream
from headrace.plan.logical import streams_of
from headrace.plan.placed import TreeJob
from headrace.runtime.channels.files import FileChannel
from headrace.runtime.channels.ports import Ports
from headrace.runtime.channels.protocol import Limit, Size
from headrace.runtime.executor import JobContext
from headrace.runtime.spark.channel_run import advance_by_checkpoint, collect, published_files
from headrace.service.layout import as_files, job_folder, own_folder, results_folder, tree_context


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
    )


def fed_tree_context(
    project: Project, plan: ChannelPlan, tree: TreeJob, master: str | None = None
) -> JobContext:
    """As `tree_context`, with the derived streams that the tree reads."""
    context = tree_context(project, tree, master)
    names = {stream.id for stream in plan.streams} & set(streams_of(tree.shape.rows))
    derived = {name: as_stream(project, plan.stream(name)) for name in names}
    return replace(context, streams={**context.streams, **derived})


def advance_trees(project: Project, plan: ChannelPlan) -> None:
    """Tell channels what trees have read. Jobs do it themselves."""
    for tree in plan.trees:
        for stream in plan.streams:
            if stream.id in streams_of(tree.shape.rows):
                channel = channel_of(project, stream)
                checkpoint = job_folder(project, tree.id) / "checkpoint"
                advance_by_checkpoint(channel, tree.id, checkpoint)


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


def collect_channels(project: Project, plan: ChannelPlan) -> None:
    """Remove what all readers have, also of makers that have ended. A maker that runs does it by itself."""
    for stream in plan.streams:
        state = job_folder(project, plan.maker(stream.id).id)
        given = published_files(state)
        collect(channel_of(project, stream), state, given)


def remove_channels(project: Project, streams: Iterable[str]) -> None:
    """Channels that no job makes or reads any more."""
    for stream in streams:
        shutil.rmtree(channels_folder(project) / stream, ignore_errors=True)


def sizes(project: Project, plan: ChannelPlan) -> dict[str, Size]:
    """What each channel holds now, by derived stream."""
    return {stream.id: channel_of(project, stream).size() for stream in plan.streams}
