"""The operators of a federation problem, read from a file: kinds, inputs, selectivities, unit costs,
prices."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from headrace.ids import did_you_mean
from headrace.service.problem_file import ProblemFile, Trail, described, shown

if TYPE_CHECKING:
    from headrace.plan.federated import Engine
    from headrace.planners.federation.problem import InDuckDB, Kind, Operator, Prices, UnitCost

LARGEST = 1e12
"""Of rates, ranges, widths, groups and costs."""
_OWN: Mapping[str, tuple[str, ...]] = {
    "select": ("selectivity",),
    "project": (),
    "join": ("selectivity", "left", "right"),
    "aggregate": ("groups",),
}
"""What only operators of a kind have."""
_ANY = ("selectivity", "left", "right", "groups")
_EVERY = ("width", "spark", "duckdb", "engine", "prices", "rate", "size")
OPERATOR_KEYS = ("id", "kind", "inputs", *_ANY, *_EVERY)


class OperatorReader:
    """Reads with the prices and the unit costs of one problem, and knows the names that were given:
    windows, tables and operators have one space of names."""

    def __init__(self, file: ProblemFile, body: Mapping[str, object]) -> None:
        self.file = file
        self._names: dict[str, Trail] = {}
        self.prices = self._given_prices(body)
        self.costs = self._given_costs(body)

    def operator(self, item: object, trail: Trail, *, attached: bool) -> Operator:
        """`attached`: it says what it reads."""
        from headrace.planners.federation.problem import Kind, Operator

        given = self.file.mapping(item, trail, ("id", "kind"), ("inputs", *_ANY, *_EVERY))
        kind = Kind(self.known(given["kind"], (*trail, "kind"), list(Kind), "kind"))
        self._check_keys(given, trail, kind, attached=attached)
        left, right = self._shares(given, trail, kind)
        return Operator(
            self.new_name(given["id"], (*trail, "id")),
            kind,
            self._inputs(given["inputs"], (*trail, "inputs"), kind) if attached else (),
            selectivity=left if kind is Kind.SELECT else 1.0,
            left=left if kind is Kind.JOIN else 1.0,
            right=right if kind is Kind.JOIN else 1.0,
            groups=self.number(given, "groups", trail) if kind is Kind.AGGREGATE else 1.0,
            width=self._maybe(given, "width", trail),
            spark=self._on_spark(given, trail, kind),
            duckdb=self._on_duckdb(given, trail, kind),
            engine=self.engine(given, trail),
            prices=self._own_prices(given, trail),
            rate=self._maybe(given, "rate", trail),
            size=self._maybe(given, "size", trail),
        )

    def _check_keys(self, given: Mapping[str, object], trail: Trail, kind: Kind, *, attached: bool) -> None:
        if not attached and kind == "join":
            hint = "Conditions of joins stand in joins."
            raise self.file.wrong((*trail, "kind"), f"{shown(trail)} cannot be a join", hint)
        if attached and "inputs" not in given:
            raise self.file.wrong(trail, f'"inputs" is missing in {shown(trail)}')
        if not attached and "inputs" in given:
            hint = "It stands on what is before it."
            raise self.file.wrong((*trail, "inputs"), f"{shown(trail)} names inputs", hint, at_key=True)
        for key in given:
            if key in _ANY and key not in _OWN[kind]:
                message = f'{shown(trail)} has the key "{key}", which no {kind} has'
                raise self.file.wrong((*trail, key), message, at_key=True)

    def _inputs(self, value: object, trail: Trail, kind: Kind) -> tuple[str, ...]:
        items = self.file.items(value, trail)
        if len(items) != kind.inputs:
            count = "1 input" if kind.inputs == 1 else f"{kind.inputs} inputs"
            raise self.file.wrong(trail, f"{shown(trail)}: a {kind} has {count}, not {len(items)}")
        return tuple(self.text(item, (*trail, i)) for i, item in enumerate(items))

    def _shares(self, given: Mapping[str, object], trail: Trail, kind: Kind) -> tuple[float, float]:
        """Selectivities: of a selection the first, of a join the left and the right one."""
        if kind in ("project", "aggregate"):
            return 1.0, 1.0
        if "selectivity" in given or kind == "select":
            for key in ("left", "right"):
                if key in given:
                    raise self.file.wrong(
                        (*trail, key), f"{shown((*trail, key))} is given beside selectivity"
                    )
            share = self.share(given, "selectivity", trail)
            return share, share
        return self.share(given, "left", trail), self.share(given, "right", trail)

    def share(self, given: Mapping[str, object], key: str, trail: Trail) -> float:
        if key not in given:
            raise self.file.wrong(trail, f'"{key}" is missing in {shown(trail)}')
        return self.file.amount(given[key], (*trail, key), 1)

    def _on_spark(self, given: Mapping[str, object], trail: Trail, kind: Kind) -> tuple[float, ...]:
        values = self._per_input(given, "spark", trail, kind)
        if values is None:
            return (self.costs[kind].spark,) * kind.inputs
        return tuple(self.file.amount(value, place, LARGEST) for value, place in values)

    def _on_duckdb(self, given: Mapping[str, object], trail: Trail, kind: Kind) -> tuple[InDuckDB, ...]:
        values = self._per_input(given, "duckdb", trail, kind)
        if values is None:
            return (self.costs[kind].duckdb,) * kind.inputs
        return tuple(self.in_duckdb(value, place) for value, place in values)

    def _per_input(
        self, given: Mapping[str, object], key: str, trail: Trail, kind: Kind
    ) -> list[tuple[object, Trail]] | None:
        """One value for all inputs, or a list with one for each."""
        if key not in given:
            return None
        value, place = given[key], (*trail, key)
        if not isinstance(value, list):
            return [(value, place)] * kind.inputs
        if len(value) != kind.inputs:
            raise self.file.wrong(
                place, f"{shown(place)} must have one cost for each input, not {len(value)}"
            )
        return [(one, (*place, i)) for i, one in enumerate(value)]

    def in_duckdb(self, value: object, trail: Trail) -> InDuckDB:
        from headrace.planners.federation.problem import InDuckDB

        given = self.file.mapping(value, trail, (), ("arriving", "held"))
        return InDuckDB(self.number(given, "arriving", trail, 0.0), self.number(given, "held", trail, 0.0))

    def engine(self, given: Mapping[str, object], trail: Trail) -> Engine | None:
        from headrace.plan.federated import Engine

        if "engine" not in given:
            return None
        return Engine(self.known(given["engine"], (*trail, "engine"), list(Engine), "engine"))

    def _own_prices(self, given: Mapping[str, object], trail: Trail) -> Prices | None:
        return (
            self._read_prices(given["prices"], (*trail, "prices"), self.prices) if "prices" in given else None
        )

    def _given_prices(self, body: Mapping[str, object]) -> Prices:
        from headrace.planners.federation.problem import Prices

        return self._read_prices(body.get("prices", {}), ("prices",), Prices())

    def _read_prices(self, value: object, trail: Trail, otherwise: Prices) -> Prices:
        from headrace.planners.federation.problem import Prices

        given = self.file.mapping(value, trail, (), ("transfer_in", "transfer_out", "statement"))
        return Prices(
            self.number(given, "transfer_in", trail, otherwise.transfer_in),
            self.number(given, "transfer_out", trail, otherwise.transfer_out),
            self.number(given, "statement", trail, otherwise.statement),
        )

    def _given_costs(self, body: Mapping[str, object]) -> Mapping[Kind, UnitCost]:
        """Unit costs by kind, for operators that give none."""
        from headrace.planners.federation.problem import DEFAULT_COSTS, Kind, UnitCost

        found = dict(DEFAULT_COSTS)
        given = self.file.mapping(body.get("costs", {}), ("costs",), (), list(Kind))
        for name, value in given.items():
            kind, trail = Kind(name), ("costs", name)
            cost = self.file.mapping(value, trail, (), ("spark", "duckdb"))
            spark = self.number(cost, "spark", trail, found[kind].spark)
            duckdb = found[kind].duckdb
            if "duckdb" in cost:
                duckdb = self.in_duckdb(cost["duckdb"], (*trail, "duckdb"))
            found[kind] = UnitCost(spark, duckdb)
        return found

    def text(self, value: object, trail: Trail) -> str:
        if not isinstance(value, str) or not value:
            raise self.file.wrong(trail, f"{shown(trail)} must be a text, not {described(value)}")
        return value

    def names(self) -> frozenset[str]:
        return frozenset(self._names)

    def new_name(self, value: object, trail: Trail) -> str:
        name = self.text(value, trail)
        if name in self._names:
            where = shown(self._names[name][:-1])
            raise self.file.wrong(trail, f'{shown(trail)}: "{name}" is taken', f"{where} has it too.")
        self._names[name] = trail
        return name

    def known(self, value: object, trail: Trail, known: Collection[str], what: str) -> str:
        name = self.text(value, trail)
        if name not in known:
            hint = did_you_mean(name, map(str, known), f"{what}s")
            raise self.file.wrong(trail, f'{shown(trail)}: there is no {what} "{name}"', hint)
        return name

    def number(
        self, given: Mapping[str, object], key: str, trail: Trail, otherwise: float | None = None
    ) -> float:
        if key not in given and otherwise is not None:
            return otherwise
        if key not in given:
            raise self.file.wrong(trail, f'"{key}" is missing in {shown(trail)}')
        return self.file.amount(given[key], (*trail, key), LARGEST)

    def _maybe(self, given: Mapping[str, object], key: str, trail: Trail) -> float | None:
        return self.number(given, key, trail) if key in given else None
