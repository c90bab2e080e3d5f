"""Whose turn it is in a drain of spread queries, when a maker has failed and is started again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.plan.channels import ChannelJob, ChannelPlan
from headrace.planners.distribution.plans import Unit, joins_in_a_row
from headrace.runtime.executor import JobState, Progress
from headrace.runtime.fake import FakeExecutor
from headrace.service.distribution_jobs import Pace, channel_plan, pieces_by_site
from headrace.service.feeding import Feeding
from headrace.service.fleet import Fleet, Start
from headrace.service.restarting import RUN, Restarting
from headrace.service.spread_records import Spread
from headrace.state.store import Store
from tests.unit.service.sample import Clock, project

PASSING = "Futures timed out after [10 seconds]"
_MOST_ROUNDS = 200


def _chain(joins: int, ends: int) -> ChannelPlan:
    """A join at each site, each over the one before; several jobs read the last one."""
    problem = joins_in_a_row(joins, joins, Unit())
    table = {name: f"s{number}" for number, name in enumerate(problem.order, start=1)}
    plan = channel_plan(problem, pieces_by_site(problem, table), table, Pace(40.0))
    last = plan.jobs[-1]
    more = (replace(last, id=f"{last.id}-{n}", query=f"{last.query}-{n}") for n in range(1, ends))
    return replace(plan, jobs=(*plan.jobs, *more))


class _Drain:
    """Turns as in a run; a job comes to its end once the makers of what it reads have."""

    def __init__(self, plan: ChannelPlan, root: Path, store: Store) -> None:
        self.plan, self.seconds, self.at_once = plan, 0.0, 0
        self.ended: list[str] = []
        self.fleet = Fleet(FakeExecutor(), store, Clock(), Start(drain=True))
        self.fleet.spread = Spread(plan)
        self.feeding = Feeding(self.fleet, lambda: project(root), lambda: self.seconds, drain=True)
        self.restarting = Restarting(self.fleet, self.fleet.again, lambda: self.seconds, print, rule=RUN)
        for job in plan.jobs:
            self.fleet.enlist(job)

    def start_some(self, limit: int) -> None:
        while (unit := self.feeding.next_turn(limit)) is not None:
            self.fleet.waiting.remove(unit)
            self.fleet.states[unit] = Progress(unit, JobState.RUNNING)
            self.at_once = max(self.at_once, len(self.fleet.alive()))

    def work(self) -> None:
        for name in self.fleet.alive():
            if all(self.plan.maker(stream).id in self.ended for stream in self.plan.job(name).reads):
                self.fleet.states[name] = Progress(name, JobState.FINISHED)
                self.ended.append(name)

    def run(self, limit: int, fails: ChannelJob) -> None:
        """Until all have ended. One maker fails at first, when as many run as may."""
        for number in range(_MOST_ROUNDS):
            self.seconds += 0.5
            self.start_some(limit)
            if number == 0:
                assert self.fleet.alive()[0] == self.plan.jobs[0].id
                self.fleet.states[fails.id] = Progress(fails.id, JobState.FAILED, error=PASSING)
            else:
                self.work()
            self.restarting.look()
            if not (self.fleet.unfinished() or self.restarting.busy):
                return


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_maker_that_fails_is_not_kept_out_by_those_that_wait_for_it(
    tmp_path: Path, limit: int, which: int
) -> None:
    plan = _chain(4, 2)
    fails = plan.jobs[min(which, limit - 1)]
    with Store(tmp_path / "state.db") as store:
        drain = _Drain(plan, tmp_path, store)
        drain.run(limit, fails)
        assert sorted(drain.ended) == sorted(job.id for job in plan.jobs), "none waits for ever"
        assert drain.at_once <= limit + 1
        assert drain.ended.index(fails.id) < drain.ended.index(plan.jobs[-1].id)


def test_nobody_else_is_started_beyond_the_limit(tmp_path: Path) -> None:
    with Store(tmp_path / "state.db") as store:
        drain = _Drain(_chain(4, 2), tmp_path, store)
        drain.start_some(2)
        assert len(drain.fleet.alive()) == 2
        assert drain.feeding.next_turn(2) is None
        assert drain.feeding.next_turn(3) == drain.plan.jobs[2].id
