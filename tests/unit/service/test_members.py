"""Members answer what their queries do, read from the rows of their tree and its conditions for them."""

from __future__ import annotations

import pytest

from headrace.plan.expr import conjunction
from headrace.plan.logical import Filter, LogicalPlan
from headrace.plan.placed import TreeJob, TreeMember
from headrace.rewrite.tree import bottom_up
from headrace.service.binding import bind
from headrace.service.members import member_of
from headrace.service.weaving import place
from tests.unit.rewrite.test_example import PROJECT, answer

PLACED = place(PROJECT, list(PROJECT.queries))
MEMBERS = {member.query: (tree, member) for tree in PLACED.trees for member in tree.members}
# Evaluating takes a while: one of each kind of difference, and the two that join tables.
CHECKED = (
    "plug_on_share_5m",
    "plug_silent_1m",
    "plug_work_5m",
    "household_heavy_1m",
    "household_top_plug_5m",
    "house_spread_1m",
    "house_count_5m",
    "all_load_1m",
    "room_load_1m",
    "house_cost_5m",
)


def through_the_tree(tree: TreeJob, member: TreeMember) -> LogicalPlan:
    """The member's plan over the tree's rows, filtered by what the tree says the member adds."""
    where = tree.shape.where(member)
    assert where is not None
    rows = Filter(tree.shape.rows, conjunction(where)) if where else tree.shape.rows
    return bottom_up(member.plan, lambda node: rows if node == member.window.input else node)


@pytest.mark.parametrize("query", CHECKED)
def test_a_tree_has_the_rows_of_its_members(query: str) -> None:
    before = answer(bind(PROJECT, PROJECT.queries[query]))
    after = answer(through_the_tree(*MEMBERS[query]))
    assert len(before) == len(after) > 0
    for mine, theirs in zip(before, after, strict=True):
        for left, right in zip(mine, theirs, strict=True):
            assert left == (pytest.approx(right, rel=1e-9) if isinstance(right, float) else right)


def test_a_member_does_not_depend_on_who_else_there_is() -> None:
    """A result folder belongs to the member's fingerprint: it must not change with the tree."""
    for query, (_, member) in MEMBERS.items():
        alone = member_of(PROJECT, PROJECT.queries[query])
        assert isinstance(alone, TreeMember)
        assert alone.fingerprint == member.fingerprint
