"""`headrace serve`: a run that goes on whatever fails, tells events, and evens out its sites where asked to.

All that it needs is on disk: one that was killed is started again, and finds the deployment, the changes that
were asked for, the journal of moves, and what was gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from headrace.catalog.model import Project, Rebalance
from headrace.errors import UserError
from headrace.runtime.executor import JobState
from headrace.service.fleet import Fleet
from headrace.service.gathering import EachRound, Note, gathering
from headrace.service.moments import Clock, now, timestamp
from headrace.service.moving import moves_of
from headrace.service.rebalancing import EVERY, MODES, Mode, Rebalancing, how_of
from headrace.service.rebalancing_how import every_of, patience_of
from headrace.service.rows import Rows
from headrace.service.run import Options, Outcome, Snapshot, Watched
from headrace.service.session import Watcher, run_project

LEAST_EVERY = 5.0


@dataclass(frozen=True, slots=True)
class Event:
    at: str
    """ISO text in UTC."""
    event: str
    """`note`, `query`, `data` or `row`."""
    text: str
    query: str | None = None
    state: str | None = None
    """Of the query, from now on."""
    site: str | None = None


Tell = Callable[[Event], None]


@dataclass(frozen=True, slots=True)
class Serve:
    """What is asked of a service."""

    rebalance: Mode = "off"
    every: float = EVERY
    """Seconds between two decisions."""
    asked: Rebalance = field(default_factory=Rebalance)
    """By which rules."""
    master: str | None = None


def serve_of(
    rebalance: str,
    every: float | None = None,
    policy: str | None = None,
    model: str | None = None,
    master: str | None = None,
    asked: Rebalance | None = None,
) -> Serve:
    """By the rules `asked`, but for what else is given. Raises UserError for what does not go."""
    mode = next((mode for mode in MODES if mode == rebalance), None)
    if mode is None:
        raise UserError(f'"{rebalance}" is no way to rebalance', hint=f"One of: {', '.join(MODES)}.")
    how = how_of(policy, model, asked=asked)
    every = every_of(how.asked) if every is None else every
    if not LEAST_EVERY <= every < float("inf"):
        raise UserError(f"{every:g} s is too often, or never", hint=f"Give {LEAST_EVERY:g} s or more.")
    if master is not None and mode != "off":
        raise UserError("with --master all queries run in one Spark, and nothing can be moved")
    return Serve(mode, every, how.asked, master)


def serve_project(project: Project, how: Serve, environ: Mapping[str, str], tell: Tell) -> Outcome:
    """Run the queries until the process is told to stop; there may be none yet."""
    events = Events(tell)
    options = Options(master=how.master, serve=True)
    with rounds(project, how, events.note) as each_round:
        return run_project(project, options, environ, watcher=events.watcher(), each_round=each_round)


@contextmanager
def rounds(project: Project, how: Serve, note: Note) -> Iterator[EachRound]:
    """What a service does in each round besides running its jobs. Opens the state file with the first: until
    then the project may turn out to be wrong, and nothing is made."""
    asked = how_of(asked=how.asked, patience=patience_of(how.asked, how.every))
    with gathering(how.master, note) as gathered:
        made: list[Rebalancing] = []

        def look(project: Project, fleet: Fleet) -> None:
            if not made:
                moves = moves_of(project)
                made.append(Rebalancing(gathered, moves, asked, how.rebalance, how.every, note))
            made[0].look(project, fleet)

        try:
            yield look
        finally:
            for one in made:
                one.close()


@dataclass(slots=True)
class Events:
    """Turns what a run shows into events: a line when something has changed, and none otherwise."""

    tell: Tell
    clock: Clock = now
    _states: dict[str, tuple[str, str]] = field(default_factory=dict)
    _data: set[str] = field(default_factory=set)

    def watcher(self) -> Watcher:
        return Watcher(self.snapshot, self.data, self.rows, self.note)

    def note(self, text: str) -> None:
        self._tell("note", text)

    def data(self, stream: str, done: int, total: int) -> None:
        if done >= total and stream not in self._data:
            self._data.add(stream)
            self._tell("data", f"data of stream {stream}: {total:,} rows")

    def rows(self, query: str, rows: Rows) -> None:
        for row in rows.rows:
            values = ", ".join(f"{name}={value}" for name, value in zip(rows.columns, row, strict=True))
            self._tell("row", values, query)

    def snapshot(self, snapshot: Snapshot) -> None:
        here = {watched.job for watched in snapshot.jobs}
        for gone in self._states.keys() - here:
            del self._states[gone]
            self._tell("query", f"{gone} is not run any more", gone)
        for watched in snapshot.jobs:
            self._query(watched)

    def _query(self, watched: Watched) -> None:
        progress = watched.progress
        state = "waiting" if progress is None else str(progress.state)
        before = self._states.get(watched.job)
        if before == (state, watched.site):
            return
        self._states[watched.job] = (state, watched.site)
        text = f"{watched.job} is {state} at {watched.site}"
        text += f", in {watched.tree}" if watched.tree else ""
        if progress is not None and progress.state is JobState.FAILED and progress.error:
            text += f": {progress.error.splitlines()[0]}"
        self._tell("query", text, watched.job, state, watched.site)

    def _tell(
        self,
        event: str,
        text: str,
        query: str | None = None,
        state: str | None = None,
        site: str | None = None,
    ) -> None:
        self.tell(Event(timestamp(self.clock), event, text, query, state, site))
