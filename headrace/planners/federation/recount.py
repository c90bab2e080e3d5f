"""The cost of a given split, from the problem itself. No search is believed: what is reported comes from
here, and what the search says must agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace.plan.federated import Engine
from headrace.planners.federation.cost import bottleneck
from headrace.planners.federation.problem import Operator, Part, Plan, Prices, Sizes, Split
from headrace.planners.federation.sizes import leaf_sizes


class Recount:
    """Costs of splits of one plan."""

    def __init__(self, plan: Plan, sizes: Sequence[Sizes]) -> None:
        self._plan = plan
        self._sizes = dict(leaf_sizes(plan)) | {
            operator.name: one for operator, one in zip(plan.operators, sizes, strict=True)
        }
        reader = {name: operator.name for operator in plan.operators for name in operator.inputs}
        self._reader = [plan.position.get(reader.get(operator.name, "")) for operator in plan.operators]
        # A part costs the same wherever it occurs, and exhaustive search meets each many times.
        self._known: dict[tuple[str, ...], Part] = {}
        self._on_spark = [self._spark_part(operator) for operator in plan.operators]

    def split(self, engines: tuple[Engine, ...]) -> Split:
        parts = tuple(self._parts(engines))
        largest, total = max(part.u for part in parts), sum(part.u for part in parts)
        return Split(engines, parts, bottleneck(largest, total, self._plan.cores), total)

    def _parts(self, engines: tuple[Engine, ...]) -> Iterator[Part]:
        """An operator on Spark is a part of its own, as in the paper: there operators are a pipeline, each
        busy beside the others. On DuckDB, those next to each other are one."""
        held: dict[str, list[Operator]] = {}
        for i, operator in enumerate(self._plan.operators):
            if engines[i] is Engine.SPARK:
                yield self._on_spark[i]
                continue
            members = [one for name in operator.inputs for one in held.pop(name, [])] + [operator]
            above = self._reader[i]
            if above is not None and engines[above] is Engine.DUCKDB:
                held[operator.name] = members
            else:
                yield self._duckdb_part(operator, members)

    def _spark_part(self, operator: Operator) -> Part:
        work = sum(self._sizes[n].rate * c for n, c in zip(operator.inputs, operator.spark, strict=True))
        return Part(Engine.SPARK, (operator.name,), work, work=work)

    def _duckdb_part(self, root: Operator, members: Sequence[Operator]) -> Part:
        names = tuple([member.name for member in members])
        return self._known.get(names) or self._known.setdefault(names, self._counted(root, members, names))

    def _counted(self, root: Operator, members: Sequence[Operator], names: tuple[str, ...]) -> Part:
        inside = set(names)
        gives = self._sizes[root.name]
        brought = work = 0.0
        for member in members:
            for name, cost in zip(member.inputs, member.duckdb, strict=True):
                one = self._sizes[name]
                work += one.rate * cost.arriving + gives.slides * one.rows * cost.held
                if name not in inside:
                    brought += one.rate * one.width * self._prices(member).transfer_in
        statement = gives.slides * self._prices(root).statement
        out = gives.rate * gives.width * self._prices(root).transfer_out
        return Part(Engine.DUCKDB, names, brought + work + statement + out, brought, work, statement, out)

    def _prices(self, operator: Operator) -> Prices:
        return operator.prices or self._plan.prices
