"""Phase two: an engine for each operator of a logical plan, bottom-up, with partial plans pruned (section 7).

At each operator the partial plans up to it are built from those of its inputs. Rooted on Spark, the
operator is a part of its own and the open parts below it are closed. Rooted on DuckDB, it joins the open
parts below it into one.

Prunings, each of which keeps an optimal plan by Definition 1:
- none: all 2^n plans.
- paper: one plan rooted on Spark per operator, made of the best finished plan of each input: n + 1 complete
  plans for n unary operators, exponential in the number of joins. The proof needs that C_b is the largest u.
  Where cores are shared it is not, and the front of plans rooted on Spark is kept (`fronts`).
- pareto: besides, of the plans rooted on DuckDB only those that no other beats, before inputs are combined
  and after.

Where no plan is feasible, `pareto` searches a second time with C_b of the plan it found as the limit: that
gives, of all plans with the least C_b, the one with the least C_u. The definition does not ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from headrace.errors import InternalError
from headrace.plan.federated import Engine
from headrace.planners.federation.compare import rank
from headrace.planners.federation.cost import OperatorCost, bottleneck, operator_costs
from headrace.planners.federation.fronts import Done, Open, done_front, open_front
from headrace.planners.federation.problem import Allowed, Options, Plan, Pruning

_ROUNDING = 1e-12
"""Of a sum that is made in another order."""


@dataclass(frozen=True, slots=True)
class Searched:
    best: Done
    complete: tuple[Done, ...]
    """All that were compared at the root."""
    examined: int
    kept: int
    again: int = 0
    """What the second search examined."""


def search(plan: Plan, options: Options, cuts: frozenset[int] = frozenset()) -> Searched:
    """The best split. At the operators in `cuts` only one partial plan is kept, whatever is above them."""
    costs = operator_costs(plan)
    allowed = [allowed_engines(operator.engine, options.engine) for operator in plan.operators]
    limit = options.limit
    found = _Search(costs, allowed, options.pruning, plan.cores, limit, cuts).run()
    c_b = bottleneck(found.best[0], found.best[1], plan.cores)
    if c_b <= limit or options.pruning != "pareto":
        return found
    limit = c_b * (1 + _ROUNDING)
    again = _Search(costs, allowed, "pareto", plan.cores, limit, cuts).run()
    # With cuts the second search is as blind as the first, and may miss what that found.
    best = again.best if bottleneck(*again.best[:2], plan.cores) <= limit else found.best
    both = found.complete + again.complete
    return Searched(best, both, found.examined, found.kept + again.kept, again.examined)


def allowed_engines(fixed: Engine | None, engine: Allowed) -> tuple[Engine, ...]:
    if fixed is not None:
        return (fixed,)
    return tuple(Engine) if engine == "both" else (Engine(engine),)


def engines_of(bits: int, count: int) -> tuple[Engine, ...]:
    return tuple(Engine.DUCKDB if bits >> i & 1 else Engine.SPARK for i in range(count))


class _Search:
    def __init__(
        self,
        costs: Sequence[OperatorCost],
        allowed: Sequence[tuple[Engine, ...]],
        pruning: Pruning,
        cores: float | None,
        limit: float,
        cuts: frozenset[int],
    ) -> None:
        self._costs, self._allowed, self._cuts = costs, allowed, cuts
        self._pareto, self._prune = pruning == "pareto", pruning != "none"
        self._one = self._prune and cores is None
        self._cores, self._limit = cores, limit
        self._fastest = costs[-1].slides
        self._on_spark: list[list[Done]] = []
        self._on_duckdb: list[list[Open]] = []
        self._examined = 0

    def run(self) -> Searched:
        for i in range(len(self._costs)):
            self._on_spark.append(self._spark_rooted(i) if Engine.SPARK in self._allowed[i] else [])
            self._on_duckdb.append(self._duckdb_rooted(i) if Engine.DUCKDB in self._allowed[i] else [])
            if i in self._cuts:
                self._keep_one(i)
        complete = self._finished(len(self._costs) - 1)
        kept = sum(map(len, self._on_spark)) + sum(map(len, self._on_duckdb))
        return Searched(self._best(complete), tuple(complete), self._examined + len(complete), kept)

    def _spark_rooted(self, i: int) -> list[Done]:
        own = self._costs[i].spark
        finished = [self._finished(below) for below, _ in self._costs[i].inputs if below is not None]
        if self._one:
            finished = [[self._best(plans)] for plans in finished]
        elif self._prune:
            finished = [done_front(plans, self._limit) for plans in finished]
        made = [
            (max(own, *(m for m, _, _ in below)), own + sum(s for _, s, _ in below), _bits(below))
            if below
            else (own, own, 0)
            for below in product(*finished)
        ]
        return done_front(made, self._limit) if self._prune else made

    def _duckdb_rooted(self, i: int) -> list[Open]:
        cost = self._costs[i]
        made: list[Open] = [(0.0, 0.0, cost.arriving, cost.held, 1 << i)]
        for below, enter in cost.inputs:
            options = self._inputs(i, below, enter)
            made = [
                (m if m > m2 else m2, s + s2, a + a2, h + h2, bits | bits2)
                for m, s, a, h, bits in made
                for m2, s2, a2, h2, bits2 in options
            ]
        return self._pruned(i, made)

    def _inputs(self, i: int, below: int | None, enter: float) -> list[Open]:
        """What an operator on DuckDB may read: an open part that it goes on with, or rows from Spark."""
        if below is None:
            return [(0.0, 0.0, enter, 0.0, 0)]
        from_spark: list[Open] = [(m, s, enter, 0.0, bits) for m, s, bits in self._on_spark[below]]
        return self._pruned(i, self._on_duckdb[below] + from_spark)

    def _pruned(self, i: int, plans: list[Open]) -> list[Open]:
        return open_front(plans, self._costs[i].slides, self._fastest, self._limit) if self._pareto else plans

    def _finished(self, i: int) -> list[Done]:
        """All partial plans up to an operator, open parts closed after it."""
        cost = self._costs[i]
        done = list(self._on_spark[i])
        for m, s, a, h, bits in self._on_duckdb[i]:
            u = cost.closed(a, h)
            done.append((m if m > u else u, s + u, bits))
        return done

    def _best(self, plans: Sequence[Done]) -> Done:
        if not plans:
            raise InternalError("federation: an operator has no engine")
        return min(
            plans,
            key=lambda one: (rank(bottleneck(one[0], one[1], self._cores), one[1], self._limit), one[2]),
        )

    def _keep_one(self, i: int) -> None:
        finished = self._finished(i)
        self._examined += len(finished)
        bits = self._best(finished)[2]
        self._on_spark[i] = [one for one in self._on_spark[i] if one[2] == bits]
        self._on_duckdb[i] = [one for one in self._on_duckdb[i] if one[4] == bits]


def _bits(below: Sequence[Done]) -> int:
    found = 0
    for _, _, bits in below:
        found |= bits
    return found
