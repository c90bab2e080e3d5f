"""The executor protocol: how the service starts, watches and stops jobs, whatever runs them.

Desired and observed state are kept apart by the service; `JobState` is what was observed:

    STARTING -> RUNNING -> DRAINING -> FINISHED
        |          |          |
        +----------+----------+--> FAILED | STOPPED
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from headrace.catalog.model import Sink, Stream, Table
from headrace.plan.channels import ChannelJob
from headrace.plan.federated import FederatedJob
from headrace.plan.placed import Job, TreeJob

if TYPE_CHECKING:
    from headrace.runtime.channels.ports import Ports


class JobState(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


ENDED = frozenset({JobState.FINISHED, JobState.STOPPED, JobState.FAILED})


@dataclass(frozen=True, slots=True)
class JobContext:
    """Everything a job needs besides its plan. Paths are absolute."""

    streams: Mapping[str, Stream]
    tables: Mapping[str, Table]
    sink: Sink
    root: Path
    """Where relative paths of sources start."""
    state: Path
    """The job's own folder: checkpoint, staged output, close marks."""
    results: Path
    """Where committed output appears (file sinks)."""
    endpoint: str
    shuffle_partitions: int = 2
    trigger: int = 0
    """Microseconds between micro-batches; 0: as fast as they go."""
    storage: Path | None = None
    """Where the site has checkpoints, each in a folder by the name of `state`; None: they are in `state`."""

    @property
    def keeps(self) -> Path | None:
        """Where the checkpoint is, other than in `state`."""
        return None if self.storage is None else self.storage / self.state.name


@dataclass(frozen=True, slots=True)
class Progress:
    """What is known of one job at one moment. None: never observed. 0: observed and silent."""

    job: str
    state: JobState
    batch: int | None = None
    input_rows: int = 0
    """Rows read since this start of the job, over all its streams."""
    output_rows: int = 0
    """Rows given to the sink, since the job's very first start."""
    late_rows: int = 0
    """Rows that missed a window or a join because they came behind the watermark, since the first start."""
    rows_per_second: float | None = None
    batch_millis: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    """Of memory that the engine's state store says it uses."""
    watermark: int | None = None
    """Event time in microseconds; None before the first watermark."""
    lag: int | None = None
    """Microseconds between the newest event time seen and the watermark."""
    input_total: int | None = None
    """Rows the finite input will have in all, when that is known."""
    valid_from: int | None = None
    """Event time in microseconds: the query gives all its windows that start here or later, and none before.
    None: all of them."""
    error: str = ""
    made: tuple[tuple[str, int, int], ...] = ()
    """Of a split job, for each node whose rows are counted: query, number of the node in its plan (in the
    order of `logical.nodes`), and the rows it has given since the job's very first start."""
    input_before: int = 0
    """Rows read before this start of the job, as far as is known; the executor itself knows of none."""
    lost: bool = False
    """It has failed because its engine, or what that knew of it, is gone: another start may go well."""
    notes: tuple[str, ...] = field(default=())

    @property
    def rows_read(self) -> int:
        """By all starts."""
        return self.input_before + self.input_rows


class Executor(Protocol):
    """Runs jobs. Calls are cheap but `start` and `close`; nothing blocks until the data is done."""

    def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
        """Start or resume the job from its checkpoint. With `drain`, read the finite input to its end,
        close the streams so that every open window is given, and finish.
        Raises UserError where the job cannot run as asked."""
        ...

    def start_tree(
        self, tree: TreeJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        """Start or resume a tree, as `start` does a job. `context` is the tree's own (its sink and results
        mean nothing), `members` has that of each query. A tree that has run before may be started with other
        members: the ones that stay lose and repeat nothing; a new one gives its windows from an instant on
        that `progress` tells (`valid_from`). Afterwards `progress` knows the tree by its id, and each member
        by its query's name; `stop` and `status` take the tree's id."""
        ...

    def start_federated(
        self, job: FederatedJob, context: JobContext, members: Mapping[str, JobContext], *, drain: bool
    ) -> None:
        """Start or resume queries that are split between Spark and DuckDB, as `start_tree` does a tree; the
        members of such a job never change. A query may be in two jobs while one takes over from the other
        (`after` and `until`): `progress` then knows it as it is in the job that was started last. A job is
        FINISHED once all its members have given the last window that they are to give."""
        ...

    def start_channel(self, job: ChannelJob, context: JobContext, ports: Ports, *, drain: bool) -> None:
        """Start or resume a job that reads or makes derived streams, as `start` does a job. With `drain` it
        reads on until the makers of all it reads have ended, and so must be started after them. `progress`,
        `stop` and `status` take the job's id."""
        ...

    def set_until(self, job_id: str, queries: Collection[str], end: int) -> None:
        """Let members of a federated job give no window that ends later than `end` (microseconds of event
        time): all of them or, where it raises, none. Outlives the process; waits for the batch that is being
        done. Raises InternalError where a later window may have been given."""
        ...

    def seen_until(self, job_id: str) -> int | None:
        """The newest event time that a federated job has taken in, in microseconds; None: no row yet."""
        ...

    def stop(self, job_id: str) -> None:
        """Stop at a batch boundary. What was committed stays; a later start goes on from there."""
        ...

    def status(self, job_id: str) -> JobState: ...

    def progress(self, job_id: str) -> Progress: ...

    def close(self) -> None:
        """Stop every job and release the engine."""
        ...
