"""What a decision goes by besides the loads: whether it is time for one, what moves cost, who can be given
something."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from statistics import median

from headrace.catalog.model import Project, Site
from headrace.planners.distribution.rules import Rules
from headrace.runtime.executor import JobState
from headrace.runtime.relocate import PRICE, Entry, Step
from headrace.service.gathered import Gathered
from headrace.service.probing import REMOTE
from headrace.service.rebalancing_problem import sites_of
from headrace.state.moves import MoveRecord, Moves

SETTLE = 20.0
"""Seconds after a move in which the figures are still those of before."""
_AVOID, _AVOID_MOST = 300.0, 3600.0
"""Seconds in which a site is given nothing after a move to it has failed; twice as long for each time that it
fails again, up to so many."""


def priced(moves: Moves, records: Sequence[MoveRecord]) -> tuple[MoveRecord, ...]:
    """With what each move has cost in the place of its pause: that of a job that was lost has the whole
    outage in it, and that of a quiet one the time without input, and no move to come will cost that."""
    known = {one.id: _price(moves.entries(one.id)) for one in records if one.pause is not None}
    return tuple(replace(one, pause=known.get(one.id)) for one in records)


def _price(entries: Iterable[Entry]) -> float | None:
    """Seconds for which a job stood still because it was moved; None: it was not for that alone, since it was
    lost, or the move was interrupted, or it is not known."""
    made = list(entries)
    if all(entry.step is not Step.PREPARE for entry in made):
        # It stood still before anybody thought of moving it.
        return None
    found = [int(entry.facts[PRICE]) for entry in made if entry.step is Step.CLEAN and PRICE in entry.facts]
    return found[-1] / 1000 if found else None


def measured_rules(
    rules: Rules, project: Project, gathered: Gathered, records: Sequence[MoveRecord], at: float
) -> Rules:
    """With the pauses of the latest moves (`priced`), the jobs that may be moved, and the sites that can be
    given something."""
    pauses: dict[str, float] = {}
    for record in reversed(records):
        if record.state == "moved" and record.pause is not None:
            pauses[record.job] = record.pause
    usual = median(pauses.values()) if pauses else rules.pause
    jobs = None if rules.operators is None else frozenset(_chosen(gathered, rules.operators))
    sites = frozenset(_targets(project, gathered, records, at, rules.sites))
    return replace(rules, pause=usual, pauses=pauses, operators=jobs, sites=sites)


def _chosen(gathered: Gathered, queries: Collection[str]) -> set[str]:
    """The jobs that answer one of these queries, and those that make streams for such a job."""
    found = {name for name, one in gathered.jobs.items() if not set(queries).isdisjoint(one.queries)}
    makers = {one.writes: name for name, one in gathered.jobs.items() if one.writes is not None}
    new = found
    while new:
        new = {makers[read] for name in new for read in gathered.jobs[name].reads if read in makers} - found
        found = found | new
    return found


def _targets(
    project: Project,
    gathered: Gathered,
    records: Sequence[MoveRecord],
    at: float,
    chosen: Collection[str] | None,
) -> Iterator[str]:
    """A site for each Spark, that is not known to be down, and to which no move has failed lately. `chosen`:
    of these, or of the same Spark as one of these."""
    engines: set[str] = set()
    wanted = None if chosen is None else {_engine(site) for site in sites_of(project) if site.name in chosen}
    for site in sites_of(project):
        engine = _engine(site)
        avoided = site.name in gathered.down or at < _avoided_until(site.name, records)
        avoided = avoided or (wanted is not None and engine not in wanted)
        if engine not in engines and not avoided:
            yield site.name
        engines.add(engine)


def _engine(site: Site) -> str:
    """Sites without an address are one Spark."""
    return site.endpoint if site.endpoint.startswith(REMOTE) else ""


def _avoided_until(site: str, records: Sequence[MoveRecord]) -> float:
    """By the moves to it that have failed since one has not. Those of one decision fail together, and are
    one failure."""
    failed: list[float] = []
    for record in records:
        if record.target == site and record.state == "moved":
            break
        if record.target == site and record.state == "stayed":
            failed.append(ended_at(record))
    times, last = 0, -float("inf")
    for moment in reversed(failed):
        times, last = (times + 1, moment) if moment - last >= _AVOID else (times, last)
    return max(failed, default=-float("inf")) + min(_AVOID * 2.0 ** (times - 1), _AVOID_MOST)


def ended_at(record: MoveRecord) -> float:
    return -float("inf") if record.ended is None else datetime.fromisoformat(record.ended).timestamp()


def not_yet(gathered: Gathered, records: Sequence[MoveRecord], at: float) -> str:
    """Why nothing can be decided now; empty: it can."""
    going = [record for record in records if record.ended is None]
    if going:
        return f"{going[0].job} is being moved to {going[0].target}"
    age = at - max(map(ended_at, records), default=-float("inf"))
    if age < SETTLE:
        return f"the last move ended {age:.0f} s ago: the figures are still those of before"
    if not any(facts.runs for facts in gathered.jobs.values()):
        return "no job runs"
    starting = [name for name, facts in gathered.jobs.items() if facts.state == JobState.STARTING]
    return f"{starting[0]} is just being started" if starting else ""
