"""SODA, as the paper compares with it (V-B): admit by totals, then place fixed templates, then swap.

A query has one template, a join tree that is given or drawn, whatever else runs, and keeps it.
Templates are glued: every stream is made by one operator, wherever a template needs it, and every host that
lacks it receives it once, from the host that makes it (no relays). An epoch has three stages:

- macroQ picks queries while all hosts together have the CPU and memory for them, those with most worth for
  their part of it first: a knapsack, in which what is glued already costs nothing.
- macroW looks for the hosts of a picked query's new operators: the best balance of load, by branch and bound
  with a limit on its effort.
- miniW has the last word (soda_moves.py): it makes room where macroW found none, by moving and swapping
  operators of all queries, and improves the balance in the same way.

A query that was picked and finds no place is refused; what was admitted stays. Load balance is the sum of
squares of the hosts' shares of CPU, network the rate of all flows as a share of all bandwidth: of the largest
share alone (O4) most moves change nothing, so that no local search could follow it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from headrace.planners.admission.asked import Admitted, check_query
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Decision,
    Host,
    Operator,
    Options,
    Plan,
    Query,
    Stream,
    cpu_of,
    memory_of,
    operator,
    operators_of,
)
from headrace.planners.admission.soda_moves import Swaps
from headrace.planners.admission.soda_placing import Placing
from headrace.planners.admission.state import SLACK, State


class Soda:
    name = "soda"

    def __init__(
        self,
        problem: AdmissionProblem,
        options: Options,
        clock: Callable[[], float],
        *,
        named: bool = False,
        templates: Mapping[Stream, Operator] | None = None,
    ) -> None:
        """`named`, `templates`: see Templates."""
        self._problem, self._clock = problem, clock
        self._templates = Templates(problem, None if named else options.seed, templates or {})
        self.state = State(problem)
        self._admitted = Admitted(self.state)
        self._placing = Placing(self.state)
        self._swaps = Swaps(self._placing)

    @property
    def plan(self) -> Plan:
        return self.state.plan()

    def submit(self, query: Query) -> Decision:
        (decision,) = self.submit_all([query])
        return decision

    def submit_all(self, queries: Sequence[Query]) -> list[Decision]:
        """One epoch."""
        started = self._clock()
        for query in queries:
            check_query(self._problem, query, self._admitted)
        before = self._places()
        left, whys = list(queries), dict[str, str]()
        while left:
            query = self._macro_q(left)
            left.remove(query)
            whys[query.id] = self._place(query)
        if not all(whys.values()):
            self._swaps.improve()
        self.state.forget()
        moved = sum(before[one] != host for one, host in self._places().items() if one in before)
        seconds = (self._clock() - started) / len(queries)
        return [
            Decision(query.id, not whys[query.id], seconds, whys[query.id], moved=moved if i == 0 else 0)
            for i, query in enumerate(queries)
        ]

    def remove(self, query_id: str) -> None:
        """Take a query out, and all that only it needed. What others have stays where it is."""
        self._admitted.remove(query_id)

    def _macro_q(self, queries: list[Query]) -> Query:
        """The one with most worth for the part of all resources that it adds; the first of equals."""
        return max(queries, key=lambda query: query.priority / max(self._part(query.streams), SLACK))

    def _part(self, stream: Stream) -> float:
        return max(
            (
                need / room if np.isfinite(room) and room > 0 else 0.0
                for _, need, room in self._totals(stream)
            ),
        )

    def _totals(self, stream: Stream) -> list[tuple[str, float, float]]:
        """What a query adds to all hosts together, and what they have in all."""
        new = self._new(stream)
        cpu = sum(cpu_of(self._problem, one) for one in new)
        memory = sum(memory_of(self._problem, one) for one in new)
        state = self.state
        return [
            ("cpu", cpu, float((state.cpu_limit - state.cpu).sum())),
            ("memory", memory, float((state.memory_limit - state.memory).sum())),
        ]

    def _left(self, name: str) -> float:
        """Of all hosts together, by the limits of the problem: those of the state have some slack."""
        used = self.state.cpu if name == "cpu" else self.state.memory
        limits = [host.cpu if name == "cpu" else host.memory for host in self._problem.hosts]
        return max(sum(limits) - float(used.sum()), 0.0)

    def _place(self, query: Query) -> str:
        """Why a query is refused; nothing has changed then."""
        stream = query.streams
        if stream in self.state.deliveries:
            self._admitted.add(query)
            return ""
        if not self._templates.makes(stream):
            return "no template with known rates makes its stream"
        for name, need, room in self._totals(stream):
            if need > room:
                left = self._left(name)
                return f"macroQ: all hosts together have {left:.6g} {name} left and it takes {need:.6g}"
        mark, new = self.state.mark(), self._new(stream)
        if self._placing.best(new, stream) or self._swaps.make_room(new, stream):
            self._admitted.add(query)
            return ""
        self.state.undo_to(mark)
        return f"miniW: {self._swaps.why}"

    def _new(self, stream: Stream) -> list[Operator]:
        """Operators of a template that do not run yet, inputs first."""
        if len(stream) == 1 or stream in self.state.made or not self._templates.makes(stream):
            return []
        one = self._templates[stream]
        return [*self._new(one.left), *self._new(one.right), one]

    def _places(self) -> dict[Operator, Host]:
        return {one: host for holders in self.state.made.values() for host, one in holders.items()}


class Templates:
    """One operator for every stream that can be made, chosen without a look at what runs: a left-deep tree
    where there are rates for one, else any tree.

    Users write their joins in any order, so the order is drawn, from the seed and the set of streams. Without
    a seed it is that of the names. Where these are ranks of popularity, as in workload.py, popular streams
    are then joined first in all templates, which share more than users would by chance. `given` templates
    go before both."""

    def __init__(self, problem: AdmissionProblem, seed: int | None, given: Mapping[Stream, Operator]) -> None:
        self._problem, self._seed = problem, seed
        self._known = dict[Stream, Operator | None](given)

    def makes(self, stream: Stream) -> bool:
        return len(stream) == 1 or self._chosen(stream) is not None

    def __getitem__(self, stream: Stream) -> Operator:
        one = self._chosen(stream)
        if one is None:
            raise KeyError(stream)
        return one

    def _chosen(self, stream: Stream) -> Operator | None:
        if stream not in self._known:
            self._known[stream] = self._choose(stream) if stream in self._problem.rates else None
        return self._known[stream]

    def _choose(self, stream: Stream) -> Operator | None:
        for name in self._last_first(stream):
            if self.makes(stream - {name}):
                return operator(stream - {name}, frozenset({name}))
        cuts = (one for one in operators_of(self._problem, stream) if one.output == stream)
        return next((one for one in cuts if self.makes(one.left) and self.makes(one.right)), None)

    def _last_first(self, stream: Stream) -> list[str]:
        names = sorted(stream, key=lambda name: (len(name), name), reverse=True)
        if self._seed is None:
            return names
        text = f"{self._seed}:{','.join(names)}"
        digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
        return [names[i] for i in np.random.default_rng(list(digest)).permutation(len(names))]
