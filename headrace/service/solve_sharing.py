"""The sharing problem in its public form: read strictly, solved, and given back with costs and bounds."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from headrace.ids import did_you_mean
from headrace.service.problem_file import ProblemFile, Trail, check_ids, described
from headrace.service.solve_families import PROBLEM_KEYS, QUERY_KEYS, check_families, read_families
from headrace.service.solve_request import Request, optimiser_named

if TYPE_CHECKING:
    from headrace.planners.sharing.families import FamilyProblem
    from headrace.planners.sharing.problem import CostModel, SharingPlan, SharingProblem, TreeReport

LARGEST_TIME = 10**12
LARGEST_RATE = 1e12
LEAST_CAPACITY, LARGEST_CAPACITY = 1e-9, 1e12
MOST_NODES = 100_000
COSTS = ("paper", "true")


class TreeData(TypedDict):
    queries: list[str]
    edge_rate: str
    """Exact, as "a/b"; where `exact` is false, the upper end of an interval that holds the truth."""
    edge_rate_float: float
    edge_rate_low: NotRequired[str]
    exact: bool
    overlap: float
    overlap_exact: str
    cost: float
    form: NotRequired[str]
    """Only in problems with filters or group-bys, as are the next two."""
    keys: NotRequired[list[str]]
    groups: NotRequired[float]


class NodeData(TypedDict):
    node: int
    capacity: float
    cost: float
    trees: list[TreeData]


class FrontData(TypedDict):
    total_cost: float
    max_cost: float
    nodes: list[list[list[str]]]
    """Per node its trees, per tree its queries."""


class SharingAnswer(TypedDict):
    problem: Literal["sharing"]
    optimiser: str
    cost: str
    nodes: list[NodeData]
    node_costs: list[float]
    total_cost: float
    max_cost: float
    max_load: float
    unshared_cost: float
    lower_bound: float
    lower_bound_max: float
    seconds: float
    compile_seconds: float
    front: NotRequired[list[FrontData]]
    notes: NotRequired[dict[str, str]]


OPTIONS = ("seed", "balance", "seconds", "preprocess", "stop", "insert", "start", "front")
"""Of `headrace solve sharing`."""


def sharing_optimisers() -> Mapping[str, str]:
    from headrace.planners.sharing.solve import DEFAULT_OPTIMISER, OPTIMISERS

    return {DEFAULT_OPTIMISER: OPTIMISERS[DEFAULT_OPTIMISER], **OPTIMISERS}


def solve_sharing(file: ProblemFile, request: Request) -> SharingAnswer:
    body = file.body()
    problem = _sharing(file, body)
    assert isinstance(body, dict)
    families = read_families(file, body, problem)
    optimiser = optimiser_named(request.optimiser, sharing_optimisers())
    if families is not None:
        check_families(optimiser, next(iter(sharing_optimisers())), front=bool(request.front))
        return _solve_families(file, problem, families)
    # Imported late: the kernels take a second to load, and a wrong file needs none of them.
    from headrace.planners.sharing.problem import Options
    from headrace.planners.sharing.solve import solve

    names = {field.name for field in fields(Options)}
    given = {f.name: getattr(request, f.name) for f in fields(request) if f.name in names}
    options = Options(**{name: value for name, value in given.items() if value is not None})
    plan = solve(problem, optimiser, options, clock=time.perf_counter, front=bool(request.front))
    return sharing_answer(problem, plan, front=bool(request.front))


def _solve_families(file: ProblemFile, problem: SharingProblem, families: FamilyProblem) -> SharingAnswer:
    from headrace.planners.sharing.families import Contradiction, solve_families

    try:
        found = solve_families(families, clock=time.perf_counter)
    except Contradiction as error:
        raise file.wrong(("overlaps",), error.message, error.hint) from None
    answer = sharing_answer(problem, found.plan, front=False)
    for node, forms in zip(answer["nodes"], found.forms, strict=True):
        for tree, form in zip(node["trees"], forms, strict=True):
            tree["form"], tree["keys"], tree["groups"] = form.form, list(form.keys), form.groups
    return answer


def read_sharing(file: ProblemFile) -> SharingProblem:
    """The sharing problem in a file. Raises UserError at the place of what is wrong."""
    return _sharing(file, file.body())


def _sharing(file: ProblemFile, data: object) -> SharingProblem:
    from headrace.planners.sharing.problem import SharingProblem, WindowQuery

    body = file.mapping(data, (), ("rate", "nodes", "queries"), ("cost", *PROBLEM_KEYS))
    rate = file.number(body["rate"], ("rate",), 0, LARGEST_RATE)
    capacities = _capacities(file, body["nodes"])
    queries: list[WindowQuery] = []
    items = file.items(body["queries"], ("queries",), "query")
    for number, item in enumerate(items):
        trail = ("queries", number)
        query = file.mapping(item, trail, ("range", "slide"), ("id", *QUERY_KEYS))
        name = _id(file, query.get("id", f"q{number + 1}"), (*trail, "id"))
        length = file.whole(query["range"], (*trail, "range"), LARGEST_TIME)
        slide = file.whole(query["slide"], (*trail, "slide"), LARGEST_TIME)
        queries.append(WindowQuery(name, length, slide))
    check_ids(file, [query.id for query in queries], items)
    return SharingProblem(rate, capacities, tuple(queries), _cost(file, body.get("cost", "paper")))


def _capacities(file: ProblemFile, value: object) -> tuple[float, ...]:
    if not isinstance(value, list):
        if type(value) is not int:
            message = f"nodes must be a whole number or a list of capacities, not {described(value)}"
            raise file.wrong(("nodes",), message)
        return (1.0,) * file.whole(value, ("nodes",), MOST_NODES)
    items = file.items(value, ("nodes",), "capacity")
    if len(items) > MOST_NODES:
        raise file.wrong(("nodes",), f"nodes must be at most {MOST_NODES}, not {len(items)}")
    return tuple(
        file.number(item, ("nodes", number), LEAST_CAPACITY, LARGEST_CAPACITY)
        for number, item in enumerate(items)
    )


def _id(file: ProblemFile, value: object, trail: Trail) -> str:
    if not isinstance(value, str) or not value:
        what = "an empty text" if value == "" else described(value)
        raise file.wrong(trail, f"the id of a query must be a text, not {what}")
    return value


def _cost(file: ProblemFile, value: object) -> CostModel:
    if value == "paper":
        return "paper"
    if value == "true":
        return "true"
    hint = did_you_mean(value, COSTS, "costs") if isinstance(value, str) else 'Write "paper" or "true".'
    raise file.wrong(("cost",), f'cost must be "paper" or "true", not {described(value)}', hint)


def sharing_answer(problem: SharingProblem, plan: SharingPlan, *, front: bool) -> SharingAnswer:
    """A plan of the planner in its public form."""
    answer = SharingAnswer(
        problem="sharing",
        optimiser=plan.optimiser,
        cost=plan.cost,
        nodes=[
            NodeData(node=i, capacity=n.capacity, cost=float(n.cost), trees=[_tree_data(t) for t in n.trees])
            for i, n in enumerate(plan.nodes)
        ],
        node_costs=[float(node.cost) for node in plan.nodes],
        total_cost=plan.total_cost,
        max_cost=plan.max_cost,
        max_load=plan.max_load,
        unshared_cost=plan.unshared_cost,
        lower_bound=plan.lower_bound,
        lower_bound_max=plan.lower_bound_max,
        seconds=plan.seconds,
        compile_seconds=plan.compile_seconds,
    )
    if front:
        answer["front"] = _front_data(problem, plan)
    if plan.notes:
        answer["notes"] = dict(plan.notes)
    return answer


def _tree_data(tree: TreeReport) -> TreeData:
    data = TreeData(
        queries=list(tree.queries),
        edge_rate=fraction_text(tree.edge_rate),
        edge_rate_float=float(tree.edge_rate),
        exact=tree.exact,
        overlap=float(tree.overlap),
        overlap_exact=fraction_text(tree.overlap),
        cost=tree.cost,
    )
    if not tree.exact:
        data["edge_rate_low"] = fraction_text(tree.edge_rate_low)
    return data


def _front_data(problem: SharingProblem, plan: SharingPlan) -> list[FrontData]:
    ids = [query.id for query in problem.queries]
    return [
        FrontData(
            total_cost=point.total_cost,
            max_cost=point.max_cost,
            nodes=[[[ids[q] for q in tree] for tree in trees] for trees in point.assignment],
        )
        for point in plan.front
    ]


def fraction_text(value: Fraction) -> str:
    """Always "a/b". Through Decimal, since str() refuses the thousands of digits that a product of many
    slides can have."""
    return f"{Decimal(value.numerator):f}/{Decimal(value.denominator):f}"
