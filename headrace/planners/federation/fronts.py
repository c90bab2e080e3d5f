"""Partial plans that no other beats in every way that can still matter.

Why dropping the others is safe. Let a partial plan be rooted on DuckDB at some operator, with an open part
(A, H), and finished parts with largest u m and sum s. Whatever is put above it adds the same to both of two
such plans: some x to A, some y to H, parts with largest u m' and sum s', and the l of the operator that
ends the open part, which lies between that of the present operator and that of the root. With v(l) = A + l
* H the complete plan has

    C_b = max(m, m', v(l) + x + l * (y + statement) + out)        C_u = s + v(l) + what is the same for both

So a plan with v, m and s + v no larger than another's, v at both ends of the range of l (it is linear in
between), gets C_b and C_u no larger, however they are completed: with shared cores too, since C_u / cores
is in C_b. Two more steps:
- m counts only above the limit of feasibility. Below it, m decides neither whether a plan is feasible nor,
when another part makes it infeasible, how bad it is; so m is lifted to the limit, and hardly ever tells
plans apart.
- A plan that is finished (rooted on Spark) has no open part: m and s are all there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

Open = tuple[float, float, float, float, int]
"""A partial plan rooted on DuckDB: m, s, A, H, and the operators on DuckDB as bits."""
Done = tuple[float, float, int]
"""A partial plan whose parts are all finished: m, s, and the operators on DuckDB as bits."""
_Point = tuple[float, ...]


def open_front(plans: list[Open], least: float, most: float, limit: float) -> list[Open]:
    """`least` and `most`: the range of l. Of equal plans, the one with the smaller bits stays."""
    if len(plans) < 2:
        return plans
    ends = (least,) if least == most else (least, most)
    keyed = [(_point(plan, ends, limit), plan) for plan in plans]
    keyed.sort(key=lambda one: (one[0], one[1][4]))
    kept = _unbeaten([point for point, _ in keyed])
    return [keyed[i][1] for i in kept]


def _point(plan: Open, ends: tuple[float, ...], limit: float) -> _Point:
    """What must not be larger, for one plan to take the place of another."""
    m, s, a, h, _ = plan
    v = a + ends[0] * h
    first = (s + v, v, m if m > limit else limit)
    return first if len(ends) == 1 else (*first, s + a + ends[1] * h, a + ends[1] * h)


def done_front(plans: list[Done], limit: float) -> list[Done]:
    if len(plans) < 2:
        return plans
    keyed = sorted(((s, m if m > limit else limit), bits, m) for m, s, bits in plans)
    kept = _unbeaten([point for point, _, _ in keyed])
    return [(keyed[i][2], keyed[i][0][0], keyed[i][1]) for i in kept]


def _unbeaten(points: Sequence[_Point]) -> list[int]:
    """Positions of the points that no point before them, in sorted order, is nowhere above."""
    if all(point[2:] == points[0][2:] for point in points):
        return _falling(points)
    kept: list[int] = []
    front: list[_Point] = []
    for i, point in enumerate(points):
        if not any(all(map(float.__le__, other, point)) for other in front):
            kept.append(i)
            front.append(point)
    return kept


def _falling(points: Sequence[_Point]) -> list[int]:
    """The same where only two coordinates differ: the first rises, so the second must fall."""
    kept = [0]
    lowest = points[0][1]
    for i, height in enumerate(map(itemgetter(1), points)):
        if height < lowest:
            kept.append(i)
            lowest = height
    return kept
