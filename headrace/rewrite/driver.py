"""Applies the rules until none changes anything. The driver, not the rule, checks that nothing was broken.

Every rule gives a plan with the same answer, so stopping anywhere is right; running to the fixpoint makes
plans that can be made equal equal in text. Each rule moves things one way only (filters down, projections
up, columns out), so a fixpoint exists; a plan that is still changing after one round per node and then
some is a bug.
"""

from __future__ import annotations

from collections.abc import Callable

from headrace.errors import InternalError
from headrace.plan.check import check_plan
from headrace.plan.logical import LogicalPlan, nodes
from headrace.rewrite.drop_unused_columns import drop_unused_columns
from headrace.rewrite.merge_projections import merge_projections
from headrace.rewrite.normalise_windows import normalise_windows
from headrace.rewrite.push_filters import push_filters

Rule = Callable[[LogicalPlan], LogicalPlan]

# Filters go down first: what stays between a Window and a join would hide one from the other.
# Windows are normalised before projections merge, because that is what puts projections next to each other.
# Columns go last: only then is it known who still reads them.
RULES: tuple[Rule, ...] = (push_filters, normalise_windows, merge_projections, drop_unused_columns)

_SPARE_ROUNDS = 8


def rewrite(plan: LogicalPlan, rules: tuple[Rule, ...] = RULES) -> LogicalPlan:
    """The plan's normal form under the rules. Raises InternalError naming the rule that broke it."""
    changed: list[str] = []
    for _ in range(sum(1 for _ in nodes(plan)) + _SPARE_ROUNDS):
        plan, changed = _round(plan, rules)
        if not changed:
            return plan
    raise InternalError(f"the rewrite does not come to rest: {', '.join(changed)} still change the plan")


def _round(plan: LogicalPlan, rules: tuple[Rule, ...]) -> tuple[LogicalPlan, list[str]]:
    """Each rule once, in order; and the names of those that changed something."""
    changed = []
    for rule in rules:
        after = rule(plan)
        check_plan(after, schema=plan.schema, blame=rule.__name__)
        if after != plan:
            changed.append(rule.__name__)
        plan = after
    return plan, changed
