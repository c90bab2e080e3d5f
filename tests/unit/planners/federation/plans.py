"""Random federation problems: trees of all kinds of operators, cheap and dear ones, feasible and not."""

from __future__ import annotations

from random import Random

from headrace.plan.federated import Engine
from headrace.planners.federation.problem import (
    InDuckDB,
    JoinEdge,
    Kind,
    Movable,
    Operator,
    Plan,
    Prices,
    Query,
    Relation,
    Stream,
    Table,
    Unit,
    Window,
)

UNARY = (Kind.SELECT, Kind.PROJECT, Kind.AGGREGATE)


def random_plan(rng: Random, most: int = 10, *, unary: bool = False, fixed: float = 0.1) -> Plan:
    """A plan of up to `most` operators whose u are spread around 1, so that feasible and infeasible splits
    of it are mixed."""
    count = rng.randint(1, most)
    streams = tuple(Stream(f"s{i}", rng.uniform(1, 1000)) for i in range(rng.randint(1, 3)))
    windows, operators = list[Window](), list[Operator]()
    tables = (Table("t", rng.uniform(1, 100), rng.uniform(1, 4)),)
    unread: list[str] = []
    while len(operators) < count or len(unread) > 1:
        left = count - len(operators)
        fits = len(unread) <= left
        join = not unary and (not fits or len(unread) >= 2 or rng.random() < 0.3)
        kind = Kind.JOIN if join and (not fits or rng.random() < 0.6) else rng.choice(UNARY)
        inputs = tuple(_input(rng, unread, windows, streams, unary, left) for _ in range(kind.inputs))
        operators.append(_operator(rng, f"o{len(operators)}", kind, inputs, fixed))
        unread.append(operators[-1].name)
    cores = rng.choice((None, None, rng.uniform(0.5, 6)))
    plan = Plan(streams, tuple(windows), tuple(operators), tables, _prices(rng), cores)
    return _scaled(rng, plan)


def _input(
    rng: Random, unread: list[str], windows: list[Window], streams: tuple[Stream, ...], unary: bool, left: int
) -> str:
    if unread and (unary or len(unread) >= left or rng.random() < 0.6):
        return unread.pop(rng.randrange(len(unread)))
    if windows and rng.random() < 0.1:
        return "t"
    stream = rng.choice(streams)
    if rng.random() < 0.3:
        rows = rng.uniform(1, 200)
        window = Window(f"w{len(windows)}", stream.name, rows, rows / rng.uniform(1, 5), Unit.ROWS)
    else:
        window = Window(f"w{len(windows)}", stream.name, rng.uniform(1, 10), rng.choice((0.5, 1, 1, 1, 2)))
    windows.append(window)
    return window.name


def _operator(rng: Random, name: str, kind: Kind, inputs: tuple[str, ...], fixed: float) -> Operator:
    return Operator(
        name,
        kind,
        inputs,
        selectivity=rng.uniform(0.05, 1),
        left=rng.uniform(0, 0.02),
        right=rng.uniform(0, 0.02),
        groups=rng.uniform(1, 40),
        width=rng.choice((None, rng.uniform(0.5, 4))),
        spark=tuple(rng.uniform(0, 1) for _ in inputs),
        duckdb=tuple(InDuckDB(rng.uniform(0, 0.3), rng.uniform(0, 0.3)) for _ in inputs),
        engine=rng.choice(tuple(Engine)) if rng.random() < fixed else None,
        prices=_prices(rng) if rng.random() < 0.1 else None,
        rate=rng.uniform(1, 500) if rng.random() < 0.05 else None,
        size=rng.uniform(1, 500) if rng.random() < 0.05 else None,
    )


def _prices(rng: Random) -> Prices:
    return Prices(rng.uniform(0, 0.3), rng.uniform(0, 0.3), rng.uniform(0, 20))


def _scaled(rng: Random, plan: Plan) -> Plan:
    """Each operator's u on Spark, and what it does on DuckDB, somewhere between far below 1 and above it."""
    from dataclasses import replace

    from headrace.planners.federation.cost import operator_costs

    scale = 10 ** rng.uniform(-1, 0.5)
    operators = []
    for operator, cost in zip(plan.operators, operator_costs(plan), strict=True):
        spark = scale * rng.uniform(0.1, 1) / max(cost.spark, 1e-6)
        duckdb = scale * rng.uniform(0.05, 0.6) / max(cost.arriving + cost.slides * cost.held, 1e-6)
        carried = max(cost.out, *(enter for _, enter in cost.inputs), cost.slides * cost.statement, 1e-6)
        base = operator.prices or plan.prices
        way = scale * rng.uniform(0.02, 0.4) / carried
        prices = Prices(base.transfer_in * way, base.transfer_out * way, base.statement * way)
        operators.append(
            replace(
                operator,
                spark=tuple(c * spark for c in operator.spark),
                duckdb=tuple(InDuckDB(c.arriving * duckdb, c.held * duckdb) for c in operator.duckdb),
                prices=prices,
            )
        )
    return replace(plan, operators=tuple(operators))


def random_query(rng: Random, most: int = 5) -> Query:
    """Relations over one or more streams, joined along a random connected graph or one of two pieces."""
    count = rng.randint(1, most)
    streams = (Stream("s0", rng.uniform(1, 50)), Stream("s1", rng.uniform(1, 50)))
    windows = tuple(
        Window(f"w{i}", rng.choice(streams).name, rng.uniform(1, 10), rng.choice((1, 1, 2)))
        for i in range(count)
    )
    tables = (Table("t", rng.uniform(1, 20)),)
    relations = tuple(
        Relation(f"r{i}", "t" if i and rng.random() < 0.15 else f"w{i}", _chain(rng, i)) for i in range(count)
    )
    top = (Operator("last", Kind.PROJECT, spark=(rng.uniform(0, 0.01),)),) if rng.random() < 0.5 else ()
    cores = rng.choice((None, None, rng.uniform(0.5, 4)))
    query = Query(streams, windows, relations, _edges(rng, count), top, tables=tables, cores=cores)
    return query if rng.random() < 0.5 else _with_movable(rng, query)


def _chain(rng: Random, i: int) -> tuple[Operator, ...]:
    if rng.random() < 0.5:
        return ()
    f = rng.uniform(0.1, 1)
    return (Operator(f"sel{i}", Kind.SELECT, selectivity=f, spark=(rng.uniform(0, 0.02),)),)


def _edges(rng: Random, count: int) -> tuple[JoinEdge, ...]:
    found = []
    for i in range(1, count):
        if rng.random() < 0.9:
            found.append(_edge(rng, rng.randrange(i), i))
        if i > 1 and rng.random() < 0.3:
            found.append(_edge(rng, 0, i))
    return tuple(found)


def _edge(rng: Random, left: int, right: int) -> JoinEdge:
    key = rng.choice((None, None, "k"))
    selectivity = 0.03 if key else rng.uniform(0.001, 0.2)
    return JoinEdge(f"r{left}", f"r{right}", selectivity, key, spark=rng.uniform(0.001, 0.02))


def _with_movable(rng: Random, query: Query) -> Query:
    from dataclasses import replace

    names = [relation.name for relation in query.relations]
    over = frozenset({names[0]})
    beyond = frozenset(name for name in names[1:] if rng.random() < 0.6)
    aggregate = Operator("agg", Kind.AGGREGATE, groups=rng.uniform(1, 30), spark=(rng.uniform(0, 0.02),))
    return replace(query, movable=(Movable(aggregate, over, beyond),))
