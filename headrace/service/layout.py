"""Where things lie in a project folder. Said once, here.

<root>/headrace.yaml
<root>/.headrace/state.db             what survives a restart
<root>/.headrace/run.lock             held by the one `headrace run` of this project
<root>/.headrace/data/<stream>/       rows of a generator stream
<root>/.headrace/jobs/<job>/          a job's checkpoint and staged output, or a tree's
<root>/.headrace/jobs/<query>/        what a member of a tree or of a split job keeps for itself
<storage>/<project>/<job>/            the job's checkpoint, at a site that has a storage
<root>/results/<query>/               published results, unless the sink names another folder
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from headrace.catalog.model import FileSource, Format, GeneratorSource, Project, Query, Sink, SinkKind, Stream
from headrace.ids import is_name
from headrace.plan.federated import FederatedJob
from headrace.plan.placed import Job, TreeJob
from headrace.runtime.executor import JobContext

FILE_SINKS = frozenset({SinkKind.PARQUET, SinkKind.JSON, SinkKind.CSV})


def writes_files(query: Query) -> bool:
    return query.sink.kind in FILE_SINKS


def own_folder(project: Project) -> Path:
    return project.root.resolve() / ".headrace"


def state_file(project: Project) -> Path:
    return own_folder(project) / "state.db"


def lock_file(project: Project) -> Path:
    return own_folder(project) / "run.lock"


def data_folder(project: Project, stream: str) -> Path:
    return own_folder(project) / "data" / stream


def jobs_folder(project: Project) -> Path:
    return own_folder(project) / "jobs"


def job_folder(project: Project, job_id: str) -> Path:
    return jobs_folder(project) / job_id


def storage_folder(project: Project, site: str) -> Path | None:
    """The project's own folder in the storage of a site. Projects of one name differ by where they are."""
    declared = project.sites.get(site)
    if declared is None or declared.storage is None:
        return None
    root = str(project.root.resolve())
    name = project.name if is_name(project.name) else "project"
    return Path(declared.storage) / f"{name}-{sha256(root.encode()).hexdigest()[:12]}"


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
    return query_context(project, job.query, job.site, master)


def query_context(project: Project, name: str, site: str, master: str | None = None) -> JobContext:
    """That of a query that runs on this site, as a job or as a member of a tree."""
    query = project.queries[name]
    return _context(project, name, site, master, query.sink, results_folder(project, query))


def tree_context(project: Project, tree: TreeJob | FederatedJob, master: str | None = None) -> JobContext:
    """The own one of a tree or of a split job: it has a folder, and no sink; each member has."""
    results = job_folder(project, tree.id) / "results"
    return _context(project, tree.id, tree.site, master, Sink(), results)


def gone_context(project: Project, job: FederatedJob, name: str, master: str | None = None) -> JobContext:
    """Of a query that has left a split job, and may be no longer in the project: nothing is given there."""
    folder = job_folder(project, job.id) / "gone" / name
    return _context(project, f"{job.id}/gone/{name}", job.site, master, Sink(), folder / "results")


def _context(
    project: Project, folder: str, site: str, master: str | None, sink: Sink, results: Path
) -> JobContext:
    return JobContext(
        streams={name: as_files(project, stream) for name, stream in project.streams.items()},
        tables=project.tables,
        sink=sink,
        root=project.root.resolve(),
        state=job_folder(project, folder),
        results=results,
        endpoint=master or project.sites[site].endpoint,
        shuffle_partitions=project.planner.shuffle_partitions,
        trigger=project.planner.trigger,
        storage=storage_folder(project, site),
    )
