"""The "To Lowest" category (Algorithm 1): dearest query first, each to the node with the lowest cost.

G_TL adds it as a tree. W_TL weaves it into the node's one tree. WG_TL weaves it into the node's cheapest
tree or adds it as a tree, whichever raises the node's cost less (a tie weaves, as the listing's comparison
does).
"""

from __future__ import annotations

import numpy as np

from headrace.planners.sharing.grouping import TIE, dearest_first, first_least, grouped, to_lowest
from headrace.planners.sharing.instance import Instance, Tree, assignment_of, own_tree, woven
from headrace.planners.sharing.problem import Assignment, Options


def g_tl(instance: Instance, options: Options) -> Assignment:
    nodes = to_lowest(instance.own_costs(), instance.capacity)
    return assignment_of(grouped([[q] for q in range(instance.queries)], nodes, instance.nodes))


def w_tl(instance: Instance, options: Options) -> Assignment:
    nodes: list[list[Tree]] = [[] for _ in range(instance.nodes)]
    cost = np.zeros(instance.nodes)
    for query in _dearest_first(instance):
        node = first_least(cost / instance.capacity, instance.rate)
        tree = own_tree(instance, query)
        nodes[node] = [woven(instance, nodes[node][0], tree)] if nodes[node] else [tree]
        cost[node] = instance.rate + nodes[node][0].final()
    return assignment_of([[tree.queries for tree in trees] for trees in nodes])


def wg_tl(instance: Instance, options: Options) -> Assignment:
    nodes: list[list[Tree]] = [[] for _ in range(instance.nodes)]
    cost = np.zeros(instance.nodes)
    for query in _dearest_first(instance):
        node = first_least(cost / instance.capacity, instance.rate)
        cost[node] += _cheaper(instance, nodes[node], own_tree(instance, query))
    return assignment_of([[tree.queries for tree in trees] for trees in nodes])


def _cheaper(instance: Instance, trees: list[Tree], tree: Tree) -> float:
    """Weave or group in place; the rise of the node's cost."""
    apart = instance.rate + tree.final()
    if not trees:
        trees.append(tree)
        return apart
    place = first_least(np.array([tree.final() for tree in trees]), instance.rate)
    both = woven(instance, trees[place], tree)
    rise = both.final() - trees[place].final()
    if apart < rise - TIE * instance.rate:
        trees.append(tree)
        return apart
    trees[place] = both
    return rise


def _dearest_first(instance: Instance) -> list[int]:
    return dearest_first(instance.own_costs())
