"""Plans that are run on sites of this machine: patterns, a join that is moved, a bad placement that is put
right."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.errors import HeadraceError
from headrace.experiments.distribution.cases import (
    JOINS,
    MOST_RATE,
    MOST_WAITED,
    MOVED_SITES,
    OFF,
    OVERLOAD,
    PATTERNS,
    REAL_SEED,
    REAL_SITES,
    STREAM_RATE,
    Setting,
    plan_named,
)
from headrace.experiments.distribution.prices import DEFAULT, Prices, counts, priced, split
from headrace.experiments.distribution.results import Curve, MovedJoin, Ran, Recovered
from headrace.planners.distribution.problem import Problem, Table
from headrace.planners.distribution.rules import History
from headrace.planners.distribution.solve import distribute
from headrace.planners.distribution.usage import usage
from headrace.service.distribution_bench import Ground, Moment, Running, Seen
from headrace.service.distribution_jobs import (
    Pace,
    as_operators,
    job_id,
    pieces_by_join,
    pieces_by_site,
)
from headrace.service.distribution_moves import Moved, Mover, back_and_forth, wanted_moves

SETTLE, MOST_SETTLE = 6.0, 30.0
"""Seconds that are not counted, after all jobs have caught up, and in all."""
LOOK = (15.0, 30.0, 60.0)
"""Seconds that a policy looks at the sites before it is asked: again, and longer, where jobs of a full site
have ended no batch in that time, since nothing is known of them then."""
MOVED_WINDOW, RECOVERED_WINDOW = 20.0, 4.0
"""Seconds. At the high rate of the second, ten seconds of rows would not fit the memory of a server."""
GOOD, BAD = "good", "bad"
POLICY = "pays"
ROUNDS = 4
"""In which the policy is asked, at most: what a job of a full site takes is only seen roughly, and a service
asks again, too."""
TRIES = 6
"""Rates, at most, until the good placement keeps up and has room."""
_MOST_TOLD = 300


@dataclass(frozen=True, slots=True)
class Case:
    plan: str
    sites: int
    patterns: tuple[str, ...]
    table: Table


def cases(setting: Setting) -> list[Case]:
    """Tables that differ only in the names of sites are run once."""
    plans = [str(size) for size in setting.real]
    if 5 in setting.real:
        plans.insert(1, JOINS)
    return [
        case
        for plan in plans
        for sites in REAL_SITES[plan]
        if sites <= setting.sites
        for case in _cases(plan, sites)
    ]


def _cases(plan: str, sites: int) -> Iterator[Case]:
    problem = plan_named(plan, sites, REAL_SEED)
    known = priced(problem, DEFAULT, STREAM_RATE)
    found: dict[frozenset[frozenset[str]], tuple[list[str], Table]] = {}
    for pattern in PATTERNS:
        table = distribute(known, pattern).table
        alike = frozenset(
            frozenset(name for name in table if table[name] == site.id) for site in problem.sites
        )
        found.setdefault(alike, ([], table))[0].append(pattern)
    for patterns, table in found.values():
        yield Case(plan, sites, tuple(patterns), table)


def run_case(ground: Ground, case: Case, seconds: float) -> Ran:
    """At the paper's rate."""
    problem = plan_named(case.plan, case.sites, REAL_SEED)
    pieces, pace = pieces_by_site(problem, case.table), Pace(STREAM_RATE)
    used = usage(problem, case.table).connections.total
    count = len(set(pieces.values()))
    try:
        seen = _measured(ground, problem, pieces, case.table, pace, seconds)
    except Exception as error:
        zeros, told = tuple(0.0 for _ in problem.sites), _told(error)
        where = (case.plan, case.sites, case.patterns, count, used)
        return Ran(*where, 0.0, 0, 0, 0.0, zeros, 0.0, (), 0, 0.0, (), told)
    return Ran(
        case.plan,
        case.sites,
        case.patterns,
        count,
        used,
        round(seen.seconds, 2),
        seen.rows_in,
        seen.rows_out,
        round(wanted_rows(problem, pace.rate) * seen.seconds),
        tuple(round(cpu, 2) for cpu in seen.cpu.values()),
        round(seen.moments[-1].own_cpu - seen.moments[0].own_cpu, 2),
        tuple(counts(problem, case.table).values()),
        seen.state_rows,
        seen.batch_seconds,
        curve(seen.moments),
    )


