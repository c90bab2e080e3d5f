"""Every logical plan of a small query, one by one: the oracle of phase one. It shares with it the sizes of
operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from headrace.plan.federated import Engine
from headrace.planners.federation.compare import rank
from headrace.planners.federation.problem import FEASIBLE, Kind, Operator, Plan, Query, Split
from headrace.planners.federation.recount import Recount
from headrace.planners.federation.sizes import sizes_of

Names = frozenset[str]


@dataclass(frozen=True)
class Tree:
    """What was joined, which aggregates were done, and the operators so far, inputs first."""

    relations: Names
    done: Names
    operators: tuple[Operator, ...]
    last: str


def best_order(query: Query, *, feasibility: bool = True) -> Split:
    limit = FEASIBLE if feasibility else float("inf")
    return min(every_order(query), key=lambda one: rank(one.bottleneck, one.utilisation, limit))


def every_order(query: Query) -> Iterator[Split]:
    oracle = _Oracle(query)
    for tree in oracle.trees(frozenset(relation.name for relation in query.relations)):
        if len(tree.done) < len(query.movable):
            continue
        for operator in query.top:
            tree = _on(tree, operator)
        if not tree.operators:
            continue
        plan = Plan(query.streams, query.windows, tree.operators, query.tables, cores=query.cores)
        yield Recount(plan, sizes_of(plan)).split((Engine.SPARK,) * len(plan.operators))


class _Oracle:
    def __init__(self, query: Query) -> None:
        self._query = query
        self._rows = {relation.name: self._alone(relation.name) for relation in query.relations}

    def trees(self, names: Names) -> list[Tree]:
        if len(names) == 1:
            plain = [self._relation(next(iter(names)))]
        else:
            plain = [tree for left, right in _cuts(names) for tree in self._joins(left, right)]
        found = list(plain)
        for movable in self._query.movable:
            if movable.over <= names <= movable.over | movable.beyond:
                share = min(1.0, self._size(names) / self._size(movable.over))
                operator = replace(movable.operator, groups=movable.operator.groups * share)
                found += [
                    replace(_on(tree, operator), done=tree.done | {operator.name})
                    for tree in found
                    if operator.name not in tree.done
                ]
        return [tree for tree in found if self._valid(tree)]

    def _valid(self, tree: Tree) -> bool:
        return all(
            one.operator.name in tree.done
            or not one.over & tree.relations
            or tree.relations <= one.over | one.beyond
            for one in self._query.movable
        )

    def _joins(self, left: Names, right: Names) -> Iterator[Tree]:
        found = self._condition(left, right)
        if found is None and not (self._whole(left) and self._whole(right)):
            return
        share, cost = found or (1.0, 5e-6)
        for a in self.trees(left):
            for b in self.trees(right):
                name = "join" + "".join(sorted(left | right))
                join = Operator(
                    name, Kind.JOIN, (a.last, b.last), left=share, right=share, spark=(cost, cost)
                )
                yield Tree(left | right, a.done | b.done, (*a.operators, *b.operators, join), name)

    def _condition(self, left: Names, right: Names) -> tuple[float, float] | None:
        between = [
            edge
            for edge in self._query.joins
            if {edge.left, edge.right} & left and {edge.left, edge.right} & right
        ]
        keyed = [edge for edge in self._query.joins if edge.key]
        same_key = {name for edge in keyed for name in (edge.left, edge.right)}
        shares = [edge.selectivity for edge in between if not edge.key]
        costs = [edge.spark for edge in between if not edge.key]
        if same_key & left and same_key & right:
            # All conditions of a key are equally selective here; the first of them has the say on unit costs.
            explicit = [edge for edge in between if edge.key] or keyed
            shares.append(explicit[0].selectivity)
            costs.append(explicit[0].spark)
        return (prod(shares), max(costs)) if shares else None

    def _whole(self, names: Names) -> bool:
        rest = frozenset(relation.name for relation in self._query.relations) - names
        return self._condition(names, rest) is None

    def _size(self, names: Names) -> float:
        """Of a join without aggregates: every condition inside it once."""
        inside = [edge for edge in self._query.joins if {edge.left, edge.right} <= names]
        keyed = {n for edge in self._query.joins if edge.key for n in (edge.left, edge.right)} & names
        key = next((edge.selectivity for edge in self._query.joins if edge.key), 1.0)
        plain = prod(edge.selectivity for edge in inside if not edge.key)
        return prod(self._rows[name] for name in names) * plain * key ** max(0, len(keyed) - 1)

    def _relation(self, name: str) -> Tree:
        relation = next(one for one in self._query.relations if one.name == name)
        tree = Tree(frozenset({name}), frozenset(), (), relation.reads)
        for operator in relation.chain:
            tree = _on(tree, operator)
        return tree

    def _alone(self, name: str) -> float:
        tree = self._relation(name)
        tables = {table.name: table.rows for table in self._query.tables}
        windows = {window.name: window for window in self._query.windows}
        rates = {stream.name: stream.rate for stream in self._query.streams}
        reads = next(one.reads for one in self._query.relations if one.name == name)
        rows = tables.get(reads) or rates[windows[reads].stream] * windows[reads].range
        return rows * prod(operator.selectivity for operator in tree.operators)


def _on(tree: Tree, operator: Operator) -> Tree:
    above = replace(operator, inputs=(tree.last,))
    return replace(tree, operators=(*tree.operators, above), last=operator.name)


def _cuts(names: Names) -> Iterator[tuple[Names, Names]]:
    first, *rest = sorted(names)
    for bits in range(2 ** len(rest) - 1):
        left = frozenset({first, *(name for i, name in enumerate(rest) if bits >> i & 1)})
        yield left, names - left
