"""Tables 2 and 3: the optimiser on the paper's templates, timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median

from headrace.experiments.federation.cases import CHAINS, DECOMPOSED, TABLE_2, Setting
from headrace.experiments.federation.results import Search
from headrace.planners.federation.phase_two import search
from headrace.planners.federation.problem import Kind, Operator, Options, Plan, Query, Stream, Window
from headrace.planners.federation.solve import solve
from headrace.planners.federation.templates import averages_joined, paper_tree, plug_queries

Clock = Callable[[], float]
_BY_PAPER = Options(pruning="paper", runners=0)
_IN_PIECES = Options(pruning="paper", decompose=DECOMPOSED, runners=0)


def all_searches(setting: Setting, clock: Clock) -> Iterator[Search]:
    for ways in TABLE_2:
        tree = search(paper_tree(ways), _BY_PAPER).examined
        yield _searched(f"{ways}-way join", averages_joined(ways), setting.repeats, clock, tree)
    for name, query in plug_queries().items():
        yield _searched(name.lower(), query, setting.repeats, clock)
    for count in CHAINS:
        yield _searched(f"{count} unary", chain(count), setting.repeats, clock)


def chain(count: int) -> Plan:
    """Selections one above the other."""
    names = ["last5m", *(f"select{k}" for k in range(count))]
    operators = tuple(
        Operator(name, Kind.SELECT, (below,), selectivity=0.9) for below, name in pairwise(names)
    )
    return Plan((Stream("readings", 2000.0),), (Window("last5m", "readings", 300.0, 1.0),), operators)


def _searched(name: str, query: Query | Plan, repeats: int, clock: Clock, on_its_tree: int = 0) -> Search:
    ours, paper, pieces = (
        [solve(query, options, clock) for _ in range(repeats)]
        for options in (Options(runners=0), _BY_PAPER, _IN_PIECES)
    )
    return Search(
        query=name,
        operators=len(ours[0].plan.operators),
        phase_one=_milliseconds([one.phase_one_seconds for one in ours]),
        phase_two=_milliseconds([one.phase_two_seconds for one in ours]),
        plans=ours[0].examined,
        plans_by_paper=paper[0].examined,
        phase_two_by_paper=_milliseconds([one.phase_two_seconds for one in paper]),
        decomposed_by_paper=_milliseconds([one.phase_two_seconds for one in pieces]),
        plans_on_its_tree=on_its_tree,
    )


def _milliseconds(seconds: list[float]) -> float:
    return float(f"{1e3 * median(seconds):.4g}")
