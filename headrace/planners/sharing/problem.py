"""The sharing problem as data: window queries over one stream, a rate, nodes.

A query opens a window at every multiple of `slide`, and each window is `range` long. Its edges are the
instants where a window opens (residue 0 of the slide) or closes (residue range mod slide, the paper's g1). A
tree is a set of queries that share one pass over the stream and one set of fragments; a node runs any number
of trees.

Symbols of the paper: lambda = `rate`, E = edge rate of a tree, Omega = overlap of a tree = sum of range /
slide. All times are integers in one unit, and rates are per that unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

CostModel = Literal["paper", "true"]
"""paper: lambda + E * Omega per tree. true: the real number of final operations instead of E * Omega (the
two are equal when every range is a multiple of its slide)."""

Trees = tuple[tuple[int, ...], ...]
"""The trees of one node; a tree is the positions of its queries in `SharingProblem.queries`, ascending."""

Assignment = tuple[Trees, ...]
"""The trees of every node, in the order of the nodes. Every query is in exactly one tree of one node."""


@dataclass(frozen=True, slots=True)
class WindowQuery:
    id: str
    range: int
    slide: int

    @property
    def offset(self) -> int:
        """g1: where, after a multiple of the slide, a window closes."""
        return self.range % self.slide

    @property
    def overlap(self) -> Fraction:
        return Fraction(self.range, self.slide)


@dataclass(frozen=True)
class SharingProblem:
    rate: float
    capacities: tuple[float, ...]
    """One entry a node. A node's load is its cost divided by its capacity."""
    queries: tuple[WindowQuery, ...]
    cost: CostModel = "paper"

    @property
    def nodes(self) -> int:
        return len(self.capacities)

    @cached_property
    def uniform(self) -> bool:
        return len(set(self.capacities)) <= 1


@dataclass(frozen=True, slots=True)
class Options:
    """How to search. An optimiser ignores what does not concern it."""

    seed: int = 0
    preprocess: bool = False
    """Merge queries with the same slide (and offset) before the search, as the paper's note suggests."""
    stop: Literal["prose", "listing"] = "prose"
    """W_TN, WG_TN. prose: stop merging at as many trees as nodes. listing: go on while a merge pays."""
    insert: Literal["prose", "plan", "literal"] = "prose"
    """W_I, WG_I. prose: the tree that leaves its node cheapest. plan: the tree that raises the plan's cost
    least. literal: Algorithm 3 as printed, where a plan's cost is compared with a node's."""
    start: Literal["random", "first"] = "random"
    """W_I, WG_I: which queries open the nodes."""
    balance: float | None = None
    """Ours. A number b asks for the least total * maximum^b: 0 is the lowest total, 1 weighs both alike,
    more leans to the maximum. None: the lowest maximum that costs no more total than WG_TN's plan."""
    seconds: float | None = None
    """Ours: stop searching after this time. None: a default that grows with the problem."""


@dataclass(frozen=True, slots=True)
class TreeReport:
    queries: tuple[str, ...]
    edge_rate: Fraction
    """The exact rate; where exactness is out of reach, the upper bound, and `edge_rate_low` is below it."""
    edge_rate_low: Fraction
    overlap: Fraction
    cost: float

    @property
    def exact(self) -> bool:
        return self.edge_rate == self.edge_rate_low


@dataclass(frozen=True, slots=True)
class NodeReport:
    capacity: float
    cost: float
    trees: tuple[TreeReport, ...]


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """One plan that no other found plan beats on both the total and the largest load."""

    total_cost: float
    max_cost: float
    """The largest node cost."""
    assignment: Assignment
    max_load: float = 0.0
    """The largest cost / capacity, which the front is about; equal to max_cost when every capacity is 1."""


@dataclass(frozen=True)
class SharingPlan:
    """An answer. All costs are recomputed exactly from the assignment, by code no optimiser shares."""

    optimiser: str
    cost: CostModel
    nodes: tuple[NodeReport, ...]
    assignment: Assignment
    total_cost: float
    max_cost: float
    """The largest node cost."""
    max_load: float
    """The largest cost / capacity; equal to max_cost when every capacity is 1."""
    unshared_cost: float
    """What the same queries cost with a tree each: the saving is against this."""
    lower_bound: float
    """No plan of these queries has a lower total."""
    lower_bound_max: float
    """No plan of these queries on these nodes has a lower maximum."""
    seconds: float
    """The search alone: no parsing, no compiling, no exact recomputation."""
    compile_seconds: float
    """Compiling or loading the kernels, once a process."""
    front: tuple[FrontPoint, ...] = ()
    notes: Mapping[str, str] | None = None
