"""A join order chosen without looking at the network: the least data in intermediate results.

The first phase of all "plan, then deploy" planners. The rate of a joined set does not depend on its order, so
the best order of a set is the best of its two parts: a dynamic programme over subsets, O(3^K).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.planners.placement.problem import Floats


@dataclass(frozen=True, slots=True)
class Order:
    """A join tree without sites. `mask`: its streams, bit i is the query's stream i."""

    mask: int
    left: Order | None = None
    right: Order | None = None

    @property
    def parts(self) -> tuple[Order, ...]:
        return (self.left, self.right) if self.left is not None and self.right is not None else ()

    def joins(self) -> Iterator[Order]:
        """Inputs before the join that reads them."""
        for part in self.parts:
            yield from part.joins()
        if self.parts:
            yield self


def smallest_intermediates(rates: Floats) -> tuple[Order, int]:
    """The order with the least sum of the rates of its intermediate results, and how many splits were
    compared. `rates` as `rates.by_subset` gives them. Of equal orders the first in a fixed enumeration."""
    full, examined = len(rates) - 1, 0
    weights = rates.tolist()
    spent = [0.0] * len(rates)
    """What the intermediate results of a set cost, its own result included unless it is a base stream."""
    chosen: dict[int, int] = {}
    for mask in range(1, len(rates)):
        if mask & (mask - 1) == 0:
            continue
        best = float("inf")
        for part in _parts(mask):
            examined += 1
            value = spent[part] + spent[mask ^ part]
            if value < best or mask not in chosen:
                best, chosen[mask] = value, part
        spent[mask] = best + weights[mask]
    return _unfold(full, chosen), examined


def _parts(mask: int) -> Iterator[int]:
    """Proper parts that hold the lowest bit: each split once."""
    lowest = mask & -mask
    rest = mask ^ lowest
    part = (rest - 1) & rest
    while True:
        yield part | lowest
        if not part:
            return
        part = (part - 1) & rest


def _unfold(mask: int, chosen: dict[int, int]) -> Order:
    if mask not in chosen:
        return Order(mask)
    part = chosen[mask]
    return Order(mask, _unfold(part, chosen), _unfold(mask ^ part, chosen))
