"""Jobs of a running plan moved to other sites: one back and forth, or those that a policy names."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from headrace.errors import HeadraceError
from headrace.planners.distribution.costs import MODELS
from headrace.planners.distribution.observed import (
    Observations,
    OperatorSeen,
    SiteSeen,
    with_observations,
)
from headrace.planners.distribution.problem import Problem
from headrace.planners.distribution.redistribute import redistribute
from headrace.planners.distribution.rules import History, Rules
from headrace.runtime.relocate import Move, Outcome, Patience, Relocator
from headrace.runtime.sites import ExecutorSites, Ways
from headrace.runtime.spark.health import Checker
from headrace.runtime.spark.remote import Ledger
from headrace.runtime.spark.servers import servers
from headrace.runtime.spark.sites import FenceTimes, SparkFence
from headrace.service.distribution_bench import Running, Seen, fresh
from headrace.service.distribution_jobs import job_id
from headrace.service.layout import own_folder, state_file
from headrace.state.moves import Moves

_PATIENCE = 60.0
"""Seconds in which a site must answer: one is overloaded here on purpose, and must not be taken for dead."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One move. `pause`: seconds from the last batch before it to the first after it; None: it was not
    carried out, or nothing came in."""

    job: str
    source: str
    target: str
    at: float
    """Seconds after the first look."""
    pause: float | None
    took: float
    moved: bool
    reason: str = ""


class Mover:
    """Moves jobs of a running plan, with a journal and a rehearsal, as `headrace move` does. All sites see
    the same folders, so that nothing is copied and no channel is led elsewhere."""

    def __init__(self, running: Running) -> None:
        self._running, self._began = running, time.monotonic()
        ground = running.ground
        fence = SparkFence(
            ground.executor,
            Ledger(own_folder(running.project), fresh),
            ground.endpoints,
            lambda: servers(ground.sites_folder),
            Checker(time.monotonic, fresh),
            FenceTimes(patience=_PATIENCE),
        )
        ways = Ways(fence.answers, fence.clear, ground.executor.rehearse)
        sites = ExecutorSites(ground.executor, running.units(), ways, running.at)
        self._journal = Moves(state_file(running.project), lambda: datetime.now(UTC).isoformat())
        self._relocator = Relocator(
            sites, self._journal, time.monotonic, time.sleep, patience=Patience(120.0, 30.0)
        )

    def move_all(self, targets: Mapping[str, str]) -> list[Moved]:
        """Several at once."""
        moves = []
        for job, target in targets.items():
            source = self._running.at[job]
            moves.append(Move(self._journal.ask(job, source, target), job, source, target))
        began = time.monotonic()
        outcomes = self._relocator.move_all(moves)
        took = time.monotonic() - began
        for outcome in outcomes:
            if isinstance(outcome, Outcome):
                self._running.at[outcome.move.job] = outcome.site
        return [_told(m, o, began - self._began, took) for m, o in zip(moves, outcomes, strict=True)]


def _told(move: Move, outcome: Outcome | HeadraceError, at: float, took: float) -> Moved:
    if isinstance(outcome, HeadraceError):
        return Moved(move.job, move.source, move.target, at, None, took, False, outcome.render())
    return Moved(move.job, move.source, move.target, at, outcome.pause, took, outcome.moved, outcome.reason)


def back_and_forth(
    running: Running, job: str, sites: Sequence[str], every: float, count: int
) -> tuple[list[Moved], Seen]:
    """Move one job between two sites, so many times, and go on watching."""
    mover, found, seen = Mover(running), list[Moved](), list[Seen]()
    for _ in range(count):
        seen.append(running.watch(every))
        target = next(site for site in sites if site != running.at[job])
        found += mover.move_all({job: target})
    seen.append(running.watch(every))
    moments = tuple(moment for one in seen for moment in one.moments)
    return found, Seen(moments, seen[-1].progress, seen[-1].batches)


def wanted_moves(
    jobs: Problem, running: Running, seen: Seen, policy: str, history: History
) -> tuple[dict[str, str], History]:
    """Job -> site: what a policy wants after a look at the sites, and what it remembers. `jobs` has the jobs
    as its operators, with the rates that they should have."""
    told = Observations(_jobs_seen(jobs, running, seen), _sites_seen(seen))
    table = {one.id: running.at[job_id(one.id)] for one in jobs.operators}
    found = with_observations(replace(jobs, table=table), told)
    decision = redistribute(found, policy, MODELS["cpu"], Rules(), history, time.monotonic())
    moves = {job_id(name): move.target for move in decision.moves for name in move.operators}
    return moves, decision.history


def _sites_seen(seen: Seen) -> dict[str, SiteSeen]:
    return {site: SiteSeen(cpu=cpu / seen.seconds) for site, cpu in seen.cpu.items()}


def _jobs_seen(jobs: Problem, running: Running, seen: Seen) -> dict[str, OperatorSeen]:
    """A site's CPU is shared out by the time that its jobs spent in batches: jobs of one process cannot be
    told apart, and on a full site their batches wait for each other."""
    busy = {name: seen.batches[name] * (one.batch_millis or 0) / 1000 for name, one in seen.progress.items()}
    by_site: dict[str, float] = {}
    for name, seconds in busy.items():
        by_site[running.at[name]] = by_site.get(running.at[name], 0.0) + seconds
    behind = _behind(running, seen)
    found = {}
    for one in jobs.operators:
        name = job_id(one.id)
        site = running.at[name]
        share = busy[name] / by_site[site] if by_site[site] else 0.0
        rows = jobs.rows_in[one.id]
        # Of a job that has ended no batch nothing is known, and what was assumed stays.
        cpu = share * seen.cpu[site] / seen.seconds if seen.batches[name] else None
        found[one.id] = OperatorSeen(rows_in=rows / behind, arriving=rows, cpu=cpu)
    return found


def _behind(running: Running, seen: Seen) -> float:
    """How many times faster the results would have to come; 1 where none has come, as nothing tells."""
    if not seen.rows_out:
        return 1.0
    wanted = sum(running.problem.operator[name].rate for q in running.problem.queries for name in q.outputs)
    scale = running.pace.rate / running.problem.streams[0].rate
    return max(1.0, scale * wanted * seen.seconds / seen.rows_out)
