"""Which of two plans is better: Definition 1 of the paper.

    one is feasible (C_b <= 1)      that one
    both are                        the smaller C_u
    none is                         the smaller C_b

The definition leaves ties open. Here the other cost breaks them, then the engines, so that every search
gives the same.
"""

from __future__ import annotations

from headrace.planners.federation.problem import FEASIBLE

Rank = tuple[int, float, float]
"""Smaller is better."""


def rank(c_b: float, c_u: float, limit: float = FEASIBLE) -> Rank:
    """`limit` is 1 in the definition, here with room for rounding; inf leaves only C_u, which is what 8.4 of
    the paper calls no feasibility check."""
    return (0, c_u, c_b) if c_b <= limit else (1, c_b, c_u)
