"""Which split the planner would take at a rate, and which splits are the same to the run time."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.cost.federation import FederationCosts
from headrace.plan import logical as lp
from headrace.plan.federated import Engine, FederatedMember, operators
from headrace.plan.federated_parts import cut
from headrace.planners.federation.problem import Options
from headrace.planners.federation.problem import Split as Priced
from headrace.planners.federation.recount import Recount
from headrace.planners.federation.sizes import sizes_of
from headrace.planners.federation.solve import solve
from headrace.service.binding import plan_query
from headrace.service.federating_problem import problem_of
from headrace.service.throughput_stream import Load, project_of

Prices = FederationCosts
SPARK, DUCKDB, SELECT, ROOT, UPPER, LOWER = "spark", "duckdb", "select", "root", "upper", "lower"
NAMED: Mapping[str, str] = {
    SPARK: "all on Spark",
    DUCKDB: "all on DuckDB",
    SELECT: "selections on Spark",
    ROOT: "selections and the last operator on Spark",
    UPPER: "only aggregates over windows of the stream on DuckDB",
    LOWER: "selections and aggregates over windows of the stream on Spark",
}
"""Splits that the paper talks about, and the opposite of one of them."""


@dataclass(frozen=True, slots=True)
class Believed:
    """A split, and what the planner thinks it costs."""

    split: str
    bottleneck: float
    utilisation: float


def letters(engines: tuple[Engine, ...]) -> str:
    return "".join(engine.value[0] for engine in engines)


class Planned:
    """A query at one rate, as the planner sees it."""

    def __init__(self, load: Load, query: str, sql: str, costs: FederationCosts, cores: float) -> None:
        project = project_of(load, Path("rows"), query, sql, cores)
        self.plan = plan_query(project, project.queries[query]).plan
        self.problem = problem_of(project, "local", self.plan, costs)

    def chosen(self, *, feasibility: bool = True) -> Believed:
        options = Options(feasibility=feasibility, runners=0)
        return _believed(solve(self.problem, options, lambda: 0.0).split)

    def believed(self, split: str) -> Believed:
        engines = tuple(Engine.SPARK if letter == "s" else Engine.DUCKDB for letter in split)
        return _believed(Recount(self.problem, sizes_of(self.problem)).split(engines))


def _believed(split: Priced) -> Believed:
    return Believed(letters(split.engines), split.bottleneck, split.utilisation)


def named_splits(plan: lp.LogicalPlan) -> dict[str, str]:
    """By name; two names may be one split."""
    nodes = operators(plan)
    below = [isinstance(node, lp.Filter | lp.TableJoin) and node.shape is lp.Shape.STREAM for node in nodes]
    first = [isinstance(node, lp.Aggregate) and isinstance(node.input, lp.Window) for node in nodes]
    last = [node is nodes[-1] for node in nodes]
    on_spark = {
        SPARK: [True] * len(nodes),
        DUCKDB: [False] * len(nodes),
        SELECT: below,
        ROOT: [low or end for low, end in zip(below, last, strict=True)],
        UPPER: [not one for one in first],
        LOWER: [low or one for low, one in zip(below, first, strict=True)],
    }
    return {name: "".join("s" if one else "d" for one in each) for name, each in on_spark.items()}


def same_runs(plan: lp.LogicalPlan) -> dict[str, str]:
    """For every split one that stands for all that run in the same way: what two parts read, and both could
    have made, is made once."""
    stands: dict[tuple[object, ...], str] = {}
    found = {}
    for engines in _every(plan):
        parts = cut(FederatedMember("q", plan, engines))
        key = tuple((part.engine, part.root, part.inputs) for part in parts)
        found[letters(engines)] = stands.setdefault(key, letters(engines))
    return found


def _every(plan: lp.LogicalPlan) -> Iterator[tuple[Engine, ...]]:
    return itertools.product(tuple(Engine), repeat=len(operators(plan)))
