"""All that runs, as a graph of operators that plans can be taken out of and put back into.

    operator   a join, or the way of a query's result to its sink (an operator with one input)
    users      the operators that read an operator directly; one without users, other than a way, is gone

Nothing belongs to a query here: which query makes an operator is settled when the search is over
(`unwound.py`). The total is kept up to date with every change; without cuts a change costs what it touches.

Two moves, each the exact optimum given all the rest:

    replan     take a query out, plan it again against what is left
    relocate   take out an operator and all that only it reads; choose again its site, inputs and join order
               below it for all its users at once. This is what planning queries in turn can never do: no
               query alone may move what others read.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.planners.placement.ground import WHOLE, Ground, Node, Wish
from headrace.planners.placement.jit import Floats

Input = tuple[int, int, int]
"""Mask, site, and number of the operator; -1: a base stream."""


@dataclass(slots=True)
class Operator:
    mask: int
    site: int
    inputs: tuple[Input, ...]
    users: set[int]
    query: int = -1
    """Of a way to a sink."""
    cost: float = 0.0
    """Of its inputs' ways to it, and of opening it."""

    def copy(self) -> Operator:
        return Operator(self.mask, self.site, self.inputs, set(self.users), self.query, self.cost)


class Pool:
    def __init__(self, ground: Ground) -> None:
        self.ground = ground
        self.operators: dict[int, Operator] = {}
        self.ways: dict[int, int] = {}
        """Query -> number of its way."""
        self.total = 0.0
        self._by_mask: dict[int, list[int]] = {}
        self._wishes: dict[int, Wish] = {}
        """Of operators whose readers have not changed since it was worked out."""
        self._next = 0

    def fork(self) -> Pool:
        other = Pool(self.ground)
        other.operators = {n: one.copy() for n, one in self.operators.items()}
        other.ways = dict(self.ways)
        other.total = self.total
        other._by_mask = {mask: list(numbers) for mask, numbers in self._by_mask.items() if numbers}
        other._wishes = dict(self._wishes)
        other._next = self._next
        return other

    def replan(self, query: int, share: Floats | None = None) -> None:
        """Plan a query, again if it runs. Without a share the total never rises."""
        if query in self.ways:
            if not self.removable(query):
                return
            self.remove(query)
        ground = self.ground
        mask, wish = ground.masks[query], ground.wishes[query]
        node = ground.plan(mask, wish, self.offers(mask, wish), ground.outs[query], share)
        self.add(query, node)

    def removable(self, query: int) -> bool:
        """Whether nobody reads the result at the sink."""
        return not self.operators[self.ways[query]].users

    def add(self, query: int, node: Node) -> int:
        """The number of the query's way to its sink."""
        number = self._realised(node)
        way: Input = (node.mask, node.site, number)
        self.ways[query] = self._new(node.mask, self.ground.sinks[query], (way,), query)
        self._refresh(self._below(self.ways[query]))
        return self.ways[query]

    def opened(self, node: Node) -> set[int]:
        """The operators of a plan without a query, until somebody reads them or they are swept away."""
        number = self._realised(node)
        return set() if number < 0 else self.below(number)

    def sweep(self) -> None:
        """Drop what nobody reads."""
        for number in list(self.operators):
            one = self.operators.get(number)
            if one is not None and one.query < 0 and not one.users:
                self._drop(number)

    def remove(self, query: int) -> None:
        number = self.ways.pop(query)
        below = self._below(number)
        self._drop(number)
        self._refresh(below)

    def relocate(self, number: int) -> None:
        """Choose again where an operator runs and how it is made, for all its users. Never dearer."""
        ground, one = self.ground, self.operators[number]
        wish, users = self.wish(number), sorted(one.users)
        out = np.zeros(len(ground.sites))
        for user in users:
            rate = ground.rate(one.mask, self._share_of(user, one.mask))
            out += ground.out(rate, self.operators[user].site)
        banned = self._above(number) if ground.problem.sinks else set()
        below = self._below(number)
        one.users.clear()
        self._drop(number)
        self._forget(below)
        offers = [offer for offer in self.offers(one.mask, wish) if offer[0] not in banned]
        node = ground.plan(one.mask, wish, offers, out)
        made = self._realised(node)
        for user in users:
            self._rewire(user, number, (one.mask, node.site, made))
        self._refresh(below | self._below(made) if made >= 0 else below)

    def wish(self, number: int) -> Wish:
        """What an operator must keep for all queries that read it."""
        if not self.ground.cut:
            return WHOLE
        found = self._wishes.get(number)
        if found is None:
            wishes = [(self.ground.masks[q], self.ground.wishes[q]) for q in self._readers(number)]
            found = self._wishes[number] = self.ground.union(self.operators[number].mask, wishes)
        return found

    def _share_of(self, user: int, mask: int) -> Wish:
        return self.ground.part(self.operators[user].mask, self.wish(user), mask)

    def offers(self, mask: int, wish: Wish) -> list[tuple[int, int, int, float]]:
        """What runs of a mask and its subsets: (number, mask, site, what reading it adds)."""
        if not self.ground.problem.reuse:
            return []
        found = []
        for one in self.ground.local(mask, wish).masks[1:]:
            for number in self._by_mask.get(one, ()):
                extra = self._extra(number, self.ground.part(mask, wish, one))
                if extra is not None:
                    found.append((number, one, self.operators[number].site, extra))
        return found

    def _extra(self, number: int, wish: Wish) -> float | None:
        """What it adds that somebody with this wish reads the operator too; None: it cannot be had there."""
        if not self.ground.cut:
            return 0.0
        one, now = self.operators[number], self.wish(number)
        then = self.ground.union(one.mask, [(one.mask, now), (one.mask, wish)])
        if now == then:
            return 0.0
        if one.query >= 0:
            return None
        added = self._inflow(one, then) - self._inflow(one, now)
        for mask, _, source in one.inputs:
            above = 0.0 if source < 0 else self._extra(source, self.ground.part(one.mask, wish, mask))
            if above is None:
                return None
            added += above
        return added

    def _realised(self, node: Node) -> int:
        """The number of the operator a node stands for; -1: a base stream."""
        if node.left is None or node.right is None:
            return node.number
        inputs = tuple((side.mask, side.site, self._realised(side)) for side in (node.left, node.right))
        return self._new(node.mask, node.site, inputs)

    def _new(self, mask: int, site: int, inputs: tuple[Input, ...], query: int = -1) -> int:
        number, self._next = self._next, self._next + 1
        one = self.operators[number] = Operator(mask, site, inputs, set(), query)
        for _, _, source in inputs:
            if source >= 0:
                self.operators[source].users.add(number)
        if query < 0 or self.ground.problem.sinks:
            self._by_mask.setdefault(mask, []).append(number)
        if not self.ground.cut:
            one.cost = self._cost(one, WHOLE)
            self.total += one.cost
        return number

    def _drop(self, number: int) -> None:
        one = self.operators.pop(number)
        self._wishes.pop(number, None)
        self.total -= one.cost
        if one.query < 0 or self.ground.problem.sinks:
            self._by_mask[one.mask].remove(number)
        for _, _, source in one.inputs:
            if source >= 0:
                users = self.operators[source].users
                users.discard(number)
                # A way stays with its query, read or not.
                if not users and self.operators[source].query < 0:
                    self._drop(source)

    def _rewire(self, user: int, old: int, new: Input) -> None:
        one = self.operators[user]
        one.inputs = tuple(new if source == old else (m, s, source) for m, s, source in one.inputs)
        if new[2] >= 0:
            self.operators[new[2]].users.add(user)
        self._recost(user)

    def _refresh(self, numbers: set[int]) -> None:
        """With cuts, what an operator's inputs carry changes with its readers."""
        self._forget(numbers)
        for number in numbers:
            if number in self.operators:
                self._recost(number)

    def _forget(self, numbers: set[int]) -> None:
        for number in numbers:
            self._wishes.pop(number, None)

    def _recost(self, number: int) -> None:
        one = self.operators[number]
        cost = self._cost(one, self.wish(number))
        self.total += cost - one.cost
        one.cost = cost

    def _cost(self, one: Operator, wish: Wish) -> float:
        opened = self.ground.opened(one.mask, one.inputs[0][0], one.site) if one.query < 0 else 0.0
        return self._inflow(one, wish) + opened

    def _inflow(self, one: Operator, wish: Wish) -> float:
        ground = self.ground
        total = 0.0
        for mask, site, _ in one.inputs:
            total += ground.rate(mask, ground.part(one.mask, wish, mask)) * float(
                ground.distance[site, one.site]
            )
        return total

    def below(self, number: int) -> set[int]:
        """An operator and all it is made from."""
        found = {number}
        for _, _, source in self.operators[number].inputs:
            if source >= 0:
                found |= self.below(source)
        return found

    def _below(self, number: int) -> set[int]:
        """What may carry more or less after a change here: nothing without cuts."""
        return self.below(number) if self.ground.cut and number >= 0 else set()

    def _above(self, number: int) -> set[int]:
        found = {number}
        for user in self.operators[number].users:
            found |= self._above(user)
        return found

    def _readers(self, number: int) -> set[int]:
        return {self.operators[n].query for n in self._above(number)} - {-1}
