"""How many queries could be admitted at best: the paper's optimistic bound, and one that no plan can pass.

The optimistic bound (V-A) puts all hosts together: one host with all their CPU and all base streams,
without a network. Queries come in order and each takes the least CPU that is possible with what runs
already. It looks at one query at a time, so it is no ceiling: a planner that makes what later queries can
use may admit more.

The offline bound is a ceiling, for planners that know all queries too. It is the optimum of a relaxation
with variables in [0, 1] for every set of streams that can be part of a query (is it made?), every operator
(does it run?) and every query (is it admitted?), and the number of copies of every base stream:
    admitted(q) <= made(q),  made(S) <= sum of run(o) over all o that make S,  run(o) <= made(inputs of o),
    sum of cpu(o) run(o) <= all CPU,
    copies(i) >= sum of cpu(o) run(o) over operators o that read base stream i / largest CPU of a host - 1,
    sum of rate(i) copies(i) <= all incoming bandwidth,
    sum of rate(i) copies(i) + sum of rate(q) admitted(q) <= all outgoing bandwidth.
Proof: take any plan, and set to 1 what some host makes, runs or delivers. Causality gives the first line:
what is delivered or read is made, by an operator that runs. Every running operator takes its CPU at least
once: the second. Operators that read i run at hosts that have i, and none of these has more than the
largest CPU, so at least (their CPU / largest CPU) hosts have i; all but one, its home, receive it: the
third. Every copy is taken in by one host and sent by another, and every delivered stream is sent once: the
last two. So the plan is a point of the relaxation, and admits no more than its optimum.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_matrix

from headrace.planners.admission.check import TOLERANCE
from headrace.planners.admission.problem import (
    AdmissionProblem,
    Decision,
    Operator,
    Options,
    Plan,
    Query,
    Stream,
    cpu_of,
    operators_of,
)
from headrace.planners.admission.state import SLACK


class Bound:
    """The optimistic bound as a planner. No host runs what it admits: its plan is empty."""

    name = "bound"

    def __init__(self, problem: AdmissionProblem, options: Options, clock: Callable[[], float]) -> None:
        self._problem, self._clock = problem, clock
        self._made: set[Stream] = set()
        self.room = self._all = sum(host.cpu for host in problem.hosts)

    @property
    def plan(self) -> Plan:
        return Plan()

    def submit(self, query: Query) -> Decision:
        started = self._clock()
        cpu, operators = least_cpu(self._problem, query.streams, self._made)
        # What was taken is not exact: 0.6 less 0.2 less 0.2 is below 0.2.
        fits = cpu <= self.room + SLACK * (self._all if np.isfinite(self._all) else 0.0)
        if fits:
            self.room = max(self.room - cpu, 0.0)
            self._made.update(one.output for one in operators)
        why = "" if fits else f"all hosts together have {self.room:g} CPU left and it takes {cpu:g}"
        return Decision(query.id, fits, self._clock() - started, why, proven=True)


def least_cpu(
    problem: AdmissionProblem, streams: Stream, made: set[Stream]
) -> tuple[float, tuple[Operator, ...]]:
    """The operators that must be added to make a stream, where network is free. Infinite: no way to."""
    best: dict[Stream, tuple[float, tuple[Operator, ...]]] = {}
    for one in sorted(operators_of(problem, streams), key=lambda one: len(one.output)):
        if one.output in made:
            continue
        parts = [_had(part, made, best) for part in (one.left, one.right)]
        cpu = cpu_of(problem, one) + parts[0][0] + parts[1][0]
        if cpu < best.get(one.output, (np.inf,))[0]:
            best[one.output] = cpu, (*parts[0][1], *parts[1][1], one)
    return _had(streams, made, best)


def _had(
    stream: Stream, made: set[Stream], best: dict[Stream, tuple[float, tuple[Operator, ...]]]
) -> tuple[float, tuple[Operator, ...]]:
    if len(stream) == 1 or stream in made:
        return 0.0, ()
    return best.get(stream, (float("inf"), ()))


def optimistic(problem: AdmissionProblem) -> int:
    """How many queries the aggregate host admits, one after another."""
    bound = Bound(problem, Options(), lambda: 0.0)
    return sum(bound.submit(query).admitted for query in problem.queries)


def offline(problem: AdmissionProblem, seconds: float = 0.0) -> float:
    """No plan admits more. With `seconds`, a search over whole numbers lowers the bound within that time."""
    rows = _Rows(problem)
    options = {"time_limit": max(seconds, 1.0)} if seconds else {}
    answer = milp(
        -rows.worth(),
        constraints=rows.constraints(),
        bounds=Bounds(0.0, rows.most()),
        integrality=rows.whole() if seconds else None,
        options=options,
    )
    value = answer.mip_dual_bound if seconds else answer.fun
    if value is None:
        return float(len(problem.queries))
    return min(float(len(problem.queries)), -float(value))


@dataclass
class _Rows:
    """The relaxation, row by row. Columns: sets, operators, queries, copies of base streams."""

    problem: AdmissionProblem
    sets: dict[Stream, int] = field(default_factory=dict)
    operators: dict[Operator, int] = field(default_factory=dict)
    entries: list[tuple[int, int, float]] = field(default_factory=list)
    limits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.asked = Counter(query.streams for query in self.problem.queries)
        for streams in self.asked:
            for one in operators_of(self.problem, streams):
                self.operators.setdefault(one, len(self.operators))
                self.sets.setdefault(one.output, len(self.sets))
        self.wanted = [streams for streams in self.asked if streams in self.sets]
        self.bases = sorted({name for streams in self.wanted for name in streams})
        self.first_query = len(self.sets) + len(self.operators)
        self.first_copy = self.first_query + len(self.wanted)
        self.columns = self.first_copy + len(self.bases)

    def constraints(self) -> LinearConstraint:
        self._causality()
        self._resources()
        row, column, value = zip(*self.entries, strict=True)
        matrix = csr_matrix((value, (row, column)), shape=(len(self.limits), self.columns))
        return LinearConstraint(matrix, -np.inf, np.array(self.limits))

    def worth(self) -> np.ndarray:
        worth = np.zeros(self.columns)
        worth[self.first_query : self.first_copy] = [self.asked[streams] for streams in self.wanted]
        return worth

    def most(self) -> np.ndarray:
        most = np.ones(self.columns)
        most[self.first_copy :] = np.inf
        return most

    def whole(self) -> np.ndarray:
        return (np.arange(self.columns) < self.first_copy).astype(int)

    def _row(self, entries: list[tuple[int, float]], limit: float) -> None:
        """Divided by its limit: a solver leaves out small coefficients, whatever unit they are in."""
        if np.isfinite(limit):
            unit = limit or max((abs(value) for _, value in entries), default=0.0) or 1.0
            self.entries += [(len(self.limits), column, value / unit) for column, value in entries]
            self.limits.append(limit / unit)

    def _operator(self, one: Operator) -> int:
        return len(self.sets) + self.operators[one]

    def _causality(self) -> None:
        makers: dict[Stream, list[Operator]] = {stream: [] for stream in self.sets}
        for one in self.operators:
            makers[one.output].append(one)
            for part in (one.left, one.right):
                if len(part) > 1:
                    made = [(self.sets[part], -1.0)] if part in self.sets else []
                    self._row([(self._operator(one), 1.0), *made], 0.0)
        for stream, column in self.sets.items():
            self._row([(column, 1.0), *((self._operator(one), -1.0) for one in makers[stream])], 0.0)
        for i, streams in enumerate(self.wanted):
            self._row([(self.first_query + i, 1.0), (self.sets[streams], -1.0)], 0.0)

    def _resources(self) -> None:
        hosts = self.problem.hosts
        cpu = {one: cpu_of(self.problem, one) for one in self.operators}
        # What the check of a plan lets pass is no more than a plan may do.
        most = 1.0 + TOLERANCE
        self._row([(self._operator(one), cpu[one]) for one in cpu], most * sum(h.cpu for h in hosts))
        largest = most * max(h.cpu for h in hosts)
        readers = self._readers() if largest else {}
        for i, name in enumerate(self.bases):
            reads = [(self._operator(one), cpu[one] / largest) for one in readers.get(name, ())]
            self._row([(self.first_copy + i, -1.0), *reads], 1.0)
        rate = self.problem.streams
        copies = [(self.first_copy + i, rate[name].rate) for i, name in enumerate(self.bases)]
        given = [(self.first_query + i, self.problem.rate(s)) for i, s in enumerate(self.wanted)]
        self._row(copies, most * sum(h.incoming for h in hosts))
        self._row([*copies, *given], most * sum(h.outgoing for h in hosts))

    def _readers(self) -> dict[str, list[Operator]]:
        """Operators by the base streams that they read themselves."""
        found: dict[str, list[Operator]] = {}
        for one in self.operators:
            for part in (one.left, one.right):
                if len(part) == 1:
                    found.setdefault(min(part), []).append(one)
        return found
