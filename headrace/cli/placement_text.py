"""The answer to a placement problem, to read: a line for each query, then the totals."""

from __future__ import annotations

from rich.text import Text

from headrace.cli.render import out, table
from headrace.service.solve import PlacementAnswer, QueryData, TreeNode

_MOST_QUERIES = 40
_NUMBERS = frozenset({"added cost", "plans", "ms"})


def print_placement(answer: PlacementAnswer) -> None:
    console = out()
    queries = answer["queries"]
    rows = [_cells(query) for query in queries[:_MOST_QUERIES]]
    console.print(table(("query", "added cost", "plans", "ms", "deployment"), rows, _NUMBERS))
    if len(queries) > _MOST_QUERIES:
        more = f"... and {len(queries) - _MOST_QUERIES:,} more queries; --json gives all"
        console.print(Text(more, style="dim"))
    console.print()
    for line in _summary(answer):
        console.print(line)


def tree_text(tree: TreeNode) -> str:
    """Joins as (left*right)@site, a stream that runs already in brackets: ((A*B)@n3*[C*D]@n5)@n7."""
    if "stream" in tree:
        return tree["stream"]
    if "reused" in tree:
        return f"[{'*'.join(tree['reused'])}]@{tree['site']}"
    return f"({'*'.join(map(tree_text, tree['join']))})@{tree['site']}"


def _cells(query: QueryData) -> tuple[str, ...]:
    return (
        str(query["id"]),
        _figure(query["added_cost"]),
        _count(query["plans_examined"]),
        f"{query['seconds'] * 1000:.2f}",
        f"{tree_text(query['tree'])} -> {query['sink']}",
    )


def _summary(answer: PlacementAnswer) -> list[Text]:
    queries, bound = answer["queries"], answer.get("lower_bound")
    reused = sum(len(query["reused"]) for query in queries)
    proven = sum(query["certified"] for query in queries)
    lines = [Text(f"total {_figure(answer['total_cost'])}", style="bold")]
    if bound is not None:
        lines.append(Text(f"lower bound of the total {_figure(bound)}"))
    legend = ", as [stream]@site" if reused else ""
    joins = f"{_number(answer['operators'], 'new join')}, {_number(reused, 'reused stream')}{legend}"
    lines.append(Text(joins))
    lines.append(Text(f"cheapest, given the queries above it: {_proven(proven, len(queries))}"))
    lines.append(_times(answer))
    return [*lines, *(Text(f"{name}: {note}") for name, note in answer.get("notes", {}).items())]


def _proven(proven: int, queries: int) -> str:
    if proven == queries:
        return "proven for every query"
    return f"proven for {proven:,} of {queries:,} queries" if proven else "not proven"


def _times(answer: PlacementAnswer) -> Text:
    prepared = f"{answer['prepare_seconds'] * 1000:.1f} ms to prepare the network"
    line = Text(f"{answer['planner']}, {answer['seconds'] * 1000:.1f} ms (and {prepared}")
    if answer["compile_seconds"] >= 0.01:
        line.append(f", {answer['compile_seconds']:.2f} s to compile or load the kernels, once")
    return line.append(")")


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _count(value: int) -> str:
    return f"{value:,}" if value < 10**7 else f"{value:.2e}"


def _figure(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.6g}"
