"""The answer to a distribution problem, to read: what runs where, how full sites are, what moves and why."""

from __future__ import annotations

from rich.text import Text

from headrace.cli.render import out, table
from headrace.service.solve_distribution import DistributionAnswer, MoveData, SiteData
from headrace.service.telling import counted, first_of

_MOST_SITES = 50
_MOST_MOVES = 40
_MOST_NAMES = 8
_NUMBERS = frozenset(
    {"load", "cost", "before", "connections", "max per site", "max load", "gain", "rows held"}
)


def print_distribution(answer: DistributionAnswer) -> None:
    console = out()
    moves = answer.get("moves", [])
    if moves:
        cells = [_move_cells(move) for move in moves[:_MOST_MOVES]]
        console.print(table(("move", "from", "to", "gain", "rows held", "why"), cells, _NUMBERS))
        _more(len(moves) - _MOST_MOVES, "moves")
        console.print()
    costed = "moves" in answer
    rows = [_site_cells(site, costed=costed) for site in answer["sites"][:_MOST_SITES]]
    costs = ("before", "cost") if costed else ()
    console.print(table(("site", "load", *costs, "connections", "operators"), rows, _NUMBERS))
    _more(len(answer["sites"]) - _MOST_SITES, "sites")
    console.print()
    if "compared" in answer:
        console.print(
            table(("pattern", "connections", "max per site", "max load"), _compared(answer), _NUMBERS)
        )
        console.print()
    for line in _summary(answer):
        console.print(line)


def _move_cells(move: MoveData) -> tuple[str, ...]:
    return (
        first_of(move["operators"], _MOST_NAMES),
        move["from"],
        move["to"],
        f"{move['gain']:,.4g}",
        f"{move['cost']:,.4g}",
        move["why"],
    )


def _site_cells(site: SiteData, *, costed: bool) -> tuple[str, ...]:
    costs = (_percent(site.get("cost_before")), _percent(site.get("cost"))) if costed else ()
    return (
        site["id"],
        f"{site['load']:.1%}",
        *costs,
        f"{site['connections']:,}",
        first_of(site["operators"], _MOST_NAMES),
    )


def _compared(answer: DistributionAnswer) -> list[tuple[str, ...]]:
    own = answer["connections"]
    rows = {
        answer["planner"]: (own["total"], own["max_per_site"], answer["max_load"]),
        **{
            name: (one["connections"], one["max_per_site"], one["max_load"])
            for name, one in answer.get("compared", {}).items()
            if name != answer["planner"]
        },
    }
    return [(name, f"{total:,}", f"{most:,}", f"{load:.1%}") for name, (total, most, load) in rows.items()]


def _summary(answer: DistributionAnswer) -> list[Text]:
    found = answer["connections"]
    lines = [
        Text(f"highest load {answer['max_load']:.1%}, {counted(found['total'], 'connection')}", style="bold"),
        Text(
            f"{found['between']:,} between sites in {counted(found['channels'], 'channel')}, "
            f"{found['streams']:,} from streams, {found['results']:,} to clients; "
            f"{found['max_per_site']:,} at the busiest site"
        ),
    ]
    if answer["overloaded"]:
        lines.append(Text(f"overloaded: {first_of(answer['overloaded'], _MOST_NAMES)}", style="yellow"))
    lines += [Text(text, style="yellow") for text in answer["beyond"]]
    if answer.get("why"):
        lines.append(Text(f"{'then' if answer.get('moves') else 'nothing moves'}: {answer['why']}"))
    for region in dict.fromkeys(answer.get("regions", {}).values()):
        queries = [name for name, at in answer.get("regions", {}).items() if at == region]
        lines.append(Text(f"region {region or '(none)'}: {first_of(queries, _MOST_NAMES)}"))
    model = f", cost model {answer['model']}" if "model" in answer else ""
    return [*lines, Text(f"{answer['planner']}{model}, {answer['seconds'] * 1000:.1f} ms")]


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _more(count: int, what: str) -> None:
    if count > 0:
        out().print(Text(f"... and {count:,} more {what}; --json gives all", style="dim"))
