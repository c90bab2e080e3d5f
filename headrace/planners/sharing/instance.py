"""A sharing problem made ready for a search: its queries as numbers, grouped into classes with equal edges.

Two queries are of one class when their edges are the same: slide and offset are equal, or one has the slide
that is half of the other's, whose offset is that half. Weaving them costs nothing and saves one pass over
the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from headrace.planners.sharing.atoms import Event
from headrace.planners.sharing.problem import Assignment, SharingProblem
from headrace.planners.sharing.rates import Floats, Ints, Rates, Rows, rates_of


@dataclass(frozen=True)
class Instance:
    rate: float
    capacity: Floats
    klass: Ints
    """The class of every query."""
    omega: Floats
    """The overlap of every query."""
    events: tuple[tuple[Event, ...], ...]
    """The edges of every class."""
    rates: Rates
    single: Floats
    """The edge rate of every class alone."""

    @property
    def nodes(self) -> int:
        return len(self.capacity)

    @property
    def queries(self) -> int:
        return len(self.klass)

    @property
    def classes(self) -> int:
        return len(self.events)

    @property
    def rows(self) -> Rows:
        return self.rates.rows

    def members(self) -> list[list[int]]:
        """The queries of every class, ascending."""
        order = np.argsort(self.klass, kind="stable")
        cuts = np.cumsum(np.bincount(self.klass, minlength=self.classes))[:-1]
        return [part.tolist() for part in np.split(order, cuts)]

    def own_costs(self) -> Floats:
        """What every query costs in a tree of its own."""
        costs: Floats = self.rate + self.single[self.klass] * self.omega
        return costs


def instance_of(problem: SharingProblem) -> Instance:
    count = len(problem.queries)
    ranges = np.fromiter((q.range for q in problem.queries), dtype=np.int64, count=count)
    slides = np.fromiter((q.slide for q in problem.queries), dtype=np.int64, count=count)
    klass, windows = _classes(*_plain(slides, ranges % slides))
    events = tuple(edges_of(slide, offset) for slide, offset in windows)
    rates = rates_of(events)
    capacity = np.array(problem.capacities, dtype=np.float64)
    return Instance(
        float(problem.rate), capacity, klass, ranges / slides, events, rates, rates.of(rates.rows)
    )


def _plain(slides: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    """Edges at 0 and the half of a slide are the edges of half the slide: one way to say it."""
    half = offsets * 2 == slides
    return np.where(half, offsets, slides), np.where(half, 0, offsets)


def _classes(slides: Ints, offsets: Ints) -> tuple[Ints, list[tuple[int, int]]]:
    """The class of every query, numbered in the order of their first queries, and their (slide, offset)."""
    order = np.lexsort((offsets, slides))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (np.diff(slides[order]) != 0) | (np.diff(offsets[order]) != 0)
    first = np.minimum.reduceat(order, np.flatnonzero(new))
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    klass = np.empty(len(order), dtype=np.int64)
    klass[order] = rank[np.cumsum(new) - 1]
    chosen = np.sort(first)
    return klass, list(zip(slides[chosen].tolist(), offsets[chosen].tolist(), strict=True))


def edges_of(slide: int, offset: int) -> tuple[Event, ...]:
    return ((0, slide), (offset, slide)) if offset else ((0, slide),)


@dataclass
class Tree:
    """A tree while it grows."""

    queries: list[int]
    row: Rows
    edge_rate: float
    overlap: float

    def final(self) -> float:
        """E * Omega: the cost of the final aggregation."""
        return self.edge_rate * self.overlap


def own_tree(instance: Instance, query: int) -> Tree:
    c = instance.klass[query]
    return Tree([query], instance.rows[c].copy(), float(instance.single[c]), float(instance.omega[query]))


def woven(instance: Instance, first: Tree, second: Tree) -> Tree:
    row = first.row | second.row
    rate = float(instance.rates.of(row)[0])
    return Tree(first.queries + second.queries, row, rate, first.overlap + second.overlap)


def assignment_of(nodes: Iterable[Sequence[Sequence[int]]]) -> Assignment:
    """Trees in a fixed order, queries ascending: equal plans compare equal."""
    return tuple(tuple(sorted(tuple(sorted(tree)) for tree in trees if tree)) for trees in nodes)
