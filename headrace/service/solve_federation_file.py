"""The federation problem in a file: read strictly, each wrong value told with its place.

It is a plan (`operators`) or a query whose joins are to be ordered (`relations`, `joins`, `movable`, `top`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.ids import did_you_mean
from headrace.service.problem_file import ProblemFile, Trail, shown
from headrace.service.solve_federation_operators import LARGEST, OperatorReader

if TYPE_CHECKING:
    from headrace.planners.federation.problem import (
        JoinEdge,
        Movable,
        Operator,
        Plan,
        Query,
        Relation,
        Stream,
        Table,
        Window,
    )

MOST_OPERATORS = 200
MOST_RELATIONS = 12
REQUIRED = ("streams", "windows")
OF_PLAN = ("operators",)
OF_QUERY = ("relations", "joins", "movable", "top")
SHARED = ("tables", "prices", "costs", "cores")
OPTIONAL = (*OF_PLAN, *OF_QUERY, *SHARED)


def read_federation(file: ProblemFile) -> Plan | Query:
    """Raises UserError at the place of what is wrong."""
    return _Reader(file).problem()


class _Reader:
    def __init__(self, file: ProblemFile) -> None:
        self._file = file
        self._body = file.mapping(file.body(), (), REQUIRED, OPTIONAL)
        self._read = OperatorReader(file, self._body)

    def problem(self) -> Plan | Query:
        body = self._body
        if ("operators" in body) == ("relations" in body):
            both = "both operators and relations are"
            both = both if "operators" in body else "neither operators nor relations are"
            raise self._file.wrong((), f"{both} given", "Give one of them: a plan, or what is to be joined.")
        for key in OF_QUERY:
            if "operators" in body and key in body:
                hint = "The joins of a plan are ordered already."
                raise self._file.wrong((key,), f"{key} is given beside operators", hint, at_key=True)
        return self._plan(body) if "operators" in body else self._query(body)

    def _plan(self, body: Mapping[str, object]) -> Plan:
        from headrace.planners.federation.problem import Plan

        leaves = self._leaves(body)
        readable = self._read.names()
        items = self._list(body, "operators", "operator", MOST_OPERATORS)
        operators = [
            self._read.operator(item, ("operators", i), attached=True) for i, item in enumerate(items)
        ]
        ordered = _Tree(self._file, operators, readable).ordered()
        return Plan(leaves[0], leaves[1], ordered, leaves[2], self._read.prices, self._cores(body))

    def _query(self, body: Mapping[str, object]) -> Query:
        from headrace.planners.federation.problem import Kind, Query

        streams, windows, tables = self._leaves(body)
        readable = self._read.names()
        relations = tuple(
            self._relation(item, ("relations", i), readable)
            for i, item in enumerate(self._list(body, "relations", "relation", MOST_RELATIONS))
        )
        self._check_relations(relations)
        known = [relation.name for relation in relations]
        joins = tuple(
            self._join(item, ("joins", i), known) for i, item in enumerate(self._some(body, "joins"))
        )
        movable = tuple(
            self._movable(item, ("movable", i), known) for i, item in enumerate(self._some(body, "movable"))
        )
        self._check_movable(movable)
        top = self._chain(body.get("top", []), ("top",))
        if len(relations) == 1 and not (relations[0].chain or movable or top):
            raise self._file.wrong(("relations",), "the query has no operator")
        count = len(relations) - 1 + sum(len(one.chain) for one in relations) + len(movable) + len(top)
        if count > MOST_OPERATORS:
            message = f"operators, with a join for each relation but one, must be at most {MOST_OPERATORS}"
            raise self._file.wrong(("relations",), f"{message}, not {count:,}")
        prices, cores, cross = self._read.prices, self._cores(body), self._read.costs[Kind.JOIN]
        return Query(streams, windows, relations, joins, top, movable, tables, prices, cores, cross)

    def _leaves(
        self, body: Mapping[str, object]
    ) -> tuple[tuple[Stream, ...], tuple[Window, ...], tuple[Table, ...]]:
        streams = tuple(
            self._stream(item, ("streams", i)) for i, item in enumerate(self._list(body, "streams", "stream"))
        )
        names = [stream.name for stream in streams]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise self._file.wrong(("streams", i, "id"), f'two streams have the id "{name}"')
        windows = tuple(
            self._window(item, ("windows", i), names)
            for i, item in enumerate(self._list(body, "windows", "window"))
        )
        tables = tuple(self._table(item, ("tables", i)) for i, item in enumerate(self._some(body, "tables")))
        return streams, windows, tables

    def _stream(self, item: object, trail: Trail) -> Stream:
        from headrace.planners.federation.problem import Stream

        given = self._file.mapping(item, trail, ("id", "rate"))
        return Stream(self._read.text(given["id"], (*trail, "id")), self._read.number(given, "rate", trail))

    def _window(self, item: object, trail: Trail, streams: Collection[str]) -> Window:
        from headrace.planners.federation.problem import Unit, Window

        given = self._file.mapping(item, trail, ("id", "stream", "range", "slide"), ("unit", "width"))
        return Window(
            self._read.new_name(given["id"], (*trail, "id")),
            self._read.known(given["stream"], (*trail, "stream"), streams, "stream"),
            self._file.number(given["range"], (*trail, "range"), 0, LARGEST),
            self._file.number(given["slide"], (*trail, "slide"), 1 / LARGEST, LARGEST),
            Unit(self._read.known(given.get("unit", "time"), (*trail, "unit"), list(Unit), "unit")),
            self._read.number(given, "width", trail, 1.0),
        )

    def _table(self, item: object, trail: Trail) -> Table:
        from headrace.planners.federation.problem import Table

        given = self._file.mapping(item, trail, ("id", "rows"), ("width",))
        name = self._read.new_name(given["id"], (*trail, "id"))
        return Table(
            name, self._read.number(given, "rows", trail), self._read.number(given, "width", trail, 1.0)
        )

    def _cores(self, body: Mapping[str, object]) -> float | None:
        value = body.get("cores")
        return None if value is None else self._file.number(value, ("cores",), 1e-6, LARGEST)

    def _relation(self, item: object, trail: Trail, readable: Collection[str]) -> Relation:
        from headrace.planners.federation.problem import Relation

        given = self._file.mapping(item, trail, ("id", "reads"), ("chain",))
        name = self._read.text(given["id"], (*trail, "id"))
        reads = self._read.known(given["reads"], (*trail, "reads"), readable, "window or table")
        return Relation(name, reads, self._chain(given.get("chain", []), (*trail, "chain")))

    def _check_relations(self, relations: Sequence[Relation]) -> None:
        names = [relation.name for relation in relations]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise self._file.wrong(("relations", i, "id"), f'two relations have the id "{name}"')

    def _chain(self, value: object, trail: Trail) -> tuple[Operator, ...]:
        items = self._file.items(value, trail)
        return tuple(self._read.operator(item, (*trail, i), attached=False) for i, item in enumerate(items))

    def _join(self, item: object, trail: Trail, relations: Sequence[str]) -> JoinEdge:
        from headrace.planners.federation.problem import JoinEdge, Kind

        given = self._file.mapping(
            item, trail, ("left", "right", "selectivity"), ("key", "spark", "duckdb", "engine")
        )
        left, right = (
            self._read.known(given[k], (*trail, k), relations, "relation") for k in ("left", "right")
        )
        if left == right:
            raise self._file.wrong((*trail, "right"), f"{shown(trail)} joins {left} with itself")
        key = self._read.text(given["key"], (*trail, "key")) if "key" in given else None
        default = self._read.costs[Kind.JOIN]
        duckdb = default.duckdb
        if "duckdb" in given:
            duckdb = self._read.in_duckdb(given["duckdb"], (*trail, "duckdb"))
        spark = self._read.number(given, "spark", trail, default.spark)
        share = self._read.share(given, "selectivity", trail)
        return JoinEdge(left, right, share, key, spark, duckdb, self._read.engine(given, trail))

    def _movable(self, item: object, trail: Trail, relations: Sequence[str]) -> Movable:
        from headrace.planners.federation.problem import Kind, Movable

        given = self._file.mapping(item, trail, ("operator", "over"), ("beyond",))
        operator = self._read.operator(given["operator"], (*trail, "operator"), attached=False)
        if operator.kind is not Kind.AGGREGATE:
            raise self._file.wrong((*trail, "operator", "kind"), f"{shown(trail)} must be an aggregate")
        over = self._relations(given["over"], (*trail, "over"), relations, "relation")
        beyond = self._relations(given.get("beyond", []), (*trail, "beyond"), relations)
        return Movable(operator, over, beyond)

    def _relations(self, value: object, trail: Trail, known: Sequence[str], one: str = "") -> frozenset[str]:
        items = self._file.items(value, trail, one)
        return frozenset(
            self._read.known(item, (*trail, i), known, "relation") for i, item in enumerate(items)
        )

    def _check_movable(self, movable: Sequence[Movable]) -> None:
        """An aggregate on an aggregate has one order only, which `movable` cannot say."""
        taken: set[str] = set()
        for i, one in enumerate(movable):
            if one.over & taken:
                both = ", ".join(sorted(one.over & taken))
                raise self._file.wrong(("movable", i, "over"), f"two movable aggregates are over {both}")
            taken |= one.over

    def _list(self, body: Mapping[str, object], key: str, one: str, most: int = 10_000) -> list[object]:
        items = self._file.items(body[key], (key,), one)
        if len(items) > most:
            raise self._file.wrong((key,), f"{key} must be at most {most:,}, not {len(items):,}")
        return items

    def _some(self, body: Mapping[str, object], key: str) -> list[object]:
        return self._file.items(body.get(key, []), (key,))


class _Tree:
    """The operators of a plan, brought into order: each after what it reads."""

    def __init__(self, file: ProblemFile, operators: Sequence[Operator], leaves: Collection[str]) -> None:
        self._file, self._leaves = file, leaves
        self._at = {operator.name: i for i, operator in enumerate(operators)}
        self._operators = operators

    def ordered(self) -> tuple[Operator, ...]:
        """Raises UserError where it is no tree."""
        reader = self._readers()
        roots = [name for name in self._at if name not in reader]
        if len(roots) != 1:
            shown_ = ", ".join(roots) or "none"
            hint = f"Read by no other are: {shown_}."
            raise self._file.wrong(("operators",), "exactly one operator must be read by no other", hint)
        found: list[Operator] = []
        self._visit(roots[0], found)
        if len(found) < len(self._operators):
            within = {operator.name for operator in found}
            at = next(i for i, operator in enumerate(self._operators) if operator.name not in within)
            message = f"operators[{at}] reads, in the end, itself"
            raise self._file.wrong(("operators", at, "inputs"), message)
        return tuple(found)

    def _readers(self) -> Mapping[str, int]:
        reader: dict[str, int] = {}
        for i, operator in enumerate(self._operators):
            for k, name in enumerate(operator.inputs):
                trail: Trail = ("operators", i, "inputs", k)
                if name in self._leaves:
                    continue
                if name not in self._at:
                    known = [*self._at, *self._leaves]
                    hint = did_you_mean(name, known, "inputs")
                    raise self._file.wrong(trail, f'{shown(trail)}: there is no input "{name}"', hint)
                if name in reader:
                    message = f'{shown(trail)}: "{name}" is read already, by operators[{reader[name]}]'
                    hint = "A plan is a tree; write the operator twice, with two names."
                    raise self._file.wrong(trail, message, hint)
                reader[name] = i
        return reader

    def _visit(self, name: str, found: list[Operator]) -> None:
        operator = self._operators[self._at[name]]
        for below in operator.inputs:
            if below in self._at:
                self._visit(below, found)
        found.append(operator)
