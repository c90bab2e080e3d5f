"""What would be chosen with other prices, over runs that were made before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from headrace.experiments.federation.queries import QUERIES
from headrace.experiments.federation.results import AnyRow, Choice, Results, Run
from headrace.service.throughput_choice import Planned, same_runs
from headrace.service.throughput_costs import prices_named
from headrace.service.throughput_stream import Load


def priced_again(results: Results, costs: str | None) -> Results:
    """The same runs, with choices and beliefs by these prices; None: by the defaults."""
    prices = prices_named(costs or "default", Path(), 2)
    cores = {run.query: run.cores for run in results.of(Run)}
    known: dict[tuple[str, int], Planned] = {}

    def planned(query: str, rate: int) -> Planned:
        if (query, rate) not in known:
            known[query, rate] = Planned(Load(rate), query, QUERIES[query], prices, cores.get(query, 2))
        return known[query, rate]

    def again(row: AnyRow) -> AnyRow:
        if isinstance(row, Choice):
            plan = planned(row.query, row.rate)
            found = plan.chosen(feasibility=row.feasibility)
            return Choice(
                row.query,
                row.rate,
                row.feasibility,
                found.split,
                same_runs(plan.plan)[found.split],
                found.bottleneck,
                found.utilisation,
            )
        if isinstance(row, Run):
            believed = planned(row.query, row.rate).believed(row.split)
            return replace(row, bottleneck=believed.bottleneck, utilisation=believed.utilisation)
        return row

    return Results(tuple(again(row) for row in results.rows), results.made)
