"""One split takes over from another while a run goes on: every window is given by exactly one of them,
whenever the process is killed."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.catalog.model import Project
from headrace.cost.federation import FederationCosts
from headrace.errors import EngineError
from headrace.plan.federated import Engine
from headrace.service import federating_load, keeper
from headrace.service.layout import job_folder, results_folder, state_file
from headrace.service.rechoosing import Rules
from headrace.service.run import Hooks, Options, Outcome, Runner, Snapshot
from headrace.state.file import StateFile
from headrace.state.store import Store
from tests.unit.service.disk_engine import Death, Killed
from tests.unit.service.federated_sample import PRICES, TOP, SplitEngine, calibrated, write
from tests.unit.service.sample import Clock

RULES = Rules(every=0.5, looks=2, span=2.0, stale=60.0)
# Rows are dear to move here, and so is each micro-batch of Spark's: few rows are best in DuckDB.
COSTS = replace(PRICES, spark_batch=0.1, spark_state=1e-7, spark_copy=1e-8, transfer_in=2e-6)
# A statement is dear, and a row in each of its windows on Spark: many rows are best in DuckDB.
FROM_SPARK = replace(PRICES, spark_batch=1e-4, spark_state=1e-7, spark_copy=1e-5, statement=0.2)
_TRANSACTION, _CLEAR = StateFile._transaction, keeper.Keeper._clear


MANY = 20_000.0


def jump(second: int) -> float:
    return 100.0 if second < 20 else MANY


def fall(second: int) -> float:
    return MANY if second < 20 else 100.0


class Ground:
    def __init__(
        self,
        root: Path,
        monkeypatch: pytest.MonkeyPatch,
        pace: int = 1,
        also: tuple[str, ...] = (),
        costs: FederationCosts = COSTS,
        rate: Callable[[int], float] = jump,
    ) -> None:
        """`also` are queries beside the one, in the same job. The project file has the rate of the start."""
        self.death, self.pace = Death(), pace
        self.rate = rate
        self.share: Callable[[int], float] = lambda _: 0.5
        self.root, self.monkeypatch = root, monkeypatch
        queries = dict.fromkeys(("top", *also), f"{TOP}#engine: auto")
        project = write(root, **queries)
        stream = project.streams["readings"].model_copy(update={"rate": rate(0)})
        self.project: Project = project.model_copy(update={"streams": {"readings": stream}})
        calibrated(self.project, costs)
        self.engine: SplitEngine | None = None
        self.notes: list[str] = []

        def transaction(store: Store, work: object, **how: object) -> object:
            self.death.step("transaction")
            return _TRANSACTION(store, work, **how)  # type: ignore[arg-type]

        def clear(kept: keeper.Keeper, one: object) -> None:
            self.death.step("remove")
            _CLEAR(kept, one)  # type: ignore[arg-type]

        monkeypatch.setattr(StateFile, "_transaction", transaction)
        monkeypatch.setattr(keeper.Keeper, "_clear", clear)

    def run(self, rounds: int = 50, options: Options | None = None, end: int = 10**9) -> Outcome:
        clock, count = Clock(), 0
        with Store(state_file(self.project)) as store:

            def watch(snapshot: Snapshot) -> None:
                nonlocal count
                count += 1
                if count >= rounds:
                    runner.request_stop()

            hooks = Hooks(watch, self.notes.append, rules=RULES)
            runner = Runner(self.project, store, clock, clock.sleep, options or Options(), hooks)
            runner.prepare()
            self.engine = SplitEngine(self.death, self.rate, end, self.pace, self.share)
            return runner.run(self.engine)

    def killed(self, step: int, **how: object) -> bool:
        self.death.at, self.death.steps, self.death.dead = step, [], False
        with suppress(Killed):
            self.run(**how)  # type: ignore[arg-type]
        died = self.death.dead
        self.death.at, self.death.dead = None, False
        return died

    def given(self, query: str = "top") -> dict[str, list[int]]:
        """The ends of the windows that each job has given."""
        folder = results_folder(self.project, self.project.queries[query])
        found: dict[str, list[int]] = {}
        for path in sorted(folder.glob("part-*")):
            job, _, second = path.stem.removeprefix("part-").rpartition("-")
            found.setdefault(job, []).append(int(second))
        return found

    def jobs(self) -> list[str]:
        with Store(state_file(self.project)) as store:
            return [record.id for record in store.deployment().federated]


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    yield Ground(tmp_path, monkeypatch)


def check(ground: Ground, *, apart: bool = False) -> int:
    """Every window once, from the first one on; the last of them. Queries with a job each (`apart`) need not
    be at the same one."""
    lasts = []
    for query in ground.project.queries:
        ends = sorted(end for ends in ground.given(query).values() for end in ends)
        assert ends == list(range(1, len(ends) + 1)), query
        lasts.append(len(ends))
    assert apart or len(set(lasts)) == 1
    return min(lasts)


def test_a_jump_of_the_rate_moves_the_query_to_the_split_that_is_best_now(ground: Ground) -> None:
    ground.run(rounds=90)
    assert ground.engine is not None
    old, new = ground.engine.started
    assert old.members[0].engines == (Engine.SPARK, Engine.DUCKDB, Engine.DUCKDB)
    assert new.members[0].engines == (Engine.SPARK, Engine.SPARK, Engine.DUCKDB), "many rows stay on Spark"
    given = ground.given()
    at = (new.members[0].after or 0) // 1_000_000
    assert max(given[old.id]) == at and min(given[new.id]) == at + 1
    assert check(ground) >= 45
    assert ground.jobs() == [new.id], "the old job is forgotten once it has given its last window"
    assert not job_folder(ground.project, old.id).exists()
    assert any("another split is better" in note for note in ground.notes)


def test_a_query_that_begins_on_spark_alone_is_split_when_rows_come_and_goes_back_when_they_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = Ground(tmp_path, monkeypatch, costs=FROM_SPARK)
    ground.rate = lambda second: 20_000.0 if 20 <= second < 80 else 100.0
    ground.run(rounds=330)
    assert ground.engine is not None
    alone = (Engine.SPARK,) * 3
    first, second, third = (job.members[0] for job in ground.engine.started)
    assert first.engines == third.engines == alone and Engine.DUCKDB in second.engines
    given = ground.given()
    for old, new in itertools.pairwise(ground.engine.started):
        at = (new.members[0].after or 0) // 1_000_000
        assert max(given[old.id]) == at and min(given[new.id]) == at + 1
    assert check(ground) >= 120
    assert ground.jobs() == [ground.engine.started[-1].id]


def test_a_split_that_does_not_fit_the_memory_any_more_is_left_though_it_is_cheapest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong rate at the start must not leave a query where its job will fail."""
    monkeypatch.setattr(federating_load, "ROOM", 1e6)
    ground = Ground(tmp_path, monkeypatch, costs=PRICES)
    ground.run(rounds=90)
    assert ground.engine is not None
    old, new = (job.members[0] for job in ground.engine.started)
    assert old.engines[1] is Engine.DUCKDB and new.engines[1] is Engine.SPARK
    assert any("does not fit the memory" in note for note in ground.notes)
    check(ground)


