"""Where things lie in a project folder. Said once, here.

<root>/headrace.yaml
<root>/.headrace/state.db             what survives a restart
<root>/.headrace/run.lock             held by the one `headrace run` of this project
<root>/.headrace/data/<stream>/       rows of a generator stream
<root>/.headrace/jobs/<job>/          a job's checkpoint and staged output
<root>/results/<query>/               published results, unless the sink names another folder
"""

from __future__ import annotations

from pathlib import Path

from headrace.catalog.model import FileSource, Format, GeneratorSource, Project, Query, Stream
from headrace.plan.placed import Job
from headrace.runtime.executor import JobContext


def own_folder(project: Project) -> Path:
    return project.root.resolve() / ".headrace"


def state_file(project: Project) -> Path:
    return own_folder(project) / "state.db"


def lock_file(project: Project) -> Path:
    return own_folder(project) / "run.lock"


def data_folder(project: Project, stream: str) -> Path:
    return own_folder(project) / "data" / stream


def job_folder(project: Project, job_id: str) -> Path:
    return own_folder(project) / "jobs" / job_id


def results_folder(project: Project, query: Query) -> Path:
    if query.sink.path is None:
        return project.root.resolve() / "results" / query.name
    return (project.root.resolve() / query.sink.path).resolve()


def as_files(project: Project, stream: Stream) -> Stream:
    """A generator stream as the files it was written to; any other stream as it is."""
    source = stream.source
    if not isinstance(source, GeneratorSource):
        return stream
    files = FileSource(
        path=str(data_folder(project, stream.name)),
        format=Format.PARQUET,
        files_per_batch=source.files_per_batch,
    )
    return stream.model_copy(update={"source": files})


def job_context(project: Project, job: Job, master: str | None = None) -> JobContext:
    """What a job needs besides its plan. `master` takes the place of its site's endpoint."""
    query = project.queries[job.query]
    return JobContext(
        streams={name: as_files(project, stream) for name, stream in project.streams.items()},
        tables=project.tables,
        sink=query.sink,
        root=project.root.resolve(),
        state=job_folder(project, job.id),
        results=results_folder(project, query),
        endpoint=master or project.sites[job.site].endpoint,
        shuffle_partitions=project.planner.shuffle_partitions,
        trigger=project.planner.trigger,
    )
