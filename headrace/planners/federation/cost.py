"""What operators and parts cost: Eq. 4 for an operator on Spark, transfer + SQL + transfer for a part on
DuckDB.

    on Spark     u = sum over inputs of lambda * c
    on DuckDB    u = A + l * (H + statement) + out
                 A = sum over inputs of the part of lambda * width * transfer_in
                   + sum over inputs of its operators of lambda * c_arriving
                 H = sum over inputs of its operators of W * c_held
                 out = lambda_out * width_out * transfer_out

l and out are those of the part's last operator, so u of a part grows by one operator in O(1) from (A, H),
and is not the sum of what its pieces would cost: transfers and the statement in between fall away, and all
of it is evaluated as often as the fastest window below it slides.
"""

from __future__ import annotations

from dataclasses import dataclass

from headrace.planners.federation.problem import Plan, Sizes
from headrace.planners.federation.sizes import leaf_sizes, sizes_of

Edge = tuple[int | None, float]
"""An input: the position of the operator that gives it (None: a window or a table), and what it adds to A
where it comes from Spark or a stream into DuckDB."""


@dataclass(frozen=True, slots=True)
class OperatorCost:
    inputs: tuple[Edge, ...]
    spark: float
    """u on Spark."""
    arriving: float
    """What it adds to A of its part on DuckDB, without transfer."""
    held: float
    """What it adds to H."""
    slides: float
    statement: float
    out: float

    def closed(self, a: float, h: float) -> float:
        """u of a part on DuckDB that has this operator as its last."""
        return a + self.slides * (h + self.statement) + self.out


def operator_costs(plan: Plan) -> tuple[OperatorCost, ...]:
    sizes = sizes_of(plan)
    known = dict(leaf_sizes(plan))
    found = []
    for operator, gives in zip(plan.operators, sizes, strict=True):
        prices = operator.prices or plan.prices
        takes: list[Sizes] = [known[name] for name in operator.inputs]
        spark = sum(one.rate * c for one, c in zip(takes, operator.spark, strict=True))
        arriving = sum(one.rate * c.arriving for one, c in zip(takes, operator.duckdb, strict=True))
        held = sum(one.rows * c.held for one, c in zip(takes, operator.duckdb, strict=True))
        edges = tuple(
            (plan.position.get(name), one.rate * one.width * prices.transfer_in)
            for name, one in zip(operator.inputs, takes, strict=True)
        )
        out = gives.rate * gives.width * prices.transfer_out
        found.append(OperatorCost(edges, spark, arriving, held, gives.slides, prices.statement, out))
        known[operator.name] = gives
    return tuple(found)


def bottleneck(largest: float, total: float, cores: float | None) -> float:
    """C_b. Where the parts share a machine, C_u / cores is as hard a limit as the largest part: no more
    than `cores` seconds of work are done in a second."""
    return largest if cores is None else max(largest, total / cores)
