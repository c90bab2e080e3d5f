"""The placement problem in its public form, solved, and given back with the cost of every query."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict, final

from headrace.errors import UserError
from headrace.service.problem_file import ProblemFile, Trail
from headrace.service.solve_files import write_whole
from headrace.service.solve_placement_file import Given, read_placement
from headrace.service.solve_request import Request, optimiser_named

if TYPE_CHECKING:
    from headrace.planners.placement.problem import Placed, PlacementPlan, PlacementProblem, Query, Tree
    from headrace.planners.placement.reach import NoDeployment

OPTIONS = ("seed", "seconds", "max_cs", "zones", "iterations", "picture")
"""Of `headrace solve placement`."""

Name = str | int
"""A site or a query, as the problem writes it."""


@final
class StreamLeaf(TypedDict):
    stream: str
    site: Name


@final
class ReusedLeaf(TypedDict):
    """A stream that an earlier query made, read where it made it."""

    reused: list[str]
    site: Name
    query: Name
    extra_cost: NotRequired[float]
    """What it adds upstream that the stream must hold more than it did; not given where it is 0."""


@final
class JoinNode(TypedDict):
    join: list[TreeNode]
    streams: list[str]
    site: Name
    rate: float
    """Of the data it gives."""


TreeNode = StreamLeaf | ReusedLeaf | JoinNode


class ReusedData(TypedDict):
    streams: list[str]
    site: Name
    query: Name


class QueryData(TypedDict):
    id: Name
    sink: Name
    tree: TreeNode
    reused: list[ReusedData]
    joins: int
    added_cost: float
    plans_examined: int
    seconds: float
    certified: bool
    notes: NotRequired[dict[str, str]]


class PlacementAnswer(TypedDict):
    problem: Literal["placement"]
    planner: str
    optimiser: str
    queries: list[QueryData]
    total_cost: float
    operators: int
    seconds: float
    prepare_seconds: float
    compile_seconds: float
    lower_bound: NotRequired[float]
    notes: NotRequired[dict[str, str]]


def placement_planners() -> Mapping[str, str]:
    from headrace.planners.placement.solve import DEFAULT_PLANNER, PLANNERS

    return {DEFAULT_PLANNER: PLANNERS[DEFAULT_PLANNER], **PLANNERS}


def solve_placement(file: ProblemFile, request: Request) -> PlacementAnswer:
    # Imported late: a wrong file needs none of it.
    from headrace.planners.placement.problem import Options
    from headrace.planners.placement.reach import NoDeployment
    from headrace.planners.placement.solve import solve

    given = read_placement(file)
    planner = optimiser_named(request.optimiser, placement_planners())
    asked = {name: value for name, value in request.given().items() if name != "picture"}
    try:
        plan = solve(given.problem, planner, Options(**asked), time.perf_counter)
    except NoDeployment as error:
        raise _in_file(file, error) from None
    if request.picture is not None:
        _draw(request.picture, given.problem, plan)
    return placement_answer(given, plan)


def _draw(path: Path, problem: PlacementProblem, plan: PlacementPlan) -> None:
    from headrace.service.network_picture import draw
    from headrace.service.solve_map import network_map, table_of

    write_whole(path, draw(network_map(problem, plan), path, [table_of(problem, plan)]))


def placement_answer(given: Given, plan: PlacementPlan) -> PlacementAnswer:
    """A plan of the planner in its public form."""
    telling = _Telling(given)
    queries = [telling.query(placed) for placed in plan.queries]
    answer = PlacementAnswer(
        problem="placement",
        planner=plan.planner,
        optimiser=plan.planner,
        queries=queries,
        total_cost=plan.total_cost,
        operators=sum(query["joins"] for query in queries),
        seconds=plan.seconds,
        prepare_seconds=plan.prepare_seconds,
        compile_seconds=plan.compile_seconds,
    )
    if plan.lower_bound is not None:
        answer["lower_bound"] = plan.lower_bound
    if plan.notes:
        answer["notes"] = dict(plan.notes)
    return answer


class _Telling:
    """Plans in the words of the problem: its names for sites and queries, streams in the order of a query."""

    def __init__(self, given: Given) -> None:
        self._problem = given.problem
        self._ids = given.ids
        self._queries = {query.id: query for query in given.problem.queries}

    def query(self, placed: Placed) -> QueryData:
        from headrace.planners.placement.solve import new_joins

        query = self._queries[placed.query]
        reused = [
            ReusedData(
                streams=_ordered(one.streams, query),
                site=self._site(one.site),
                query=self._ids[one.query],
            )
            for one in placed.reused
        ]
        data = QueryData(
            id=self._ids[query.id],
            sink=self._site(query.sink),
            tree=self.tree(placed.tree, query),
            reused=reused,
            joins=new_joins(placed.tree),
            added_cost=placed.cost,
            plans_examined=int(placed.plans_examined),
            seconds=placed.seconds,
            certified=bool(placed.certified),
        )
        if placed.notes:
            data["notes"] = dict(placed.notes)
        return data

    def tree(self, tree: Tree, query: Query) -> TreeNode:
        from headrace.planners.placement.problem import Join, Leaf
        from headrace.planners.placement.rates import data_rate, wanted

        site = self._site(tree.site)
        if isinstance(tree, Leaf):
            return StreamLeaf(stream=tree.stream, site=site)
        names = _ordered(tree.streams, query)
        if isinstance(tree, Join):
            inputs = [self.tree(tree.left, query), self.tree(tree.right, query)]
            rate = data_rate(self._problem, wanted(self._problem, query), tree.streams)
            return JoinNode(join=inputs, streams=names, site=site, rate=rate)
        leaf = ReusedLeaf(reused=names, site=site, query=self._ids[tree.query])
        if tree.extra:
            leaf["extra_cost"] = float(tree.extra)
        return leaf

    def _site(self, site: int) -> Name:
        return self._problem.network.sites[site]


def _ordered(streams: frozenset[str], query: Query) -> list[str]:
    return [name for name in query.streams if name in streams]


def _in_file(file: ProblemFile, error: NoDeployment) -> UserError:
    trail: Trail = ("queries", error.query)
    if error.stream is not None:
        trail = (*trail, "streams", error.stream)
    found = file.wrong(trail, error.message, error.hint)
    found.detail = error.detail
    return found
