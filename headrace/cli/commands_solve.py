"""`headrace solve`: one problem given to one planner, without a project and without an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from headrace.cli.admission_text import print_admission
from headrace.cli.distribution_text import print_distribution
from headrace.cli.federation_text import print_federation
from headrace.cli.options import AsJson
from headrace.cli.own_stdout import own_stdout
from headrace.cli.placement_text import print_placement
from headrace.cli.render import out, print_json, table
from headrace.errors import UserError
from headrace.service.solve import (
    NodeData,
    Request,
    SharingAnswer,
    TreeData,
    check_out,
    list_optimisers,
    read_deadline,
    solve_file,
    write_answer,
)
from headrace.service.telling import first_of

_MOST_TREES = 40
_MOST_NODES = 40
_MOST_FRONT = 20
_MOST_NAMES = 8
_NUMBERS = frozenset({"node", "capacity", "trees", "queries", "edges", "overlap", "cost", "load", "groups"})


def solve(
    planner: Annotated[
        str,
        typer.Argument(
            metavar="PLANNER", help="The planner: sharing, placement, admission, distribution or federation."
        ),
    ],
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="The problem, JSON; - reads standard input.")
    ] = None,
    optimiser: Annotated[
        str | None, typer.Option("--with", metavar="NAME", help="The optimiser; see --list.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the optimisers, and solve nothing.")] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Where an optimiser draws at random.")] = None,
    balance: Annotated[
        float | None, typer.Option(help="Sharing: the least total * maximum^BALANCE; 0: the lowest total.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="headrace, joint: stop searching after this time.")
    ] = None,
    preprocess: Annotated[
        bool,
        typer.Option("--preprocess", help="Sharing: first merge queries with the same slide and offset."),
    ] = False,
    stop: Annotated[
        Literal["prose", "listing"] | None,
        typer.Option(help="W_TN, WG_TN: when to stop merging, by the paper's text or by its listing."),
    ] = None,
    insert: Annotated[
        Literal["prose", "plan", "literal"] | None,
        typer.Option(help="W_I, WG_I: compare the cost of nodes, of plans, or as Algorithm 3 is printed."),
    ] = None,
    start: Annotated[
        Literal["random", "first"] | None, typer.Option(help="W_I, WG_I: which queries open the nodes.")
    ] = None,
    front: Annotated[
        bool, typer.Option("--front", help="Sharing: give all plans that no other beats.")
    ] = False,
    max_cs: Annotated[
        int | None, typer.Option("--max-cs", help="top-down, bottom-up, npc: most sites in a cluster (32).")
    ] = None,
    zones: Annotated[int | None, typer.Option(help="in-network: how many zones (5).")] = None,
    iterations: Annotated[int | None, typer.Option(help="relaxation: steps of the springs (4000).")] = None,
    deadline: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Admission: time for one query, like 1s, 500ms or 2 (seconds)."),
    ] = None,
    batch: Annotated[
        int | None, typer.Option(metavar="N", help="Admission with milp, soda: submit N queries together.")
    ] = None,
    choosy: Annotated[
        bool,
        typer.Option("--choosy", help="Admission: may refuse a dear query that fits, to admit more later."),
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Placement: draw the map of the network, .svg or .html."),
    ] = None,
    ignore_feasibility: Annotated[
        bool,
        typer.Option(
            "--ignore-feasibility", help="Federation: choose the least utilisation, feasible or not."
        ),
    ] = False,
    engine: Annotated[
        Literal["both", "spark", "duckdb"] | None,
        typer.Option(help="Federation: have every operator that is free on one engine."),
    ] = None,
    decompose: Annotated[
        int | None, typer.Option(metavar="N", help="Federation: solve pieces of at most N operators.")
    ] = None,
    runners: Annotated[
        int | None, typer.Option(metavar="N", help="Federation: how many runners-up to tell (3).")
    ] = None,
    to: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the answer to a file too, as JSON.")
    ] = None,
    json: AsJson = False,
) -> int:
    """Solve one planning problem that is given as data."""
    if list_:
        return _list(list_optimisers(planner), as_json=json)
    if file is None:
        raise UserError("which problem?", hint=f"headrace solve {planner} problem.json, or - to read it.")
    if to is not None:
        check_out(to)
    request = Request(
        optimiser=optimiser,
        seed=seed,
        balance=balance,
        seconds=seconds,
        preprocess=preprocess or None,
        stop=stop,
        insert=insert,
        start=start,
        front=front or None,
        max_cs=max_cs,
        zones=zones,
        iterations=iterations,
        deadline=None if deadline is None else read_deadline(deadline),
        batch=batch,
        choosy=choosy or None,
        picture=picture,
        ignore_feasibility=ignore_feasibility or None,
        engine=engine,
        decompose=decompose,
        runners=runners,
    )
    with own_stdout():
        answer = solve_file(planner, file, request)
    if to is not None:
        write_answer(to, answer)
    if json:
        print_json(answer)
    elif answer["problem"] == "placement":
        print_placement(answer)
    elif answer["problem"] == "distribution":
        print_distribution(answer)
    elif answer["problem"] == "federation":
        print_federation(answer)
    elif answer["problem"] == "admission":
        print_admission(answer)
    else:
        _print_sharing(answer)
    return 0


def _list(optimisers: dict[str, str], *, as_json: bool) -> int:
    if as_json:
        print_json({"default": next(iter(optimisers)), "optimisers": optimisers})
        return 0
    out().print(table(("optimiser", "what it does"), list(optimisers.items())))
    return 0


def _print_sharing(answer: SharingAnswer) -> None:
    console = out()
    rows = [_node_cells(node) for node in answer["nodes"][:_MOST_NODES]]
    console.print(table(("node", "capacity", "trees", "queries", "cost", "load"), rows, _NUMBERS))
    _more(len(answer["nodes"]) - _MOST_NODES, "nodes")
    trees = [(node["node"], tree) for node in answer["nodes"] for tree in node["trees"]]
    console.print()
    cells = [_tree_cells(node, tree) for node, tree in trees[:_MOST_TREES]]
    # Only queries with filters or group-bys have more to say about a tree.
    extra = ("form", "groups") if any("form" in tree for _, tree in trees) else ()
    console.print(table(("node", "edges", "overlap", "cost", *extra, "tree"), cells, _NUMBERS))
    _more(len(trees) - _MOST_TREES, "trees")
    if "front" in answer:
        console.print(f"\nplans that no other beats on both costs: {len(answer['front'])}")
        rows = [(_figure(p["total_cost"]), _figure(p["max_cost"])) for p in answer["front"][:_MOST_FRONT]]
        console.print(table(("total", "maximum"), rows, frozenset({"total", "maximum"})))
        _more(len(answer["front"]) - _MOST_FRONT, "plans")
    console.print()
    for line in _summary(answer):
        console.print(line)


def _summary(answer: SharingAnswer) -> list[Text]:
    total, alone, bound = answer["total_cost"], answer["unshared_cost"], answer["lower_bound"]
    load, least = answer["max_load"], answer["lower_bound_max"]
    saving = f"{alone - total:,.6g} ({1 - total / alone:.1%})" if alone else "0"
    lines = [
        Text(f"total {_figure(total)}, dearest node {_figure(answer['max_cost'])}", style="bold"),
        Text(f"with a tree for each query the total is {_figure(alone)}: sharing saves {saving}"),
        Text(f"lower bound of the total {_figure(bound)}: {_gap(total, bound)}"),
        Text(f"lower bound of the highest load {_figure(least)}: {_gap(load, least)}"),
        Text(f"{answer['optimiser']}, cost model {answer['cost']}, {answer['seconds'] * 1000:.1f} ms"),
    ]
    if answer["compile_seconds"]:
        lines[-1].append(f" (and {answer['compile_seconds']:.2f} s to compile or load the kernels, once)")
    return [*lines, *(Text(f"{name}: {note}") for name, note in answer.get("notes", {}).items())]


def _gap(value: float, bound: float) -> str:
    return (
        f"at most {max(0.0, value / bound - 1):.1%} above the best possible" if bound > 0 else "says nothing"
    )


def _node_cells(node: NodeData) -> tuple[str, ...]:
    queries = sum(len(tree["queries"]) for tree in node["trees"])
    return (
        str(node["node"]),
        f"{node['capacity']:g}",
        f"{len(node['trees']):,}",
        f"{queries:,}",
        _figure(node["cost"]),
        _figure(node["cost"] / node["capacity"]),
    )


def _tree_cells(node: int, tree: TreeData) -> tuple[str, ...]:
    short = len(tree["edge_rate"]) <= 15
    edges = tree["edge_rate"] if short else f"{tree['edge_rate_float']:.6g}"
    return (
        str(node),
        edges if tree["exact"] else f"<= {edges}",
        f"{tree['overlap']:,.6g}",
        _figure(tree["cost"]),
        *((tree["form"], _figure(tree["groups"])) if "form" in tree else ()),
        first_of(tree["queries"], _MOST_NAMES),
    )


def _figure(value: float) -> str:
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.6g}"


def _more(count: int, what: str) -> None:
    if count > 0:
        out().print(Text(f"... and {count:,} more {what}; --json gives all", style="dim"))
