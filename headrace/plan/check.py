"""What must hold of a plan after a rewrite, whatever the rule was.

The constructors already refuse wrong nodes, but a rule may give a right plan of something else: other
columns, another order, another type. The driver calls `check_plan` after every rule, so the culprit has a
name in the error and nobody has to search for it in a wrong answer.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.errors import InternalError
from headrace.plan.logical import LogicalPlan, nodes
from headrace.plan.types import Schema


def check_plan(after: LogicalPlan, *, schema: Schema, blame: str) -> None:
    """Raises InternalError naming the rule `blame` unless `after` is sound and gives exactly `schema`."""
    if after.schema != schema:
        raise InternalError(
            f"rule {blame} changed the columns of a plan",
            detail=f"before: {schema}\nafter:  {after.schema}",
        )
    for node in nodes(after):
        _check_node(node, blame)


def _check_node(node: LogicalPlan, blame: str) -> None:
    """Builds the node anew from its own fields: the constructor checks it, and what it derives must agree."""
    kind = type(node).__name__
    try:
        fresh = replace(node)
    except InternalError as wrong:
        raise InternalError(f"rule {blame} made a wrong {kind}", detail=wrong.message) from wrong
    same = (
        fresh.schema == node.schema
        and fresh.shape is node.shape
        and fresh.times == node.times
        and fresh.window == node.window
        and fresh.bounds == node.bounds
    )
    if not same:
        raise InternalError(f"rule {blame} made a {kind} that contradicts its inputs", detail=repr(node))
