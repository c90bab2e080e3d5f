"""Random and round robin (section 5): no cost is looked at.

G_: every query is a tree of its own. W_: all queries of a node are one tree. WG_: "choose (in random or
round robin fashion) whether to add this ACQ as a separate tree, or to weave it with one of the available
trees": random tosses a coin, then picks a tree of the node; round robin alternates on every node, and goes
through the node's trees in turn. The first query of a node always opens a tree.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headrace.planners.sharing.instance import Instance, assignment_of
from headrace.planners.sharing.problem import Assignment, Options

Nodes = list[list[list[int]]]


def g_rand(instance: Instance, options: Options) -> Assignment:
    return assignment_of(_separate(instance, _random_nodes(instance, options)))


def g_rr(instance: Instance, options: Options) -> Assignment:
    return assignment_of(_separate(instance, _turns(instance)))


def w_rand(instance: Instance, options: Options) -> Assignment:
    return assignment_of(_one_tree(instance, _random_nodes(instance, options)))


def w_rr(instance: Instance, options: Options) -> Assignment:
    return assignment_of(_one_tree(instance, _turns(instance)))


def wg_rand(instance: Instance, options: Options) -> Assignment:
    rng = np.random.default_rng([options.seed, 1])
    nodes: Nodes = [[] for _ in range(instance.nodes)]
    for query, node in enumerate(_random_nodes(instance, options)):
        trees = nodes[node]
        if not trees or rng.random() < 0.5:
            trees.append([query])
        else:
            trees[int(rng.integers(len(trees)))].append(query)
    return assignment_of(nodes)


def wg_rr(instance: Instance, options: Options) -> Assignment:
    nodes: Nodes = [[] for _ in range(instance.nodes)]
    woven = [0] * instance.nodes
    for query, node in enumerate(_turns(instance)):
        trees = nodes[node]
        arrived = len(trees) + woven[node]
        if arrived % 2 == 0:
            trees.append([query])
        else:
            trees[woven[node] % len(trees)].append(query)
            woven[node] += 1
    return assignment_of(nodes)


def _random_nodes(instance: Instance, options: Options) -> list[int]:
    nodes = np.random.default_rng([options.seed, 0]).integers(instance.nodes, size=instance.queries)
    chosen: list[int] = nodes.tolist()
    return chosen


def _turns(instance: Instance) -> Iterator[int]:
    return (query % instance.nodes for query in range(instance.queries))


def _separate(instance: Instance, chosen: Iterator[int] | list[int]) -> Nodes:
    nodes: Nodes = [[] for _ in range(instance.nodes)]
    for query, node in enumerate(chosen):
        nodes[node].append([query])
    return nodes


def _one_tree(instance: Instance, chosen: Iterator[int] | list[int]) -> Nodes:
    nodes: Nodes = [[[]] for _ in range(instance.nodes)]
    for query, node in enumerate(chosen):
        nodes[node][0].append(query)
    return nodes