def test_queries_that_leave_a_job_for_spark_alone_get_a_job_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other: what a member leaves behind is done for as long as its job goes on."""
    ground = Ground(tmp_path, monkeypatch, also=("other",), costs=FROM_SPARK, rate=fall)
    ground.run(rounds=120)
    assert ground.engine is not None
    old, *new = ground.engine.started
    assert [member.query for member in old.members] == ["top", "other"] and not old.on_spark
    assert [[m.query for m in job.members] for job in new] == [["top"], ["other"]]
    assert all(job.on_spark for job in new)
    check(ground, apart=True)
    assert sorted(ground.jobs()) == sorted(job.id for job in new)


def test_a_second_handover_of_a_job_waits_for_the_first_to_be_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site that does not answer keeps the first one waiting. Written down now, the second would take the
    bound of the first back."""
    ground = Ground(tmp_path, monkeypatch, also=("other",), costs=FROM_SPARK, rate=fall)
    bound, silent = SplitEngine.set_until, 12

    def later(self: SplitEngine, job_id: str, queries: Collection[str], end: int) -> None:
        nonlocal silent
        silent -= 1
        if silent >= 0:
            with Store(state_file(ground.project)) as store:
                assert len(store.deployment().federated) == 2
            raise EngineError("nobody answers")
        bound(self, job_id, queries, end)

    monkeypatch.setattr(SplitEngine, "set_until", later)
    ground.run(rounds=140)
    assert silent < 0 and len(ground.jobs()) == 2
    check(ground, apart=True)


def test_a_steady_rate_changes_nothing(ground: Ground) -> None:
    ground.run(rounds=18)
    assert len(ground.jobs()) == 1 and ground.notes == []


def test_a_window_that_grows_moves_the_query_at_the_same_rate(ground: Ground) -> None:
    """By the estimate, half of the rows pass the filter; few do, and then nearly all."""
    ground.rate, ground.share = lambda _: 5000.0, lambda second: 0.01 if second < 30 else 0.9
    ground.run(rounds=28)
    assert ground.notes == [], "what is seen keeps the split that the estimate would leave"
    ground.run(rounds=70)
    assert ground.engine is not None and len(ground.engine.started) == 2
    assert ground.engine.started[-1].members[0].engines == (Engine.SPARK, Engine.SPARK, Engine.DUCKDB)
    check(ground)
    # The new split does not count what passes the filter. What was seen before is not forgotten, nor by the
    # next run: by the estimate both would be left.
    ground.rate = lambda _: 1200.0
    ground.notes.clear()
    ground.run(rounds=40)
    assert len(ground.jobs()) == 1 and ground.notes == []
    check(ground)


