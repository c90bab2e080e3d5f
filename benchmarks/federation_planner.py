"""The optimiser of federation: Tables 2 and 3 of the paper, its numbers and ours.

    python -m benchmarks.federation_planner [--runs 10] [--json FILE]

Table 2: the n-way join of averages (3n operators). "Plans" are complete plans compared at the root in phase
two, on the join tree that phase one makes, and on the one that the paper's numbers give away
(`paper_tree`). Table 3: CQ1-CQ6. Milliseconds are processor time of one thread, the median of the runs, as
in the paper; both phases start from the problem as data.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.machine import describe
from headrace.planners.federation.phase_one import best_logical_plan
from headrace.planners.federation.phase_two import search
from headrace.planners.federation.problem import Options, Plan, Query
from headrace.planners.federation.solve import solve
from headrace.planners.federation.templates import averages_joined, paper_tree, plug_queries


@dataclass(frozen=True)
class Row:
    query: str
    operators: int
    phase_one_ms: float
    phase_two_ms: float
    plans: int
    """Ours examines, on our tree."""
    plans_by_paper: int
    """With the paper's pruning, on our tree."""
    phase_two_by_paper_ms: float
    split: str
    paper_ms: float | None
    """What the paper reports for both phases."""
    paper_plans: int | None = None
    plans_on_paper_tree: int | None = None
    plans_by_paper_on_paper_tree: int | None = None

    @property
    def total_ms(self) -> float:
        return self.phase_one_ms + self.phase_two_ms


TABLE_2: Mapping[int, tuple[int, float]] = {2: (11, 13.2), 5: (312, 977.1), 8: (8411, 61436.0)}
"""Plans examined and total time in milliseconds that the paper reports."""
TABLE_3: Mapping[str, float] = {
    "CQ1": 9.0,
    "CQ2": 8.8,
    "CQ3": 12.27,
    "CQ4": 11.66,
    "CQ5": 23.8,
    "CQ6": 64.1,
}


def measured(name: str, query: Query, runs: int, paper_ms: float | None) -> Row:
    answers = [solve(query, Options(runners=0), time.process_time) for _ in range(runs)]
    by_paper = [solve(query, Options(pruning="paper", runners=0), time.process_time) for _ in range(runs)]
    one = answers[0]
    return Row(
        query=name,
        operators=len(one.plan.operators),
        phase_one_ms=1e3 * statistics.median(answer.phase_one_seconds for answer in answers),
        phase_two_ms=1e3 * statistics.median(answer.phase_two_seconds for answer in answers),
        plans=one.examined,
        plans_by_paper=by_paper[0].examined,
        phase_two_by_paper_ms=1e3 * statistics.median(answer.phase_two_seconds for answer in by_paper),
        split="".join(engine[0].upper() for engine in one.split.engines),
        paper_ms=paper_ms,
    )


def examined(plan: Plan, options: Options) -> int:
    return search(plan, options).examined


def table_2(runs: int) -> list[Row]:
    rows = []
    for ways, (plans, total) in TABLE_2.items():
        row = asdict(measured(f"{ways}-way join", averages_joined(ways), runs, total))
        tree = paper_tree(ways)
        row["paper_plans"] = plans
        row["plans_on_paper_tree"] = examined(tree, Options())
        row["plans_by_paper_on_paper_tree"] = examined(tree, Options(pruning="paper"))
        rows.append(Row(**row))
    return rows


def shape(plan: Plan) -> str:
    """Which averages a join tree puts together, as brackets."""
    text: dict[str, str] = {}
    for operator in plan.operators:
        below = [text.get(name, "") for name in operator.inputs]
        text[operator.name] = f"({' '.join(below)})" if len(below) > 1 else below[0] or "."
    return text[plan.operators[-1].name]


def print_table_2(rows: list[Row]) -> None:
    print(f"{'Table 2':>58}", *(f"{row.query:>12}" for row in rows))

    def line(label: str, values: list[object]) -> None:
        print(
            f"{label:>58}",
            *(f"{value:>12,.4g}" if isinstance(value, float) else f"{value:>12,}" for value in values),
        )

    line("operators", [row.operators for row in rows])
    line("plans without pruning", [2**row.operators for row in rows])
    line("plans examined: the paper", [row.paper_plans for row in rows])
    line("the paper's pruning, its join tree", [row.plans_by_paper_on_paper_tree for row in rows])
    line("the paper's pruning, our join tree", [row.plans_by_paper for row in rows])
    line("our pruning, the paper's join tree", [row.plans_on_paper_tree for row in rows])
    line("our pruning, our join tree", [row.plans for row in rows])
    line("total ms: the paper", [row.paper_ms for row in rows])
    line("phase one ms", [row.phase_one_ms for row in rows])
    line("phase two ms with the paper's pruning", [row.phase_two_by_paper_ms for row in rows])
    line("phase two ms", [row.phase_two_ms for row in rows])
    line("total ms", [row.total_ms for row in rows])
    for row, ways in zip(rows, TABLE_2, strict=True):
        ours = shape(best_logical_plan(averages_joined(ways)).plan)
        print(f"{row.query}: our join tree {ours}, the paper's {shape(paper_tree(ways))}")


def print_table_3(rows: list[Row]) -> None:
    print(f"{'Table 3':8}{'operators':>10}{'paper ms':>10}{'total ms':>10}{'plans':>7}{'2^n':>9}  engines")
    for row in rows:
        print(
            f"{row.query:8}{row.operators:10}{row.paper_ms:10.4g}{row.total_ms:10.3g}{row.plans:7}"
            f"{2**row.operators:9,}  {row.split}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine = describe(datetime.now(), os.environ)
    print("\n".join(machine.lines()) + "\n")
    second = table_2(options.runs)
    print_table_2(second)
    third = [measured(name, query, options.runs, TABLE_3[name]) for name, query in plug_queries().items()]
    print()
    print_table_3(third)
    if options.json:
        found = {"machine": asdict(machine), "table 2": [asdict(row) for row in second]}
        found["table 3"] = [asdict(row) for row in third]
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
