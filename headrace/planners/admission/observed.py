"""A problem with what was observed in place of what was estimated.

Rates that were measured replace estimates. What nobody makes cannot be measured: such a stream is taken to
have changed as the sum of its base streams did, since the paper's cost model is linear in rates (II-B). A
host that takes more CPU than its operators explain is a slower host: its limit shrinks by that factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite

from headrace.errors import UserError
from headrace.planners.admission.check import usage
from headrace.planners.admission.problem import AdmissionProblem, Base, Host, Plan, Stream


@dataclass(frozen=True, slots=True)
class Observed:
    """What is absent was never observed; 0.0 was observed and silent."""

    rates: Mapping[Stream, float] = field(default_factory=dict)
    """Of base and composite streams."""
    cpu: Mapping[Host, float] = field(default_factory=dict)
    """That hosts use for what runs there now."""


@dataclass(frozen=True, slots=True)
class Running:
    """A plan that runs, whom it serves, and what was seen of it."""

    plan: Plan
    admitted: tuple[str, ...]
    observed: Observed


def observed_problem(problem: AdmissionProblem, observed: Observed, plan: Plan) -> AdmissionProblem:
    """`plan`: what ran while it was observed."""
    _check(problem, observed)
    bases = {
        name: replace(base, rate=observed.rates.get(frozenset({name}), base.rate))
        for name, base in problem.streams.items()
    }
    rates = ObservedRates(problem.streams, bases, problem.rates, observed.rates)
    changed = replace(problem, streams=bases, rates=rates)
    explained = usage(changed, plan)["cpu"]
    hosts = list(problem.hosts)
    for host, cpu in observed.cpu.items():
        if cpu > 0.0 and explained[host] > 0.0:
            hosts[host] = replace(hosts[host], cpu=hosts[host].cpu * explained[host] / cpu)
    return replace(changed, hosts=tuple(hosts))


class ObservedRates(Mapping[Stream, float]):
    def __init__(
        self,
        before: Mapping[str, Base],
        now: Mapping[str, Base],
        estimates: Mapping[Stream, float],
        measured: Mapping[Stream, float],
    ) -> None:
        self._before, self._now = before, now
        self._estimates, self._measured = estimates, measured
        self._known: dict[Stream, float] = {}

    def __getitem__(self, stream: Stream) -> float:
        known = self._known.get(stream)
        if known is None:
            known = self._known[stream] = self._rate(stream)
        return known

    def _rate(self, stream: Stream) -> float:
        estimate = self._estimates[stream]
        if stream in self._measured:
            return self._measured[stream]
        before, now = (
            sum(bases[name].rate for name in sorted(stream)) for bases in (self._before, self._now)
        )
        return estimate * now / before if before > 0.0 else estimate

    def __contains__(self, stream: object) -> bool:
        return stream in self._estimates

    def __iter__(self) -> Iterator[Stream]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)


def _check(problem: AdmissionProblem, observed: Observed) -> None:
    for stream, rate in observed.rates.items():
        name = "*".join(sorted(stream))
        base = len(stream) == 1 and stream <= problem.streams.keys()
        if not base and stream not in problem.rates:
            raise UserError(f'a rate was observed of "{name}", which is no stream of this problem')
        if not (isfinite(rate) and rate >= 0.0):
            raise UserError(f'the observed rate of "{name}" is {rate}', hint="A rate is a number from 0 up.")
    for host, cpu in observed.cpu.items():
        if host not in range(len(problem.hosts)) or not (isfinite(cpu) and cpu >= 0.0):
            raise UserError(f"host {host} was observed to use {cpu} CPU", hint="Hosts are numbered from 0.")