def _measured(
    ground: Ground, problem: Problem, pieces: Mapping[str, str], at: Table, pace: Pace, seconds: float
) -> Seen:
    running = ground.begin(problem, pieces, at, pace)
    try:
        running.settle(SETTLE, MOST_SETTLE)
        return running.watch(seconds)
    finally:
        running.stop()


def _told(error: Exception) -> str:
    """Whatever ends one run, the others are worth their time: an engine throws what it likes."""
    text = error.render() if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"
    return text[:_MOST_TOLD]


def wanted_rows(problem: Problem, rate: float) -> float:
    """Result rows a second that a plan gives at a rate of each stream."""
    given = sum(problem.operator[name].rate for query in problem.queries for name in query.outputs)
    return given * rate / STREAM_RATE


def curve(moments: Sequence[Moment]) -> Curve:
    """Rows that have come out, by seconds since the first look."""
    first = moments[0]
    return tuple((round(one.at - first.at, 2), float(one.rows_out - first.rows_out)) for one in moments)


def warm_up(ground: Ground, setting: Setting) -> None:
    """Whoever runs first would pay for the compilation of what all run; every site takes part."""
    problem = plan_named(JOINS, setting.sites, REAL_SEED)
    table = distribute(problem, "round-robin").table
    _measured(ground, problem, pieces_by_site(problem, table), table, Pace(STREAM_RATE), SETTLE)


# -- a join that is moved ---------------------------------------------------------------------------


def moved_join(ground: Ground, setting: Setting, moves: int) -> MovedJoin:
    """Figure 36: Query Plan 2 with a window of 20 s at two sites; a join goes back and forth between them, or
    stays. The one that moves takes longer by its moves."""
    problem = plan_named("20", MOVED_SITES, REAL_SEED)
    pieces, pace = pieces_by_join(problem), Pace(STREAM_RATE, window=MOVED_WINDOW)
    jobs = as_operators(priced(problem, DEFAULT, STREAM_RATE), pieces)
    at = distribute(jobs).table
    job = job_id(_moved(jobs))
    sites = [site.id for site in problem.sites]
    running = ground.begin(problem, pieces, at, pace)
    try:
        running.settle(SETTLE, MOST_SETTLE)
        if moves:
            told, seen = back_and_forth(running, job, sites, setting.every, moves)
        else:
            told, seen = [], running.watch(setting.every * (setting.moves + 1))
        right, missing, extra = running.drained()
    except Exception as error:
        return MovedJoin(moves, 0, (), 0.0, 0, 0, 0, 0, 0, 0.0, (), (), _told(error))
    finally:
        running.stop()
    return MovedJoin(
        moves,
        sum(one.moved for one in told),
        tuple(round(one.pause, 2) for one in told if one.moved and one.pause is not None),
        round(seen.seconds, 2),
        seen.rows_in,
        seen.rows_out,
        right,
        missing,
        extra,
        round(sum(seen.cpu.values()), 2),
        curve(seen.moments),
        tuple(round(one.at, 2) for one in told),
        "; ".join(one.reason for one in told if one.reason)[:_MOST_TOLD],
    )


def _moved(jobs: Problem) -> str:
    """The job with most state that is not the last one."""
    last = {name for query in jobs.queries for name in query.outputs}
    return max((one for one in jobs.operators if one.id not in last), key=lambda one: one.state_bytes).id


# -- a bad placement that is put right --------------------------------------------------------------


def overload_rate(problem: Problem, prices: Prices) -> float:
    """At which all operators at one site take OVERLOAD cores, by the prices."""
    one = dict.fromkeys(problem.operator, problem.sites[0].id)
    fixed, growing = split(prices, counts(problem, one)[problem.sites[0].id])
    return min(MOST_RATE, max(STREAM_RATE, STREAM_RATE * (OVERLOAD - fixed) / max(growing, 1e-9)))


