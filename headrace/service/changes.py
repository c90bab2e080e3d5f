"""Add and drop queries of a project, also while it runs. This is the API; the CLI is a thin skin over it.

    from pathlib import Path
    from headrace.service.changes import NewQuery, add_query, drop_queries, wait_for

    project = Path("examples/smart-plugs")
    sql = "SELECT house, avg(value) AS v FROM load [RANGE 7 MINUTES SLIDE 1 MINUTE] GROUP BY house"
    change = add_query(project, NewQuery("house_7m", sql, sink="parquet"))
    done = wait_for(project, [change])[0]      # a Result: done.text, done.tree, done.valid_from, ...
    drop_queries(project, ["house_7m"])

A change is checked, and a new query must fit (admission.py). Then it is written down in one transaction, and
from then on it survives a kill of any process at any moment. The process that runs the project takes it;
where none does, the next `headrace run` will.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.catalog.check import check_project
from headrace.catalog.model import Project, Query, SinkKind
from headrace.errors import UserError
from headrace.ids import did_you_mean, is_name
from headrace.service.admission import ask
from headrace.service.folders import check_unused
from headrace.service.layout import lock_file, query_context, state_file, writes_files
from headrace.service.moments import Clock, now, timestamp
from headrace.service.planning import plan_query
from headrace.service.project import (
    ANYWHERE,
    as_added,
    check_sites,
    deployment_of,
    differs,
    edits_of,
    file_project,
    query_of,
    with_edits,
)
from headrace.service.refusals import refuse_results
from headrace.service.telling import sharers, tell
from headrace.state.lock import DRAINING, RUNNING, RunLock
from headrace.state.records import AddedQuery, Change, Deployment
from headrace.state.store import Store
from headrace.units import format_instant

TIMEOUT_SECONDS = 120.0
_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class NewQuery:
    """A query to add. Without `sql` it is one of the project file that was dropped and comes back."""

    name: str
    sql: str | None = None
    sink: str = SinkKind.PARQUET.value
    path: str | None = None
    """Where a file sink writes; None: results/<name>."""
    site: str | None = None
    """None: the default site of the project, or the one that `planner.distribution` gives it."""
    from_start: bool = False
    """Read the input from its beginning, rather than join a tree that runs."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a change so far."""

    query: str
    kind: str
    state: str
    """`pending`, `applied` or `refused`."""
    text: str
    tree: str | None
    shares_with: tuple[str, ...]
    valid_from: str | None
    """None: from the beginning."""
    pause_seconds: float | None
    failed: bool = False
    """Added, and then it failed."""
    warnings: tuple[str, ...] = ()
    """What the command had to say when it asked for the change."""
    notes: tuple[str, ...] = ()
    """Where the query is placed so that it fits, if it does not where that is cheapest."""

    @property
    def ok(self) -> bool:
        return self.state != "refused"


def add_query(
    path: Path,
    new: NewQuery,
    clock: Clock = now,
    *,
    force: bool = False,
    warn: Callable[[str], None] = lambda _: None,
    note: Callable[[str], None] = lambda _: None,
) -> int:
    """Add a query to the project; the number of the change, for `wait_for`. Raises UserError, and then
    nothing has changed: where it is wrong, and where it does not fit, unless by `force`. `warn` is told what
    does not fit and is no reason to refuse it; `note`, where it is placed so that it does."""
    written = file_project(path)
    added = _added(written, new)
    change = None
    while change is None:
        # Another command may come between, and take the room that this one has seen.
        edits = edits_of(written)
        check_sites(written, edits)
        project = with_edits(written, edits)
        _check(project, added)
        notes: list[str] = []
        told = ask(
            project,
            query_of(added, project),
            from_start=new.from_start,
            movable=new.sql is not None,
            force=force,
            note=notes.append,
        )
        with Store(state_file(written)) as store:
            change = store.ask_add_after(edits, added, new.from_start, timestamp(clock))
    for text in told:
        warn(text)
    for text in notes:
        note(text)
    return change


def drop_queries(path: Path, names: Sequence[str], clock: Clock = now) -> list[int]:
    """Take queries out of the project, all of them or, where one is not there, none. Their results stay on
    disk. Raises UserError."""
    written = file_project(path)
    edits, deployed = edits_of(written), deployment_of(written)
    project = with_edits(written, edits)
    for name in names:
        if name not in project.queries and deployed.place(name) is None:
            hint = did_you_mean(name, project.queries, "queries")
            raise UserError(f'query "{name}" does not exist', hint=hint)
    # Where the file has another one of that name, only the one that was added goes.
    others = {added.name for added in edits.added if differs(written, added)}
    wanted = {name: name in written.queries and name not in others for name in names}
    with Store(state_file(written)) as store:
        return store.ask_drop(wanted, timestamp(clock))


