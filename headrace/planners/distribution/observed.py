"""What was seen of operators and sites, put in the place of what was assumed of them.

None: never observed, and the assumption stays. 0: observed and silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headrace.planners.distribution.problem import Operator, Problem, Site, Stream


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
        return max(1.0, self.arriving / self.rows_in)


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
    """The problem as it was seen to be. Of the cpu of a site, what its operators do not account for is used
    by others, and stays there whatever is moved."""
    rows_in = problem.rows_in
    operators = tuple(
        _operator(one, seen.operators.get(one.id), rows_in[one.id], seen.row_bytes)
        for one in problem.operators
    )
    streams = tuple(Stream(one.id, seen.streams.get(one.id, one.rate), one.site) for one in problem.streams)
    measured = {
        one.id: one for one in operators if one.id in seen.operators and _cpu_seen(seen.operators[one.id])
    }
    sites = tuple(_site(one, seen, problem, measured) for one in problem.sites)
    return replace(problem, operators=operators, streams=streams, sites=sites)


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


def _site(one: Site, seen: Observations, problem: Problem, measured: Mapping[str, Operator]) -> Site:
    found = seen.sites.get(one.id)
    if found is None:
        return one
    here = [name for name, site in problem.table.items() if site == one.id]
    cpu, memory = one.cpu_other, one.memory_other
    if found.cpu is not None:
        ours = sum(measured[name].cpu / seen.operators[name].behind for name in here if name in measured)
        cpu = max(0.0, found.cpu - ours)
    if found.memory is not None:
        known = (seen.operators[name].state_bytes for name in here if name in seen.operators)
        memory = max(0.0, found.memory - sum(size for size in known if size is not None))
    return replace(one, cpu_other=cpu, memory_other=memory)
