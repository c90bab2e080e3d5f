"""The paper's decomposition of large plans: sub-plans of a moderate size, solved one after another in post
order.

Each piece is solved as if it were the whole query, and of its partial plans only the best remains for what
is above it. Parts still grow across the border of two pieces where both sides of it are on one engine. The
outcome is a valid split, and not always the best one: a piece cannot know that a worse start would have
paid later.
"""

from __future__ import annotations

from headrace.planners.federation.problem import Plan


def piece_roots(plan: Plan, most: int) -> frozenset[int]:
    """The last operators of all pieces but the top one. Walking up, where a sub-tree gets larger than
    `most` operators the largest of what is below its root is cut off, and the next, until it fits."""
    roots: set[int] = set()
    size: list[int] = []
    for operator in plan.operators:
        below = [plan.position[name] for name in operator.inputs if name in plan.position]
        below.sort(key=lambda j: size[j])
        while 1 + sum(size[j] for j in below) > most and below:
            roots.add(below.pop())
        size.append(1 + sum(size[j] for j in below))
    return frozenset(roots)
