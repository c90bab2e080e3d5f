"""The "To Nodes" category (Algorithm 2): WeaveShare, then the trees to the nodes.

The prose stops merging as soon as there are as many trees as nodes; the listing looks at the number of trees
only when no merge pays any more, and so goes on below the number of nodes: a lower total on fewer, heavier
nodes. `options.stop` chooses (prose by default). W_TN goes on at a loss until every node can have one tree;
WG_TN puts several trees on a node instead.

The paper takes it for granted that going on at a loss ends with a higher total. It can end with a lower one
(three trees of which no two pay together, and all three do); then WG_TN keeps W_TN's trees, so that it
is never above it.
"""

from __future__ import annotations

import numpy as np

from headrace.planners.sharing.grouping import grouped, to_lowest
from headrace.planners.sharing.instance import Instance, assignment_of
from headrace.planners.sharing.problem import Assignment, Options
from headrace.planners.sharing.weave import Woven, weave_share


def w_tn(instance: Instance, options: Options) -> Assignment:
    woven = weave_share(instance, at_least=_least(instance, options), down_to=instance.nodes)
    nodes = np.empty(len(woven.trees), dtype=np.int64)
    # One tree a node: the dearest to the node with the most capacity.
    dearest = np.argsort(-woven.costs(instance.rate), kind="stable")
    nodes[dearest] = np.argsort(-instance.capacity, kind="stable")[: len(dearest)]
    return assignment_of(grouped(woven.trees, nodes, instance.nodes))


def wg_tn(instance: Instance, options: Options) -> Assignment:
    woven = weave_share(instance, at_least=_least(instance, options), down_to=instance.nodes)
    total = float(woven.costs(instance.rate).sum())
    if woven.paying is not None and float(woven.paying.costs(instance.rate).sum()) <= total:
        return _assigned(instance, woven.paying)
    return _assigned(instance, woven)


def weave_share_on_one(instance: Instance, options: Options) -> Assignment:
    """WeaveShare of the single-node paper: all trees on the node with the most capacity."""
    trees = weave_share(instance).trees
    best = int(np.argmax(instance.capacity))
    return assignment_of([trees if node == best else [] for node in range(instance.nodes)])


def _least(instance: Instance, options: Options) -> int:
    return instance.nodes if options.stop == "prose" else 1


def _assigned(instance: Instance, woven: Woven) -> Assignment:
    nodes = to_lowest(woven.costs(instance.rate), instance.capacity)
    return assignment_of(grouped(woven.trees, nodes, instance.nodes))
