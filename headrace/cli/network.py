"""Where streams are joined, on the terminal and as a map, and what sites and links carry: parts of `plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headrace.cli.render import out, table
from headrace.errors import UserError
from headrace.service.distributing_data import DistributionData
from headrace.service.distributing_data import head_line as distribution_head
from headrace.service.distributing_data import tables as distribution_tables
from headrace.service.explain import PlanData
from headrace.service.network_picture import draw
from headrace.service.placing_data import PlacementData, head_lines, placement_map, tables
from headrace.service.spread_data import SpreadData, spread_lines
from headrace.service.utilisation import Utilisation, head_line, notes
from headrace.service.utilisation import tables as utilisation_tables

Placement = Annotated[
    str | None,
    typer.Option(
        metavar="PLANNER",
        help="Who decides where streams are joined; `headrace solve placement --list` names all.",
    ),
]
MapFile = Annotated[
    Path | None,
    typer.Option(
        "--map", metavar="FILE", help="Draw the network: .svg, or .html with the tables. Several sites only."
    ),
]
_NUMBERS = frozenset(
    {"makes", "adds", "there", "back", "of its bandwidth", "jobs", "connections", "cores", "load"}
)


def network_map(data: PlanData, path: Path) -> str:
    """What to write into the file. Raises UserError where there is nothing to draw."""
    if "placement" not in data:
        raise UserError(
            "there is no network to draw: no query joins streams, or there is one site only",
            hint="--svg and --html draw what each query does.",
        )
    found = data["placement"]
    title = f"{data['project']}: where streams are joined"
    return draw(placement_map(title, found), path, tables(found))


def print_placement(data: PlacementData, *, brief: bool) -> None:
    console = out()
    first, *rest = head_lines(data)
    console.print(Text(first, style="bold"))
    for line in rest:
        console.print(line)
    for one in tables(data):
        if brief and one.title == "links":
            continue
        console.print(table(one.columns, one.rows, _NUMBERS))
        console.print()
    for note in data["notes"]:
        console.print(note)


def print_distribution(data: DistributionData) -> None:
    console = out()
    console.print(Text(distribution_head(data), style="bold"))
    for one in distribution_tables(data):
        console.print(table(one.columns, one.rows, _NUMBERS))
    for text in data["beyond"]:
        console.print(text)


def print_spread(data: SpreadData) -> None:
    first, *rest = spread_lines(data)
    out().print(Text(first, style="bold"))
    for line in rest:
        out().print(line, soft_wrap=True)


def print_utilisation(data: Utilisation, *, brief: bool) -> None:
    console = out()
    if not data["sites"]:
        return
    console.print(Text(head_line(data), style="bold"))
    for one in utilisation_tables(data, brief=brief):
        console.print(table(one.columns, one.rows))
    for note in notes(data):
        console.print(note)
