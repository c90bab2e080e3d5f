"""Give one problem, as data, to one planner: what `headrace solve <planner> <file>` does.

A planner is an entry of PLANNERS; each reads its own form of problem and gives its own form of answer. Both
forms are public (docs/solve.md): a field may be added, none changes its meaning.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict

from headrace.errors import UserError
from headrace.ids import did_you_mean
from headrace.service.problem_file import ProblemFile, Trail, described, read_file
from headrace.service.solve_families import PROBLEM_KEYS, QUERY_KEYS, check_families, read_families

if TYPE_CHECKING:
    from headrace.planners.sharing.families import FamilyProblem
    from headrace.planners.sharing.problem import CostModel, SharingPlan, SharingProblem, TreeReport

LARGEST_TIME = 10**12
LARGEST_RATE = 1e12
LEAST_CAPACITY, LARGEST_CAPACITY = 1e-9, 1e12
MOST_NODES = 100_000
COSTS = ("paper", "true")


@dataclass(frozen=True, slots=True)
class Request:
    """How to solve. None: the planner's own default."""

    optimiser: str | None = None
    seed: int | None = None
    balance: float | None = None
    seconds: float | None = None
    preprocess: bool | None = None
    stop: Literal["prose", "listing"] | None = None
    insert: Literal["prose", "plan", "literal"] | None = None
    start: Literal["random", "first"] | None = None
    front: bool = False
    """Give the whole front of plans, not only the one chosen."""


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
    problem: str
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


Answer = SharingAnswer


@dataclass(frozen=True, slots=True)
class Planner:
    about: str
    optimisers: Callable[[], Mapping[str, str]]
    """Name and one line of each; the first is the default."""
    solve: Callable[[ProblemFile, Request], Answer]


def planner_named(name: str) -> Planner:
    found = {known.lower(): planner for known, planner in PLANNERS.items()}.get(name.lower())
    if found is None:
        raise UserError(f'planner "{name}" does not exist', hint=did_you_mean(name, PLANNERS, "planners"))
    return found


def list_optimisers(planner: str) -> dict[str, str]:
    return dict(planner_named(planner).optimisers())


def solve_file(planner: str, path: str, request: Request) -> Answer:
    """The answer to the problem in a file (`-`: standard input). Raises UserError for all that is wrong."""
    chosen = planner_named(planner)
    _check_request(request)
    return chosen.solve(read_file(path), request)


def optimiser_named(name: str | None, known: Mapping[str, str]) -> str:
    """The optimiser of that name, in any case; the first of them, which is ours, when none is named."""
    if name is None or name.lower() == "ours":
        return next(iter(known))
    found = next((n for n in known if n.lower() == name.lower()), None)
    if found is None:
        hint = did_you_mean(name, known, "optimisers")
        raise UserError(f'optimiser "{name}" does not exist', hint=hint)
    return found


def _check_request(request: Request) -> None:
    """The comparisons are written so that NaN fails them."""
    if request.balance is not None and not 0 <= request.balance <= 100:
        raise UserError(f"the balance must be from 0 to 100, not {request.balance:g}")
    if request.seconds is not None and not 0 < request.seconds < float("inf"):
        raise UserError(f"the seconds must be a number above 0, not {request.seconds:g}")


def check_out(path: Path) -> None:
    """Raises UserError, before any search, where the answer could not be written."""
    if path.exists() and not path.is_file():
        reason = "it is a folder" if path.is_dir() else "it is not a regular file"
        raise UserError(f"cannot write {path}: {reason}", hint="Give the name of a file.")
    if not path.parent.is_dir():
        hint = "Give a file in a folder that exists."
        raise UserError(f"cannot write {path}: there is no such folder", hint=hint)


def write_answer(path: Path, answer: Answer) -> None:
    """The answer as JSON. It is renamed into place, so that nobody ever reads half of it."""
    target = path.resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(answer, indent=2, allow_nan=False) + "\n", encoding="utf-8")
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _sharing_optimisers() -> Mapping[str, str]:
    from headrace.planners.sharing.solve import DEFAULT_OPTIMISER, OPTIMISERS

    return {DEFAULT_OPTIMISER: OPTIMISERS[DEFAULT_OPTIMISER], **OPTIMISERS}


