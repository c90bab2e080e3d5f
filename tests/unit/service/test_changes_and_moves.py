"""Changes that are asked for while a move has not come to its end: no job ever has two copies, and nothing is
removed under one. Who runs where is counted by the sites themselves, whatever the run believes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.catalog.model import Project, Site
from headrace.errors import EngineError
from headrace.plan.placed import Job
from headrace.runtime.executor import JobContext
from headrace.runtime.fake import FakeExecutor
from headrace.runtime.sites import Ways
from headrace.service.layout import job_folder, state_file
from headrace.service.moving import moves_of
from headrace.state.moves import Moves
from headrace.state.records import AddedQuery
from headrace.state.store import Store
from tests.unit.service import sample
from tests.unit.service.test_sitekeeping import World


class Counting(FakeExecutor):
    """Knows every copy that is running. The first start at west is made, and its reply is lost."""

    def __init__(self, stuck: World) -> None:
        super().__init__()
        self.copies: dict[str, set[str]] = {}
        self.twice: list[str] = []
        self._world, self._lost = stuck, False

    def start(self, job: Job, context: JobContext, *, drain: bool) -> None:
        site = context.endpoint.removeprefix("sc://").removesuffix(":1")
        here = self.copies.setdefault(job.id, set())
        if here:
            self.twice.append(f"{job.id} starts at {site}, and runs at {', '.join(here)}")
        here.add(site)
        if site == "west" and not self._lost:
            self._lost = True
            self._world.down |= {"east", "west"}
            raise EngineError("the reply was lost")
        super().start(job, context, drain=drain)

    def stop(self, job_id: str) -> None:
        super().stop(job_id)
        self.copies[job_id].clear()


class Stuck(World):
    """Job a is on its way from east to west, and nothing answers: it waits, and a copy runs at west."""

    def __init__(self, root: Path, moves: Moves, store: Store, found: Project) -> None:
        super().__init__(root, moves, store, found)
        self.counting = Counting(self)
        self.executor = self.counting
        self.deaf: set[str] = set()
        """Sites of which nobody can say whether something runs there."""
        self.plot = [
            (self.at("east", "a", "b"), lambda: moves.ask("a", "east", "west")),
            (lambda: "west" in self.down and bool(moves.open_moves()), lambda: None),
        ]

    def _watch(self, snapshot: object) -> None:
        super()._watch(snapshot)
        if not job_folder(self.project, "a").exists():
            assert not self.counting.copies.get("a"), "what it keeps was removed under a copy"

    def _clear(self, job: str, site: str) -> None:
        if site in self.deaf:
            raise EngineError(f"{job} may still run at {site}")
        self.cleared.append((job, site))
        self.counting.copies.get(job, set()).discard(site)

    @property
    def ways(self) -> Ways:
        return Ways(lambda site: site not in self.down, self._clear, others=lambda job: ("east", "west"))

    def add(self, name: str) -> None:
        self.store.ask_add(AddedQuery(name, "SELECT 1", "console", None, "east"), False, "now")

    def settled(self) -> bool:
        return not (self.store.any_pending() or self.store.unsettled())


@pytest.fixture
def stuck(tmp_path: Path) -> Iterator[Stuck]:
    made = sample.project(tmp_path, ("a", "b"))
    sites = {name: Site(name=name, endpoint=f"sc://{name}:1") for name in ("east", "west")}
    queries = {name: query.model_copy(update={"site": "east"}) for name, query in made.queries.items()}
    made = made.model_copy(update={"sites": sites, "queries": queries})
    with Store(state_file(made)) as store, moves_of(made) as moves:
        yield Stuck(tmp_path, moves, store, made)


def back(stuck: Stuck) -> None:
    stuck.down.clear()


def test_another_query_is_added_and_the_job_is_left_to_its_move(stuck: Stuck) -> None:
    def answers_and_adds() -> None:
        back(stuck)
        stuck.add("new")

    stuck.plot += [
        (stuck.after(1), answers_and_adds),
        (stuck.at("east", "new"), lambda: None),
        (lambda: not stuck.moves.open_moves() and stuck.settled(), stuck.stop),
    ]
    stuck.run(serve=True)
    assert stuck.counting.twice == []
    assert stuck.moves.homes() == {"a": "west"} and stuck.endpoint("a") == "sc://west:1"


def test_as_long_as_nobody_can_say_what_runs_nothing_is_started(stuck: Stuck) -> None:
    def deaf_and_adds() -> None:
        stuck.deaf, stuck.down = {"west"}, {"west"}
        stuck.add("new")

    stuck.plot += [
        (stuck.after(1), deaf_and_adds),
        (stuck.at("east", "new"), stuck.stop),
    ]
    stuck.run(serve=True)
    assert stuck.counting.twice == [] and stuck.counting.copies["a"] == {"west"}
    assert [move.job for move, _ in stuck.moves.open_moves()] == ["a"]


def test_what_is_dropped_is_removed_once_its_move_has_ended(stuck: Stuck) -> None:
    def waits() -> bool:
        return any(note.startswith("drop a: waits for the end of the move of a") for note in stuck.notes)

    stuck.plot += [
        (stuck.after(1), lambda: stuck.store.ask_drop({"a": True}, "now")),
        (waits, lambda: None),
        (stuck.after(30), lambda: back(stuck)),
        (lambda: not stuck.moves.open_moves() and stuck.settled(), stuck.stop),
    ]
    stuck.run(serve=True)
    assert stuck.counting.twice == [] and not stuck.counting.copies["a"]
    assert not job_folder(stuck.project, "a").exists() and "a" not in stuck.moves.homes()
    assert sum("waits for the end" in note for note in stuck.notes) == 1
