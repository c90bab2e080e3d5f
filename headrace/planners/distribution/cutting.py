"""Cut plans into pieces none of which is heavier than a limit, with the fewest cuts.

For a tree that is exact (Kundu and Misra 1977): from the leaves up, at each operator the heaviest pieces
below are cut off until what is left is within the limit. Where operators are shared, each is taken to hang
below the reader that takes it first, and the pieces are still pieces, only the cuts may not be the fewest.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.planners.distribution.problem import Problem


def pieces_within(problem: Problem, weights: Sequence[float], limit: float) -> list[list[str]]:
    """Connected pieces, each within the limit where its single operators are. `weights` are in the order of
    `problem.operators`."""
    weight = dict(zip((one.id for one in problem.operators), weights, strict=True))
    open_: dict[str, tuple[float, list[str]]] = {}
    done: list[list[str]] = []
    taken: set[str] = set()
    for name in problem.order:
        below = [n for n in dict.fromkeys(problem.operator[name].inputs) if n in open_ and n not in taken]
        taken.update(below)
        parts = sorted((open_.pop(n) for n in below), key=lambda part: part[0])
        total, members = weight[name], [name]
        for heavy, part in parts:
            # Lightest first is the same as cutting off the heaviest.
            if total + heavy <= limit:
                total += heavy
                members += part
            else:
                done.append(part)
        open_[name] = (total, members)
    return done + [part for _, part in open_.values()]


def lightest_limit(problem: Problem, weights: Sequence[float], most: int) -> list[list[str]]:
    """At most `most` pieces, the heaviest as light as can be. The limit is searched by halving, to a
    millionth."""
    low, high = max(weights, default=0.0), sum(weights)
    best = pieces_within(problem, weights, high * (1 + 1e-12))
    if len(pieces_within(problem, weights, low)) <= most:
        return pieces_within(problem, weights, low)
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break  # Next to each other: weights may be as small as numbers get.
        found = pieces_within(problem, weights, middle)
        if len(found) <= most:
            best, high = found, middle
        else:
            low = middle
    return best