def recovered(ground: Ground, setting: Setting, prices: Prices) -> Iterator[Recovered]:
    """Figure 37 on two sites: a good placement, a bad one, and the bad one with a policy; at a rate at which
    the good one keeps up, or there is nothing that could be recovered."""
    problem, prices = plan_named("20", MOVED_SITES, REAL_SEED), prices.stretched()

    def run(rate: float, start: str, policy: str) -> Recovered:
        pace, pieces = Pace(rate, window=RECOVERED_WINDOW), pieces_by_join(problem)
        jobs = as_operators(priced(problem, prices, pace.rate), pieces)
        one = dict.fromkeys(jobs.operator, problem.sites[0].id)
        at = distribute(jobs).table if start == GOOD else one
        return _recovered(ground, setting, jobs, _Start(problem, pieces, at, pace, start), policy)

    with ground.pinned():
        good = kept_up(lambda rate: run(rate, GOOD, OFF), round(overload_rate(problem, prices)))
        yield good
        for policy in (OFF, POLICY):
            yield run(good.rate, BAD, policy)


def kept_up(run: Callable[[float], Recovered], rate: float) -> Recovered:
    """The first run at a rate with which it keeps up and has room, or the last one. Prices are fitted to runs
    at the paper's rate: where that is little for a machine, they say nothing exact of one that is much. So
    rates are tried from that of the prices downwards."""
    tried: list[float] = []
    while True:
        found = run(rate)
        tried.append(rate)
        slower = max(STREAM_RATE, round(rate * min(0.8, 0.9 * found.part)))
        if not found.seconds or _is_enough(found) or slower >= rate or len(tried) == TRIES:
            return replace(found, tried=tuple(tried[:-1]))
        rate = slower


def _is_enough(found: Recovered) -> bool:
    return found.keeps_up and found.has_room


@dataclass(frozen=True, slots=True)
class _Start:
    problem: Problem
    pieces: Mapping[str, str]
    at: Table
    pace: Pace
    name: str


def _recovered(ground: Ground, setting: Setting, jobs: Problem, start: _Start, policy: str) -> Recovered:
    rate = start.pace.rate
    try:
        running = ground.begin(start.problem, start.pieces, start.at, start.pace)
    except Exception as error:
        told = _told(error)
        return Recovered(start.name, policy, rate, 0.0, 0, 0, 0.0, 0, (), (), 0.0, (), told)
    try:
        return _watched(running, setting, jobs, start, policy)
    except Exception as error:
        told = _told(error)
        return Recovered(start.name, policy, rate, 0.0, 0, 0, 0.0, 0, (), (), 0.0, (), told)
    finally:
        running.stop()


def _watched(running: Running, setting: Setting, jobs: Problem, start: _Start, policy: str) -> Recovered:
    running.settle(SETTLE, MOST_SETTLE)
    looks, told, rounds = [_look(running)], list[Moved](), 0
    asked = looks[0].moments[-1].at - looks[0].moments[0].at
    if policy != OFF:
        mover, history = Mover(running), History()
        while rounds < ROUNDS:
            targets, history = wanted_moves(jobs, running, looks[-1], policy, history)
            if not targets:
                break
            told += mover.move_all(targets)
            looks += [running.watch(SETTLE), _look(running)]
            rounds += 1
    began = time.monotonic()
    while told and not running.in_time() and time.monotonic() - began < MOST_WAITED:
        looks.append(running.watch(SETTLE))
    waited = time.monotonic() - began
    looks.append(running.watch(SETTLE))
    last = running.watch(setting.recovered_seconds)
    every = tuple(moment for seen in (*looks, last) for moment in seen.moments)
    return Recovered(
        start.name,
        policy,
        start.pace.rate,
        round(last.seconds, 2),
        last.rows_in,
        last.rows_out,
        round(wanted_rows(start.problem, start.pace.rate) * last.seconds),
        sum(one.moved for one in told),
        tuple(round(cpu, 2) for cpu in last.cpu.values()),
        curve(every),
        round(asked, 2),
        tuple(round(one.pause, 2) for one in told if one.pause is not None),
        "; ".join(one.reason for one in told if one.reason)[:_MOST_TOLD],
        rounds=rounds,
        waited=round(waited, 1),
    )


def _look(running: Running) -> Seen:
    """All that was seen in the last of so many seconds, or of more, until every job has ended a batch."""
    for seconds in LOOK:
        seen = running.watch(seconds)
        if all(seen.batches.values()):
            break
    return seen