def _solve_sharing(file: ProblemFile, request: Request) -> SharingAnswer:
    body = file.body()
    problem = _sharing(file, body)
    assert isinstance(body, dict)
    families = read_families(file, body, problem)
    optimiser = optimiser_named(request.optimiser, _sharing_optimisers())
    if families is not None:
        check_families(optimiser, next(iter(_sharing_optimisers())), front=request.front)
        return _solve_families(problem, families)
    # Imported late: the kernels take a second to load, and a wrong file needs none of them.
    from headrace.planners.sharing.problem import Options
    from headrace.planners.sharing.solve import solve

    names = {field.name for field in fields(Options)}
    given = {f.name: getattr(request, f.name) for f in fields(request) if f.name in names}
    options = Options(**{name: value for name, value in given.items() if value is not None})
    plan = solve(problem, optimiser, options, clock=time.perf_counter, front=request.front)
    return sharing_answer(problem, plan, front=request.front)


def _solve_families(problem: SharingProblem, families: FamilyProblem) -> SharingAnswer:
    from headrace.planners.sharing.families import solve_families

    found = solve_families(families, clock=time.perf_counter)
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
    for number, item in enumerate(_list(file, body["queries"], ("queries",), "query")):
        trail = ("queries", number)
        query = file.mapping(item, trail, ("range", "slide"), ("id", *QUERY_KEYS))
        name = _id(file, query.get("id", f"q{number + 1}"), (*trail, "id"))
        length = file.whole(query["range"], (*trail, "range"), LARGEST_TIME)
        slide = file.whole(query["slide"], (*trail, "slide"), LARGEST_TIME)
        queries.append(WindowQuery(name, length, slide))
    _check_ids(file, [query.id for query in queries], body["queries"])
    return SharingProblem(rate, capacities, tuple(queries), _cost(file, body.get("cost", "paper")))


def _capacities(file: ProblemFile, value: object) -> tuple[float, ...]:
    if not isinstance(value, list):
        if type(value) is not int:
            message = f"nodes must be a whole number or a list of capacities, not {described(value)}"
            raise file.wrong(("nodes",), message)
        return (1.0,) * file.whole(value, ("nodes",), MOST_NODES)
    items = _list(file, value, ("nodes",), "capacity")
    if len(items) > MOST_NODES:
        raise file.wrong(("nodes",), f"nodes must be at most {MOST_NODES}, not {len(items)}")
    return tuple(
        file.number(item, ("nodes", number), LEAST_CAPACITY, LARGEST_CAPACITY)
        for number, item in enumerate(items)
    )


def _list(file: ProblemFile, value: object, trail: Trail, one: str) -> list[object]:
    if not isinstance(value, list):
        raise file.wrong(trail, f"{trail[0]} must be a list [...], not {described(value)}")
    if not value:
        raise file.wrong(trail, f"{trail[0]} is empty", f"Give at least one {one}.")
    return value


def _id(file: ProblemFile, value: object, trail: Trail) -> str:
    if not isinstance(value, str) or not value:
        what = "an empty text" if value == "" else described(value)
        raise file.wrong(trail, f"the id of a query must be a text, not {what}")
    return value


def _check_ids(file: ProblemFile, ids: list[str], items: object) -> None:
    if len(set(ids)) == len(ids):
        return
    assert isinstance(items, list)
    first: dict[str, int] = {}
    for number, name in enumerate(ids):
        if name in first:
            trail: Trail = ("queries", number)
            trail = (*trail, "id") if "id" in items[number] else trail
            hint = f"queries[{first[name]}] has it too; a query without an id gets q and its number."
            raise file.wrong(trail, f'two queries have the id "{name}"', hint)
        first[name] = number


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


PLANNERS: Mapping[str, Planner] = {
    "sharing": Planner(
        "which window queries share a tree, and on which node", _sharing_optimisers, _solve_sharing
    ),
}
