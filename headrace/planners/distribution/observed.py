"""What was seen of operators and sites, put in the place of what was assumed of them.

None: never observed, and the assumption stays. 0: observed and silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headrace.planners.distribution.problem import Operator, Problem, Site
from headrace.planners.distribution.usage import ends, is_remote

MOST_BEHIND = 1e6
"""Times; further behind, nobody measures anything."""


@dataclass(frozen=True, slots=True)
class OperatorSeen:
    rows_in: float | None = None
    """Rows it took, a second."""
    rows_out: float | None = None
    arriving: float | None = None
    """Rows a second that there were to take: more than `rows_in` where it falls behind."""
    cpu: float | None = None
    """Cores."""
    batch_seconds: float | None = None
    batches: float | None = None
    """A second."""
    state_rows: float | None = None
    state_bytes: float | None = None
    lag_seconds: float | None = None

    @property
    def selectivity(self) -> float | None:
        return None if self.rows_out is None or not self.rows_in else self.rows_out / self.rows_in

    @property
    def behind(self) -> float:
        """How many times faster it would have to be; 1: it keeps up."""
        if self.arriving is None or not self.rows_in:
            return 1.0
        return min(max(1.0, self.arriving / self.rows_in), MOST_BEHIND)


@dataclass(frozen=True, slots=True)
class SiteSeen:
    cpu: float | None = None
    """Cores used, by our operators and by all else."""
    memory: float | None = None


@dataclass(frozen=True, slots=True)
class Observations:
    operators: Mapping[str, OperatorSeen] = field(default_factory=dict)
    sites: Mapping[str, SiteSeen] = field(default_factory=dict)
    streams: Mapping[str, float] = field(default_factory=dict)
    """Rows a second."""
    row_bytes: float = 100.0
    """Of state, where only its rows were seen."""


def with_observations(problem: Problem, seen: Observations) -> Problem:
    """The problem as it was seen to be. Of what is used at a site, what its operators and their connections
    do not account for is used by others, and stays there whatever is moved."""
    rows_in = problem.rows_in
    operators = tuple(
        _operator(one, seen.operators.get(one.id), rows_in[one.id], seen.row_bytes)
        for one in problem.operators
    )
    streams = tuple(replace(one, rate=seen.streams.get(one.id, one.rate)) for one in problem.streams)
    found = replace(problem, operators=operators, streams=streams)
    if not seen.sites:
        return found
    # An operator that falls behind did not use what it needs.
    used = replace(found, operators=tuple(_as_it_was(one, seen.operators.get(one.id)) for one in operators))
    return replace(found, sites=tuple(_site(one, seen.sites.get(one.id), used) for one in problem.sites))


def _cpu_seen(seen: OperatorSeen) -> float | None:
    """Cores, or what the length of batches says about them."""
    if seen.cpu is not None:
        return seen.cpu
    if seen.batch_seconds is not None and seen.batches is not None:
        return seen.batch_seconds * seen.batches
    return None


def _operator(one: Operator, seen: OperatorSeen | None, planned_in: float, row_bytes: float) -> Operator:
    if seen is None:
        return one
    cpu = _cpu_seen(seen)
    if cpu is None:
        # No cpu was seen: what was assumed, for as many rows as were seen.
        known = seen.rows_in is not None and planned_in > 0
        cpu = one.cpu * seen.rows_in / planned_in if known and seen.rows_in is not None else one.cpu
    state = seen.state_bytes
    if state is None:
        state = one.state_bytes if seen.state_rows is None else seen.state_rows * row_bytes
    rate = one.rate if seen.rows_out is None else seen.rows_out
    # An operator that falls behind shows what its site gave it, not what it needs.
    return replace(one, cpu=cpu * seen.behind, rate=rate * seen.behind, state_bytes=state)


def _as_it_was(one: Operator, seen: OperatorSeen | None) -> Operator:
    behind = 1.0 if seen is None else seen.behind
    return replace(one, cpu=one.cpu / behind, rate=one.rate / behind)


def _site(one: Site, seen: SiteSeen | None, used: Problem) -> Site:
    """All that is counted for the site again, assumed or seen, comes off what was seen there."""
    if seen is None:
        return one
    own = [operator for operator in used.operators if used.table.get(operator.id) == one.id]
    cpu, memory = one.cpu_other, one.memory_other
    if seen.cpu is not None:
        ours = sum(operator.cpu for operator in own) + _connected(one.id, used)
        cpu = max(0.0, seen.cpu - ours)
    if seen.memory is not None:
        memory = max(0.0, seen.memory - sum(operator.state_bytes for operator in own))
    return replace(one, cpu_other=cpu, memory_other=memory)


def _connected(site: str, used: Problem) -> float:
    """Cores that connections take there; not those of operators that run nowhere yet."""
    return sum(
        used.connection_cpu + used.row_cpu * edge.rate
        for edge in used.edges
        if all(name in used.table for name in edge.operators)
        and is_remote(edge, used.table)
        and site in ends(edge, used.table)
    )
