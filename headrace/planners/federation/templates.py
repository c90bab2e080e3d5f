"""The queries that the paper measures its optimiser with, over one stream of smart plugs.

Section 8.2 (Table 2): n windows, the loads selected and averaged for each plug in each window, and the n
averages of a plug joined: 3n operators. Section 8.1 (Table 3): CQ1-CQ6, with a maximum that takes Spark
much more than an average, since it cannot be kept up incrementally.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from headrace.planners.federation.problem import (
    JoinEdge,
    Kind,
    Operator,
    Plan,
    Query,
    Relation,
    Stream,
    Window,
)

PLUGS = 2000.0
LOADS = 0.5
"""Half of the readings are loads, half are works."""
SAME_PLUG = 1 / PLUGS
ROW = 7.0
"""Columns of a reading."""
CHEAP = 2e-5
"""Seconds that Spark takes for a row of a sum, a count or an average."""
DEAR = 2e-4
"""Of a maximum."""
_BUSHY = 5


def averages_joined(ways: int, rate: float = 2000.0, agreeing: float = 1.0) -> Query:
    """Averages over the last 1, 3, 5, ... minutes, sliding every second. `agreeing`: the share of plugs for
    which the comparison of two averages holds; 1 where they are only put beside each other."""
    minutes = range(1, 2 * ways, 2)
    relations = tuple(Relation(f"avg{m}m", f"last{m}m", _chain(f"{m}m")) for m in minutes)
    joins = tuple(
        JoinEdge(a.name, b.name, SAME_PLUG * agreeing, key="plug")
        for i, a in enumerate(relations)
        for b in relations[i + 1 :]
    )
    top = (Operator("project", Kind.PROJECT, width=1.0 + ways),)
    return Query(_readings(rate), tuple(map(_window, minutes)), relations, joins, top)


def paper_tree(ways: int, rate: float = 2000.0) -> Plan:
    """The same with the join tree that the paper's optimiser must have made. It shows none, but the numbers
    of plans that Table 2 has for its pruning give it away: 312 is a join of 2 with a join of 3, and 8,411
    is that with the other three joined one by one. Up to 4 ways the trees are one by one too."""
    query = averages_joined(ways, rate)
    operators = [operator for relation in query.relations for operator in _attached(relation)]
    averages = [relation.chain[-1].name for relation in query.relations]
    if ways >= _BUSHY:
        second = _joined(operators, [averages.pop(2), averages.pop(2)], "right")
        averages[2:3] = [_joined(operators, [second, averages[2]], "both")]
        averages[:2] = [_joined(operators, averages[:2], "left")]
    last = _joined(operators, averages, "join")
    operators.append(replace(query.top[0], inputs=(last,)))
    return Plan(query.streams, query.windows, tuple(operators), prices=query.prices)


def _chain(label: str, cost: float = CHEAP) -> tuple[Operator, Operator]:
    return (
        Operator(f"select{label}", Kind.SELECT, selectivity=LOADS),
        Operator(f"aggregate{label}", Kind.AGGREGATE, groups=PLUGS, width=2.0, spark=(cost,)),
    )


def _attached(relation: Relation) -> Iterator[Operator]:
    below = relation.reads
    for operator in relation.chain:
        yield replace(operator, inputs=(below,))
        below = operator.name


def _joined(operators: list[Operator], names: Sequence[str], prefix: str) -> str:
    """Join them one by one; the name of the last join."""
    below = names[0]
    for i, name in enumerate(names[1:], 1):
        join = Operator(f"{prefix}{i}", Kind.JOIN, (below, name), left=SAME_PLUG, right=SAME_PLUG)
        operators.append(join)
        below = join.name
    return below


def plug_queries(rate: float = 2000.0) -> Mapping[str, Query]:
    """CQ1-CQ6. Which operators the paper's plans of them have is in its Figure 4, which is a picture; these
    are read off the sentences."""
    queries = {
        "CQ1": _above(rate, DEAR, 0.05),
        "CQ2": _above(rate, CHEAP, 0.5),
        "CQ3": _compared(rate, (5, 1), DEAR),
        "CQ4": _compared(rate, (5, 1), CHEAP),
        "CQ6": _compared(rate, (1, 3, 5), CHEAP),
    }
    largest = Operator("largest", Kind.AGGREGATE, groups=PLUGS / 5, width=2.0, spark=(DEAR,))
    total = Relation("totals", "last5m", _chain("5m", CHEAP))
    queries["CQ5"] = Query(
        _readings(rate), (_window(5),), (total,), top=(largest, Operator("project", Kind.PROJECT))
    )
    return dict(sorted(queries.items()))


def _above(rate: float, cost: float, share: float) -> Query:
    """How many loads are above a value that is computed from the same window: it is read twice."""
    relations = (Relation("loads", "last5m", _chain("")[:1]), Relation("value", "last5m", _chain("5m", cost)))
    top = (
        Operator("above", Kind.SELECT, selectivity=share),
        Operator("count", Kind.AGGREGATE, groups=PLUGS, width=2.0, spark=(CHEAP,)),
        Operator("project", Kind.PROJECT),
    )
    join = JoinEdge("loads", "value", SAME_PLUG)
    return Query(_readings(rate), (_window(5),), relations, (join,), top)


def _compared(rate: float, minutes: Sequence[int], cost: float) -> Query:
    relations = tuple(Relation(f"r{m}m", f"last{m}m", _chain(f"{m}m", cost)) for m in minutes)
    joins = tuple(
        JoinEdge(a.name, b.name, SAME_PLUG, key="plug")
        for i, a in enumerate(relations)
        for b in relations[i + 1 :]
    )
    top = (Operator("project", Kind.PROJECT, width=1.0 + len(minutes)),)
    return Query(_readings(rate), tuple(map(_window, minutes)), relations, joins, top)


def _readings(rate: float) -> tuple[Stream]:
    return (Stream("readings", rate),)


def _window(minutes: int) -> Window:
    return Window(f"last{minutes}m", "readings", 60.0 * minutes, 1.0, width=ROW)
