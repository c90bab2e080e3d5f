"""Results by a formula: a batch of 10 s takes `fixed + slope * rate` seconds, and twice that in CPU."""

from __future__ import annotations

from headrace.experiments.federation.cases import TABLE_2, TABLE_3
from headrace.experiments.federation.results import AnyRow, Choice, Results, Run, Search

RATES = (1000, 5000, 20000)
SPLITS = {
    "sssss": (("spark",), 1.0, 0.01),
    "ddddd": (("duckdb",), 1.0, 0.001),
    "ssddd": (("select",), 1.0, 0.0002),
}
"""Spark alone keeps up with 900 rows/s, DuckDB alone with 9,000, the other with 45,000."""


def search(query: str, operators: int = 5, plans: int = 4) -> Search:
    return Search(query, operators, 0.5, 1.0, plans, 20, 100.0, 2.0)


def searches() -> list[AnyRow]:
    rows: list[AnyRow] = [
        Search(f"{ways}-way join", 3 * ways, 1.0, 2.0, 4, plans, 90.0, 2.0, plans)
        for ways, (plans, _, _) in TABLE_2.items()
    ]
    return [*rows, *map(search, TABLE_3), search("4 unary", 4, 5), search("10 unary", 10, 11)]


def run(query: str, rate: int, split: str, problem: str = "", batches: int = 3) -> Run:
    names, fixed, slope = SPLITS[split]
    seconds = fixed + slope * rate
    done = 0 if problem else batches
    return Run(
        query,
        rate,
        split,
        names,
        10,
        2,
        tuple(seconds for _ in range(done)),
        tuple(2 * seconds for _ in range(done)),
        0.0,
        1 << 30,
        problem,
        100,
        rate == RATES[0],
        seconds / 10,
        seconds / 5,
    )


def choice(query: str, rate: int, split: str, *, check: bool = True) -> Choice:
    return Choice(query, rate, check, split, split, 0.5, 0.7)


def results(
    chosen: str = "ssddd",
    unchecked: str = "ssddd",
    left_out: tuple[tuple[int, str], ...] = (),
    clock: str = "wall",
) -> Results:
    """The same for all six queries; `left_out` are rates and splits that were not run."""
    rows = searches()
    for query in TABLE_3:
        for rate in RATES:
            rows += [choice(query, rate, chosen), choice(query, rate, unchecked, check=False)]
            rows += [run(query, rate, split) for split in SPLITS if (rate, split) not in left_out]
    return Results(tuple(rows), {"command": "made up", "seconds": 1.0, "clock": clock})