def test_a_drain_does_not_choose_again_but_ends_what_was_begun(ground: Ground) -> None:
    ground.run(rounds=28)
    assert len(ground.jobs()) == 2, "in the midst of a handover"
    outcome = ground.run(rounds=500, options=Options(drain=True), end=60)
    assert outcome.exit_code == 0 and check(ground) == 60
    assert len(ground.jobs()) == 1


@pytest.mark.parametrize("also", [(), ("other", "third")])
def test_a_bound_that_comes_too_late_is_moved_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, also: tuple[str, ...]
) -> None:
    """Batches of more than the longest range: what the old job gives overtakes the bound, as often as not.
    It goes on at once when it was told."""
    ground = Ground(tmp_path, monkeypatch, 4, also)
    bound = SplitEngine.set_until
    late: list[int] = []

    def sometimes(self: SplitEngine, job_id: str, queries: Collection[str], end: int) -> None:
        if len(late) < 2:
            late.append(end)
            for _ in range(4):
                self.progress(job_id)
        bound(self, job_id, queries, end)
        for _ in range(4):
            self.progress(job_id)

    monkeypatch.setattr(SplitEngine, "set_until", sometimes)
    ground.run(rounds=60)
    assert len(late) == 2 and len(ground.jobs()) == 1
    check(ground)
    assert len(ground.given()) == 2


@pytest.mark.parametrize(
    ("pace", "also", "costs", "rate", "jobs"),
    [
        (1, (), COSTS, jump, 1),
        (3, (), COSTS, jump, 1),
        (1, ("other",), COSTS, jump, 1),
        (3, ("other",), COSTS, jump, 1),
        (1, (), FROM_SPARK, jump, 1),
        (3, (), FROM_SPARK, jump, 1),
        (1, ("other",), FROM_SPARK, jump, 2),
        (1, (), FROM_SPARK, fall, 1),
        (1, ("other",), FROM_SPARK, fall, 2),
    ],
)
def test_killed_at_every_step(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pace: int,
    also: tuple[str, ...],
    costs: FederationCosts,
    rate: Callable[[int], float],
    jobs: int,
) -> None:
    """The steps around the handover: the run before it is the same each time."""
    probe = Ground(tmp_path / "probe", monkeypatch, pace, also, costs, rate)
    probe.killed(10**9, rounds=45)
    steps = probe.death.steps
    first = next(i for i, name in enumerate(steps) if name.startswith("bound")) - 3
    last = max(i for i, name in enumerate(steps) if name == "remove") + 4
    for step in range(first, last):
        ground = Ground(tmp_path / f"{step}", monkeypatch, pace, also, costs, rate)
        assert ground.killed(step, rounds=45)
        check(ground, apart=jobs > 1)
        ground.run(rounds=40)
        assert check(ground, apart=jobs > 1) >= 30 and len(ground.jobs()) == jobs, steps[step]


def test_dropped_in_the_midst_of_a_handover(ground: Ground) -> None:
    ground.run(rounds=28)
    assert len(ground.jobs()) == 2
    with Store(state_file(ground.project)) as store:
        store.ask_drop({"top": True}, "now")
    ground.project = ground.project.model_copy(update={"queries": {}})
    with suppress(StopIteration):
        ground.run(rounds=5)
    assert ground.jobs() == []


def test_killed_before_the_bound_while_the_old_job_went_on(ground: Ground) -> None:
    """What is written down is out of date: the old job has given windows beyond the instant, since a batch
    that was under way outlived the process. The next run chooses a later instant."""
    ground.killed(10**9, rounds=45)
    first = next(i for i, name in enumerate(ground.death.steps) if name.startswith("bound"))
    again = Ground(ground.root / "again", ground.monkeypatch)
    assert again.killed(first, rounds=45)
    old, new = again.jobs()
    folder = job_folder(again.project, old)
    known = json.loads((folder / "engine.json").read_text())
    results = results_folder(again.project, again.project.queries["top"])
    for second in range(known["position"] + 1, known["position"] + 41):
        (results / f"part-{old}-{second:06d}.json").write_text("{}\n")
    (folder / "engine.json").write_text(json.dumps({**known, "position": known["position"] + 40}))
    again.run(rounds=150)
    assert check(again) > known["position"] + 41
    assert new not in again.jobs() and len(again.given()) == 2
