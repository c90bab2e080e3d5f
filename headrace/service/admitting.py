"""Where queries that are spread go when they do not fit where their joins are cheapest.

Queries that get a place are cut as the placement planner has it. If a capacity that counts would be exceeded
because of them, the admission planner (planners/admission) is asked for another placement of their joins,
given what is left beside all that stands already. Its answer is cut into jobs and counted like any other
plan, by utilisation.py, and that decides: the planner knows nothing of the price of micro-batches, of readers
and of senders. Where the count finds too little of something, the planner is asked again with so much less
of it. Fits none, the cheapest placement stays, and it is for the caller to refuse.

`add` and `run` both come here through `reconcile`, with the same figures, so the one promises what the other
does. Nothing depends on the clock or on chance.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from headrace.catalog.model import Project
from headrace.plan.channels import ChannelPlan, DerivedScan, joined, pruned
from headrace.plan.placed import PlacedPlan
from headrace.plan.placed_network import PlacedNetwork, PlacedQuery
from headrace.planners.admission.problem import MOST_STREAMS, AdmissionProblem, Options
from headrace.service.admitting_flows import flows_of_plan
from headrace.service.admitting_problem import admission_problem, in_words, most_streams
from headrace.service.calibration_file import costs_of
from headrace.service.cutting import cut_project, spread, spreadable
from headrace.service.placing import joins_of
from headrace.service.placing_flows import Paths
from headrace.service.placing_network import placed_network
from headrace.service.placing_problem import Placeable
from headrace.service.spread_records import NOTHING, Fitted, Spread
from headrace.service.utilisation import TOLERANCE, Key, Use, capacities, need_of, uses_of

ROUNDS = 8
"""How often the admission planner is asked."""
_UNITS = " (cores, bytes per second)"


def spread_from_nothing(project: Project, placed: PlacedPlan) -> Fitted:
    """What a first run would cut, where nothing is deployed."""
    return spread_to_fit(project, Spread(NOTHING, placed), placed)


def spread_to_fit(project: Project, now: Spread, new: PlacedPlan, taken: Collection[str] = ()) -> Fitted:
    """The jobs and channels of `new`, without what stands already. `now` has every query whole, the new ones
    too, and the channels that stand, all where they are."""
    cheapest = spread(project, new, taken)
    fitting = _Fitting(project, now, new, frozenset(taken))
    over = fitting.over(cheapest)
    if not over:
        return Fitted(cheapest)
    found = joins_of(project, spreadable(project, new))
    if found is None:
        return Fitted(cheapest)
    if most_streams(found.problem.queries) > MOST_STREAMS:
        why = f"a query joins more than {MOST_STREAMS} streams, and no other placement was looked for"
        return Fitted(cheapest, no_room=why)
    return fitting.asked(found, cheapest, over)


@dataclass(frozen=True, slots=True)
class _Over:
    use: Use
    missing: float
    """Of what there is, or of what was used before, if that was more."""


@dataclass(slots=True)
class _Fitting:
    project: Project
    now: Spread
    new: PlacedPlan
    taken: frozenset[str]
    barred: set[str] = field(default_factory=set)

    def over(self, plan: ChannelPlan) -> list[_Over]:
        """The capacities that count and are not enough, because of the new queries."""
        uses = uses_of(self.project, self.now.placed, joined(self.now.plan, plan))
        found = [use for use in uses if use.over and use.counts]
        if not found:
            return []
        before = self._used(_without(self.now.placed, self.new), self.now.plan)
        every = [_Over(use, use.used - max(use.limit, before.get(use.key, 0.0))) for use in found]
        return [one for one in every if one.missing > one.use.used * TOLERANCE]

    def _used(self, placed: PlacedPlan, channels: ChannelPlan) -> dict[Key, float]:
        return {use.key: use.used for use in uses_of(self.project, placed, channels)}

    def asked(self, found: Placeable, cheapest: ChannelPlan, over: Sequence[_Over]) -> Fitted:
        left = self._left(found)
        first, last = need_of(over[0].use), over
        for done in range(ROUNDS):
            problem = admission_problem(self.project, found, left, self.barred)
            network, why = self._placed(found, problem)
            if network is None and not done:
                return Fitted(cheapest, no_room=f"no other placement of the joins fits either; {why}{_UNITS}")
            if network is None:
                break  # Its reason is about what was taken from it; the last count is about what there is.
            for plan in self._cuts(found, network):
                last = self.over(plan)
                if not last:
                    return Fitted(plan, tuple(_told(network.queries, plan, cheapest, first)))
            self._tighten(left, last)
        why = need_of(last[0].use)
        return Fitted(cheapest, no_room=f"no other placement of the joins was found that fits: {why}")

    def _left(self, found: Placeable) -> dict[Key, float]:
        """Of every capacity that counts, beside all but the queries that are placed. Sites without room for
        Spark itself are barred."""
        placed = set(found.named)
        rest = _without_jobs(self.now.placed, placed)
        others = cut_project(self.project, _without_jobs(self.new, placed), None, self.taken)
        used = self._used(rest, joined(self.now.plan, others))
        left = {key: max(0.0, most - used.get(key, 0.0)) for key, most in capacities(self.project).items()}
        for site in found.problem.network.sites:
            key: Key = ("memory", str(site))
            engine = 0.0 if used.get(key) else costs_of(self.project, str(site))[0].engine_memory
            if left.get(key, engine) < engine:
                self.barred.add(str(site))
        return left

    def _placed(self, found: Placeable, problem: AdmissionProblem) -> tuple[PlacedNetwork | None, str]:
        # Late: the planner takes a while to load, and is asked rarely. `solve` has its answer checked.
        from headrace.planners.admission.solve import DEFAULT_PLANNER, solve

        answer = solve(problem, DEFAULT_PLANNER, Options(), time.perf_counter)
        refused = next((one for one in answer.decisions if not one.admitted), None)
        if refused is not None:
            return None, f"{refused.query}: {in_words(refused.why, problem)}"
        admitted = flows_of_plan(found.problem, problem, answer.plan)
        return placed_network(self.project, found, admitted.flows, admitted.route), ""

    def _cuts(self, found: Placeable, network: PlacedNetwork) -> Iterator[ChannelPlan]:
        """With as few jobs that pass streams on as ways need that are not the cheapest; then with one at
        every site on a way, behind which a stream travels once for all."""
        fewest = _shortened(found, network)
        yield cut_project(self.project, self.new, fewest, self.taken, relays=True)
        if fewest != network:
            yield cut_project(self.project, self.new, network, self.taken, relays=True)

    def _tighten(self, left: dict[Key, float], over: Sequence[_Over]) -> None:
        for one in over:
            key = one.use.key
            if key in left:
                left[key] = max(0.0, left[key] - one.missing)
            if one.use.resource == "memory" or (one.use.resource == "cpu" and not left.get(key)):
                self.barred.add(one.use.place)


def _shortened(found: Placeable, network: PlacedNetwork) -> PlacedNetwork:
    """The same ways by the fewest sites, between which they are the cheapest anyway."""
    paths, at = Paths(found.problem.network), found.problem.network.position

    def usual(way: tuple[str, ...]) -> bool:
        return paths.between(at[way[0]], at[way[-1]]) == tuple(at[site] for site in way)

    def shorter(way: tuple[str, ...]) -> tuple[str, ...]:
        if len(way) < 3:
            return way
        last = max(end for end in range(1, len(way)) if usual(way[: end + 1]))
        return (way[0], *shorter(way[last:]))

    return replace(network, channels=tuple(replace(c, path=shorter(c.path)) for c in network.channels))


def _told(
    queries: Sequence[PlacedQuery], plan: ChannelPlan, cheapest: ChannelPlan, first: str
) -> Iterator[str]:
    """Of every query whose joins are elsewhere, or whose streams go another way."""
    for query in queries:
        sites, relays = _where(plan, query)
        if (sites, relays) != _where(cheapest, query):
            passed = f"; what they read is passed on by {', '.join(relays)}" if relays else ""
            yield (
                f"{query.query} does not fit where its joins are cheapest ({first}): admission has placed "
                f"them at {', '.join(sites)}{passed}"
            )


def _where(plan: ChannelPlan, query: PlacedQuery) -> tuple[list[str], list[str]]:
    """The sites that join something for a query, and those that only pass streams on. One that is not cut is
    whole at its site."""
    own = pruned(plan, [query.query]).jobs
    relays = {job.site for job in own if job.writes and isinstance(job.plan, DerivedScan)}
    return sorted({job.site for job in own if job.joins} or {query.site}), sorted(relays)


def _without(placed: PlacedPlan, new: PlacedPlan) -> PlacedPlan:
    trees = {tree.id for tree in new.trees}
    rest = _without_jobs(placed, {job.query for job in new.jobs})
    return replace(rest, trees=tuple(tree for tree in rest.trees if tree.id not in trees))


def _without_jobs(placed: PlacedPlan, queries: Collection[str]) -> PlacedPlan:
    return replace(placed, jobs=tuple(job for job in placed.jobs if job.query not in queries))
