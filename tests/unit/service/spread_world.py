"""A project that is spread over sites, on disk, and runs of it on the fake engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from headrace.catalog.model import Project
from headrace.plan.channels import ChannelPlan
from headrace.runtime.fake import FakeExecutor, Script
from headrace.runtime.sites import Ways
from headrace.service.channel_layout import channel_of
from headrace.service.layout import own_folder, state_file
from headrace.service.moving import moves_of
from headrace.service.run import Hooks, Options, Outcome, Runner, Snapshot
from headrace.service.spread_records import channels_of
from headrace.state.records import AddedQuery
from headrace.state.store import Store
from tests.unit.service.network_sample import project
from tests.unit.service.sample import Clock

JOINED = "FROM a JOIN b ON a.k = b.k AND a.m = b.m AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"
PAIR = f"SELECT a.ts, b.s {JOINED}"
OTHER = f"SELECT a.ts, b.s, a.v {JOINED}"
COUNT = (
    "SELECT window.start, count(*) AS n FROM a WHERE s = 'x'\nGROUP BY window(ts, '30 seconds', '10 seconds')"
)
NEAR = "SELECT ts, v FROM d WHERE v > 0"
QUERIES = {
    "pair": ("south", PAIR),
    "other": ("mid", OTHER),
    "counted": ("south", COUNT),
    "near": ("east", NEAR),
}
LINKS = (
    ("west", "north", "1ms"),
    ("north", "mid", "50ms"),
    ("mid", "south", "50ms"),
    ("east", "mid", "50ms"),
)
HOMES = {"a": "west", "b": "west", "d": "east"}
DRAIN = Options(drain=True)


_MOST_ROUNDS = 3000


class World:
    """A project on disk, and runs of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.settings(spread="true")
        self.executor = FakeExecutor()
        self.notes: list[str] = []
        self.plot: dict[int, Callable[[], object]] = {}
        self.until: Callable[[], bool] | None = None
        """When a run is stopped, for what other threads do."""
        self.down: set[str] = set()

    def settings(self, **settings: str) -> None:
        text = ", ".join(f"{key}: {value}" for key, value in settings.items())
        more = f"planner: {{{text}}}\n"
        made = project(self.root, QUERIES, links=LINKS, homes=HOMES, more=more)
        sites = {n: site.model_copy(update={"endpoint": f"sc://{n}:1"}) for n, site in made.sites.items()}
        self.project: Project = made.model_copy(update={"sites": sites})

    def run(
        self,
        options: Options = DRAIN,
        scripts: Mapping[str, Script] | None = None,
        *,
        moving: bool = False,
        executor: FakeExecutor | None = None,
    ) -> Outcome:
        clock, rounds = Clock(), 0
        self.executor, self.notes = executor or FakeExecutor(scripts or {}), []

        def watch(snapshot: Snapshot) -> None:
            nonlocal rounds
            rounds += 1
            self.plot.get(rounds, lambda: None)()
            if self.until is not None:
                time.sleep(0.002)  # Sites are asked by threads, which know only of real time.
                if self.until() or rounds > _MOST_ROUNDS:
                    self.stop()

        with Store(state_file(self.project)) as store, moves_of(self.project) as moves:
            hooks = Hooks(
                watch, self.notes.append, moves=moves if moving else None, seconds=lambda: clock().timestamp()
            )
            self.runner = Runner(self.project, store, clock, clock.sleep, options, hooks)
            self.runner.prepare()
            ways = Ways(
                lambda site: site not in self.down,
                lambda job, site: None,
                others=lambda job: list(self.project.sites),
            )
            return self.runner.run(self.executor, ways if moving else None)

    def stop(self) -> None:
        self.runner.request_stop()

    @property
    def plan(self) -> ChannelPlan:
        with self.store() as store:
            return channels_of(store.deployment())

    def states(self) -> dict[str, str | None]:
        with self.store() as store:
            return {record.id: record.observed for record in store.all()}

    def started(self) -> list[str]:
        return [name for what, name in self.executor.calls if what == "start"]

    def folders(self, kind: str) -> set[str]:
        folder = own_folder(self.project) / kind
        return {path.name for path in folder.iterdir()} if folder.is_dir() else set()

    def check(self) -> None:
        """On disk is what is deployed, and nothing else; whoever reads a channel is known to it."""
        plan = self.plan
        assert self.folders("channels") == {stream.id for stream in plan.streams}
        with self.store() as store:
            deployment = store.deployment()
        assert not deployment.doomed
        known = {job.id for job in plan.jobs} | deployment.ids | set(self.states())
        assert self.folders("jobs") <= known
        for stream in plan.streams:
            readers = sorted(one.id for one in plan.readers(stream.id))
            assert channel_of(self.project, stream).readers() == readers != []

    # -- what commands do, in processes of their own ------------------------------------------------

    def store(self) -> Store:
        made = Store(state_file(self.project))
        made.theirs = True  # type: ignore[attr-defined]
        return made

    def add(self, name: str, sql: str) -> None:
        with self.store() as store:
            store.ask_add(AddedQuery(name, sql, "json", None, "south"), False, "now")

    def drop(self, name: str) -> None:
        with self.store() as store:
            store.ask_drop({name: True}, "now")
