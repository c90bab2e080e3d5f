"""What paper 001 proves about its planners, as numbers to compare (Lemma 1, equation 1, Theorems 1 to 4).

Symbols of the paper: K = streams of a query, N = sites, h = levels of the hierarchy, d_i = the greatest
traversal cost within a cluster of level i, s_k = the data rate of edge k.

Theorem 3 as it is printed does not hold (`printed_bound`): it says how much dearer a deployment gets between
its estimate and its sites, and forgets that the best deployment was estimated too, and may have looked dearer
than it is, by as much as its own edges allow. `bound` adds that, and counts the edges of the tree chosen at
each level where the tree was still an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from headrace.planners.placement.hierarchy import Hierarchy
from headrace.planners.placement.problem import Floats, Join, PlacementProblem, Query, Tree, streams_of, walk
from headrace.planners.placement.rates import data_rate, wanted
from headrace.planners.placement.views import plans_of


def exhaustive_plans(sources: int, sites: int) -> int:
    """Lemma 1: join orders times placements, over all sites."""
    return plans_of(sources, sites)


def beta(hierarchy: Hierarchy, sources: int) -> float:
    """Equation 1."""
    return float(hierarchy.height * (hierarchy.max_cs / len(hierarchy.sites)) ** (sources - 1))


def most_plans(hierarchy: Hierarchy, sources: int) -> int:
    """Theorems 2 and 4, before rounding: Top-Down and Bottom-Up compare no more than beta times Lemma 1."""
    return hierarchy.height * plans_of(sources, hierarchy.max_cs)


def lift(hierarchy: Hierarchy, level: int) -> float:
    """Theorem 1: how much more a path may cost than its estimate at a level; also how much less, by the same
    argument. sum over i < level of 2 d_i."""
    return 2 * sum(hierarchy.spreads[: level - 1])


def estimate_slack(hierarchy: Hierarchy) -> float:
    """Theorem 1 for all pairs of sites and all levels above the first, in both directions: the least that it
    leaves over; below 0 it would not hold. Takes a matrix of all sites. inf: it says nothing, since there is
    one level only, or a cluster whose members have no path between them."""
    if hierarchy.height == 1 or not np.isfinite(lift(hierarchy, hierarchy.height)):
        return np.inf
    sites = hierarchy.sites
    actual = hierarchy.prepared.between(sites, sites)
    slacks = [
        lift(hierarchy, level) - np.abs(actual - _estimates(hierarchy, level)).max()
        for level in range(2, hierarchy.height + 1)
    ]
    return float(min(slacks))


def _estimates(hierarchy: Hierarchy, level: int) -> Floats:
    known = [hierarchy.representative(site, level) for site in hierarchy.sites]
    return hierarchy.prepared.between(known, known)


@dataclass(frozen=True, slots=True)
class Suboptimality:
    """Theorem 3 for one deployment."""

    above: float
    """What it costs above the best."""
    printed_bound: float
    bound: float


def suboptimality(
    hierarchy: Hierarchy,
    problem: PlacementProblem,
    query: Query,
    chosen: tuple[Tree, float],
    flows: Mapping[int, float],
    best: tuple[Tree, float],
) -> Suboptimality:
    """A deployment by Top-Down and the best one, each with its cost. `flows`: the total rate of the edges of
    the trees chosen at each level."""
    (tree, cost), (best_tree, least) = chosen, best
    whole = lift(hierarchy, hierarchy.height)
    # Handed down from level i + 1 to i, each end of an edge moves within one cluster, so by d_i at most, and
    # all joins of a view at one allowed member is among the plans that level i compares.
    handed = sum(2 * d * flows.get(i + 1, 0.0) for i, d in enumerate(hierarchy.spreads[:-1], start=1))
    return Suboptimality(
        cost - least,
        whole * flow(problem, query, tree),
        whole * flow(problem, query, best_tree) + handed,
    )


def flow(problem: PlacementProblem, query: Query, tree: Tree) -> float:
    """The sum of the rates on all edges of a tree, that to the sink included."""
    holding = wanted(problem, query)
    ends = [tree] + [end for node in walk(tree) if isinstance(node, Join) for end in (node.left, node.right)]
    return sum(data_rate(problem, holding, streams_of(end)) for end in ends)
