"""How much a derived stream carries, by the estimates that joins are placed by (placing_problem.py).

Rows of joined streams are those of the placement problem of that one join: exact for two streams, for three
alike ones, and too low beyond. Each has the columns that travel, and no others. Conditions above the topmost
join, which is where several readers' wishes are put together, let their share pass.
"""

from __future__ import annotations

from headrace.catalog.model import Project as Catalog
from headrace.plan.channels import ChannelPlan
from headrace.plan.expr import Expr, conjuncts, substitute
from headrace.plan.logical import Filter, IntervalJoin, LogicalPlan, nodes, streams_of
from headrace.planners.placement.rates import data_rate, wanted
from headrace.service.estimates import GUESS, Distinct, expected_rate, share
from headrace.service.placing_names import name_all
from headrace.service.placing_part import JoinPart, join_part, leaf_and_column, leaves_of
from headrace.service.placing_problem import distinct_in, placeable, rows_of, scan_of, width_of


def rows_per_second(catalog: Catalog, plan: LogicalPlan) -> float:
    """Of rows of streams, filtered and joined; `plan` is over base streams."""
    if not any(isinstance(node, IntervalJoin) for node in nodes(plan)):
        return rows_of(catalog, plan)
    part = join_part(plan)
    if isinstance(part, str):
        return min(expected_rate(catalog.streams[name]) for name in streams_of(plan))
    return _joined(catalog, part) * _passing(catalog, plan, part)


def bytes_per_second(catalog: Catalog, plan: LogicalPlan) -> float:
    return rows_per_second(catalog, plan) * width_of(plan.schema)


def rows_of_streams(catalog: Catalog, channels: ChannelPlan) -> dict[str, float]:
    """Rows per second of every stream that jobs read, derived ones by their ids."""
    found = {name: expected_rate(stream) for name, stream in catalog.streams.items()}
    return found | {stream.id: rows_per_second(catalog, stream.plan) for stream in channels.streams}


def _joined(catalog: Catalog, part: JoinPart) -> float:
    home = catalog.streams[scan_of(part.leaves[0]).stream].site
    found = placeable(catalog, name_all({"": (home, part)}))
    (query,) = found.problem.queries
    data = data_rate(found.problem, wanted(found.problem, query), query.streams) * found.scale
    return data / sum(width_of(leaf.schema) for leaf in part.leaves)


def _passing(catalog: Catalog, plan: LogicalPlan, part: JoinPart) -> float:
    """The share of the joined rows that meets the conditions above the joins. A reader that wants less than
    the others says all that it wants there, so what the leaves let pass is in these conditions once more."""
    above, distinct = _above(plan, part), _distinct(catalog, part)
    leaves = {int(leaf) for one in above for leaf in leaves_of(one)}
    below = share((one for leaf in leaves for one in part.conditions(leaf)), distinct)
    return min(1.0, share(above, distinct) / below) if below else 1.0


def _above(plan: LogicalPlan, part: JoinPart) -> list[Expr]:
    """The conditions on what the joins give, over the columns of the leaves."""
    found: list[Expr] = []
    while plan is not part.node:
        if isinstance(plan, Filter):
            found += [substitute(one, dict(part.items)) for one in conjuncts(plan.predicate)]
        (plan,) = plan.inputs
    return found


def _distinct(catalog: Catalog, part: JoinPart) -> Distinct:
    known = [distinct_in(catalog, leaf) for leaf in part.leaves]

    def distinct(column: str) -> float:
        leaf, own = leaf_and_column(column)
        return known[int(leaf)](own) if leaf.isdigit() else GUESS

    return distinct
