"""Redistribution by two tiers of managers (Section 4.2), while it runs.

    a region without a site that answers -> its operators go to other regions, whatever the rules
    a region that is too full as a whole -> the upper manager: the policy, with regions as sites
    otherwise                            -> each region's manager: the policy, with its own sites only

The upper manager sees sums: of a region's capacities, and of what its operators take. It is asked only about
regions that are filled beyond `full`, since all else can be evened out at home. What it gives to a region is
placed there by that region's manager, where the site is emptiest afterwards. In a round in which it moves
something the regions do nothing: what has come settles first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from headrace.planners.distribution.anew import surrounded
from headrace.planners.distribution.costs import Costing, CostModel
from headrace.planners.distribution.problem import Problem, Site
from headrace.planners.distribution.redistribute import check_table, redistribute
from headrace.planners.distribution.rules import Decision, History, Move, Rules
from headrace.planners.distribution.running import Running
from headrace.planners.distribution.tiers import regions_of
from headrace.planners.distribution.usage import ROUNDING


def redistribute_tiers(
    problem: Problem,
    policy: str,
    model: CostModel,
    rules: Rules | None = None,
    history: History | None = None,
    now: float = 0.0,
) -> Decision:
    """One round, as `redistribute` has it; the same where there is one region. Raises UserError where an
    operator has no site yet or no site answers."""
    rules, history = rules or Rules(), history or History()
    if len({site.region for site in problem.sites}) < 2:
        return redistribute(problem, policy, model, rules, history, now)
    check_table(problem)
    upper = _between(problem, policy, model, rules, history, now)
    if upper.moves:
        running = Running(problem, model, rules, history, now)
        for move in upper.moves:
            _settle(running, move)
        if running.moves:
            return _moved(running, upper)
        upper = _idle(upper, history, "no single site of another region has room")
    return _inside(problem, policy, model, rules, history, now, upper)


# -- the upper manager ------------------------------------------------------------------------------


def label(region: str) -> str:
    """A region among sites."""
    return f"region {region}"


def regions_as_sites(problem: Problem) -> Problem:
    """Whole regions, as the upper manager sees them: sums over the sites that answer."""
    at = {site.id: label(site.region) for site in problem.sites}
    alive = regions_of(problem)
    regions = dict.fromkeys(site.region for site in problem.sites)
    return replace(
        problem,
        sites=tuple(
            _summed(region, [problem.site[one] for one in alive.get(region, ())]) for region in regions
        ),
        queries=tuple(replace(q, site=at.get(q.site or "", q.site)) for q in problem.queries),
        streams=tuple(replace(s, site=at.get(s.site or "", s.site)) for s in problem.streams),
        links=(),
        table={name: at[site] for name, site in problem.table.items()},
    )


def _summed(region: str, sites: Sequence[Site]) -> Site:
    if not sites:
        return Site(label(region), alive=False)
    return Site(
        label(region),
        cpu=sum(site.cpu for site in sites),
        memory=sum(site.memory for site in sites),
        network=sum(site.network for site in sites),
        connections=sum(site.connections for site in sites),
        cpu_other=sum(site.cpu_other for site in sites),
        memory_other=sum(site.memory_other for site in sites),
    )


def _between(
    problem: Problem, policy: str, model: CostModel, rules: Rules, history: History, now: float
) -> Decision:
    """What the upper manager would have moved. Only operators of regions that are too full may go."""
    whole = regions_as_sites(problem)
    costs = Costing(whole, model).table(whole.table)
    kept = {site for site, one in costs.sites.items() if one.cost <= rules.full * (1 + ROUNDING)}
    able = frozenset(name for name, site in whole.table.items() if site not in kept)
    if not able:
        none = Decision(policy, (), whole.table, costs, costs, "", history)
        return _idle(none, replace(history, uneven_since=None), "")
    chosen = able if rules.operators is None else able & rules.operators
    allowed = None
    if rules.sites is not None:
        allowed = frozenset(label(site.region) for site in problem.sites if site.id in rules.sites)
    return redistribute(whole, policy, model, replace(rules, operators=chosen, sites=allowed), history, now)


def _idle(upper: Decision, history: History, why: str) -> Decision:
    """It moves nothing, and remembers how full regions were when they were last changed."""
    costs = {site: one.cost for site, one in upper.before.sites.items()}
    baseline = {site: history.baseline.get(site, cost) for site, cost in costs.items()}
    return replace(
        upper, moves=(), after=upper.before, why=why, history=History(baseline, {}, history.uneven_since)
    )


def _settle(running: Running, move: Move) -> None:
    """The region that gets operators places them: where the site is emptiest afterwards. They stay together
    there, but may come from several sites."""
    problem = running.problem
    targets = [site for site in running.targets if label(problem.site[site].region) == move.target]
    after = {site: running.tried([(move.operators, site)]).costs[site] for site in targets}
    for target in sorted(after, key=lambda site: after[site]):
        if running.breaks([(move.operators, target)]):
            continue
        sources = dict.fromkeys(running.table[name] for name in move.operators)
        for source in sources:
            own = [name for name in move.operators if running.table[name] == source]
            running.apply(own, target, move.gain * len(own) / len(move.operators), move.why)
        return


def _moved(running: Running, upper: Decision) -> Decision:
    touched = {site for move in running.moves for site in (move.source, move.target)}
    names = {name for move in running.moves for name in move.operators}
    before = Costing(running.problem, running.model).table(running.problem.table)
    after = running.snapshot()
    baseline = {
        site: after.sites[site].cost if site in touched else running.history.baseline.get(site, one.cost)
        for site, one in before.sites.items()
    }
    moved = {name: at for name, at in upper.history.moved.items() if name in names or at < running.now}
    remembered = History({**baseline, **upper.history.baseline}, moved, None)
    return Decision(upper.policy, tuple(running.moves), running.table, before, after, upper.why, remembered)


# -- the managers of regions ------------------------------------------------------------------------


def region_part(problem: Problem, region: str) -> Problem:
    """The problem of one region's manager: its sites, and what runs there. All else is surroundings."""
    sites = [site for site in problem.sites if site.region == region]
    names = {site.id for site in sites}
    own = [one.id for one in problem.operators if problem.table[one.id] in names]
    part = surrounded(problem, problem.table, own, [site.id for site in sites if site.alive])
    gone = tuple(site for site in sites if not site.alive)
    return replace(part, sites=(*part.sites, *gone), table={name: problem.table[name] for name in own})


def _inside(
    problem: Problem,
    policy: str,
    model: CostModel,
    rules: Rules,
    history: History,
    now: float,
    upper: Decision,
) -> Decision:
    found = {
        region: redistribute(region_part(problem, region), policy, model, rules, history, now)
        for region in regions_of(problem)
    }
    table = dict(problem.table)
    for one in found.values():
        table |= one.table
    costing = Costing(problem, model)
    managers = {**found, "between regions": upper}
    why = "; ".join(f"{name}: {one.why}" for name, one in managers.items() if one.why)
    return Decision(
        policy,
        tuple(move for one in found.values() for move in one.moves),
        table,
        costing.table(problem.table),
        costing.table(table),
        why,
        _remembered(managers.values()),
    )


def _remembered(found: Iterable[Decision]) -> History:
    """Of all managers together. Patience has begun with the first that has something to even out."""
    baseline: dict[str, float] = {}
    moved: dict[str, float] = {}
    for one in found:
        baseline |= one.history.baseline
        moved |= one.history.moved
    waiting = [one.history.uneven_since for one in found if one.history.uneven_since is not None]
    return History(baseline, moved, min(waiting, default=None))