def wait_for(
    path: Path,
    changes: Collection[int],
    timeout: float = TIMEOUT_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Result]:
    """Wait until the process that runs the project has taken the changes; at once where none runs, or where
    it drains. After `timeout` seconds what is left is still pending: it is never given up."""
    project = file_project(path)
    with Store(state_file(project)) as store:
        waited, doing = 0.0, RunLock.holder(lock_file(project))
        while waited < timeout and doing == RUNNING and _open(store, changes):
            sleep(_POLL_SECONDS)
            waited += _POLL_SECONDS
            doing = RunLock.holder(lock_file(project))
        return _results(store, changes, doing)


def look_at(path: Path, changes: Collection[int]) -> list[Result]:
    """What became of changes so far."""
    return wait_for(path, changes, timeout=0.0)


def _open(store: Store, changes: Collection[int]) -> bool:
    return any(change.settled is None for change in store.changes(changes))


def _results(store: Store, changes: Collection[int], doing: str | None) -> list[Result]:
    deployment = store.deployment()
    return [_result(change, deployment, doing) for change in store.changes(changes)]


def _result(change: Change, deployment: Deployment, doing: str | None) -> Result:
    text = tell(change, deployment)
    if change.settled is None:
        text += f": {_WHEN.get(doing, _WHEN[None])}"
    return Result(
        change.query,
        change.kind,
        change.state,
        text,
        change.tree,
        tuple(sharers(change.query, deployment)),
        None if change.valid_from is None else format_instant(change.valid_from),
        change.pause,
        failed=change.kind == "add" and change.state != "refused" and bool(change.message),
    )


_WHEN: dict[str | None, str] = {
    None: "no run is on; it takes effect with the next `headrace run`",
    DRAINING: "the run that is on drains its input and takes no changes; it takes effect with the next one",
    RUNNING: "the run that is on has not taken it so far; it will, or the next one",
}


# -- checks ---------------------------------------------------------------------------------------------


def _added(written: Project, new: NewQuery) -> AddedQuery:
    if not is_name(new.name):
        hint = "A name starts with a letter or _, and has letters, digits, _ and - (at most 64)."
        raise UserError(f'"{new.name}" is not a legal name', hint=hint)
    known = written.queries.get(new.name)
    if known is not None and new.sql is None:
        if new != NewQuery(new.name, from_start=new.from_start):
            raise UserError(
                f'query "{new.name}" comes back as the project file has it',
                hint="Leave its sink, path and site out, or change them in the file.",
            )
        return as_added(known)
    if known is not None:
        raise UserError(
            f'query "{new.name}" is in the project file',
            hint=f"Choose another name. If it was dropped, take it back with: headrace add {new.name}",
        )
    if new.sql is None:
        raise UserError(
            f'query "{new.name}" needs its SQL', hint="Name its file with --sql FILE, or --sql -."
        )
    # The default is not written down: it is another one when sites are renamed, or distributed over.
    return AddedQuery(new.name, new.sql, _sink(new.sink), new.path, new.site or ANYWHERE)


def _sink(kind: str) -> str:
    kinds = [known.value for known in SinkKind]
    if kind not in kinds:
        raise UserError(f'"{kind}" is not a sink', hint=did_you_mean(kind, kinds, "sinks"))
    return kind


def _check(project: Project, added: AddedQuery) -> None:
    """All that can be known before it runs: the name, the site, the folder, the SQL."""
    query = query_of(added, project)
    if query.name in project.queries:
        raise UserError(
            f'query "{query.name}" is there already', hint="Drop it first, or choose another name."
        )
    project = project.model_copy(update={"queries": {**project.queries, query.name: query}})
    _check_parts(project, query)
    plan = plan_query(project, query).plan
    refuse_results(project, {query.name: plan})
    if writes_files(query):
        context = query_context(project, query.name, query.site)
        check_unused(context, hint="Choose another name or --path, or move those files away.")


def _check_parts(project: Project, query: Query) -> None:
    """The query against the other parts of the project, as the project file is checked."""
    for problem in check_project(project):
        if problem.trail[:2] == ("queries", query.name):
            raise UserError(problem.message, hint=problem.hint)
