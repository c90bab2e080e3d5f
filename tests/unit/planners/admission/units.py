"""The same problem, written in other units."""

from __future__ import annotations

from dataclasses import replace

from headrace.planners.admission.problem import AdmissionProblem


def in_units(problem: AdmissionProblem, factor: float) -> AdmissionProblem:
    """All rates and limits times `factor`."""
    hosts = tuple(
        replace(
            host,
            cpu=host.cpu * factor,
            incoming=host.incoming * factor,
            outgoing=host.outgoing * factor,
            memory=host.memory * factor,
        )
        for host in problem.hosts
    )
    return replace(
        problem,
        hosts=hosts,
        link_bandwidth=problem.link_bandwidth * factor,
        streams={name: replace(base, rate=base.rate * factor) for name, base in problem.streams.items()},
        rates={streams: rate * factor for streams, rate in problem.rates.items()},
    )
