"""Commands that look at a project and start no engine: init, doctor, check, plan, explain, queries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headrace.cli.options import HERE, AsJson, Html, Only, ProjectPath, QueryName, Svg
from headrace.cli.render import count, out, print_json, table, write_files
from headrace.service import picture
from headrace.service.doctor import Check, examine, runnable
from headrace.service.explain import (
    NOT_RUN,
    Explanation,
    JobData,
    QuerySharing,
    SharedTreeData,
    SharingData,
    explain_plan,
    explain_query,
)
from headrace.service.planning import plan_project
from headrace.service.project import create_project, open_project
from headrace.service.queries import QueryData, list_queries


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Where to; made if it is not there.")
    ] = HERE,
    json: AsJson = False,
) -> int:
    """Write a commented starter project."""
    files = create_project(folder)
    if json:
        print_json({"folder": str(folder), "files": [str(f) for f in files]})
        return 0
    console = out()
    for file in files:
        console.print(f"wrote {file}")
    where = "" if folder == HERE else f" {folder}"
    console.print(f"Next: headrace check{where}, then: headrace run{where} --drain")
    return 0


def doctor(project: ProjectPath = HERE, json: AsJson = False) -> int:
    """Say what this machine has of all that Headrace needs."""
    checks = examine(os.environ, project if project.is_dir() else project.parent)
    ok = runnable(checks)
    if json:
        print_json({"runnable": ok, "checks": checks})
    else:
        _print_checks(checks)
    return 0 if ok else 1


def _print_checks(checks: tuple[Check, ...]) -> None:
    console = out()
    for check in checks:
        mark = Text("ok      " if check.ok else "missing ", style="green" if check.ok else "bold red")
        console.print(mark + Text(f"{check.name:8}{check.found}", style="default"))
        for note in check.notes:
            console.print(f"                {note}")
        if check.fix:
            console.print(f"                fix: {check.fix}")


def check(project: ProjectPath = HERE, json: AsJson = False) -> int:
    """Check the project file and every query, and touch nothing."""
    found = open_project(project)
    placed = plan_project(found)
    counts = {
        "streams": len(found.streams),
        "tables": len(found.tables),
        "sites": len(found.sites),
        "queries": len(placed.jobs),
    }
    if json:
        print_json({"project": found.name, "ok": True, **counts})
        return 0
    parts = ", ".join(f"{number} {name if number != 1 else name[:-1]}" for name, number in counts.items())
    parts = parts.replace("1 querie", "1 query")
    out().print(Text("ok ", style="green") + Text(f"{found.name}: {parts}", style="default"))
    return 0


def plan(
    project: ProjectPath = HERE,
    only: Only = None,
    brief: Annotated[bool, typer.Option("--brief", help="The steps, without the plan of each job.")] = False,
    svg: Svg = None,
    html: Html = None,
    json: AsJson = False,
) -> int:
    """Show the steps that `run` would take, the plan of every job, and which queries could share a tree."""
    data = explain_plan(open_project(project), only or ())
    _write_pictures(data["project"], data["jobs"], data["sharing"]["trees"], svg, html)
    if json:
        print_json(data)
        return 0
    console = out()
    for step, job in zip(data["steps"], data["jobs"], strict=True):
        console.print(Text(step, style="bold") + Text(f"  reads {_reads(job)}, gives {job['sink']}"))
        if not brief:
            console.print("\n".join(f"  {line}" for line in job["text"].splitlines()) + "\n")
    _print_sharing(data["sharing"], brief=brief)
    return 0


def _print_sharing(data: SharingData, *, brief: bool) -> None:
    """The trees and what they save; nothing where no query could be in one."""
    console = out()
    if not data["trees"]:
        return
    console.print(Text(_sharing_head(data), style="bold"))
    for tree in data["trees"]:
        if not brief:
            console.print(tree["text"])
        elif not tree["alone"]:
            names = ", ".join(query["query"] for query in tree["queries"])
            console.print(f"{tree['tree']} on {tree['site']}: {names}  {_tree_figures(tree)}")
    for query, reason in data["unshared"].items():
        if not brief:
            console.print(f"{query} not shared: {reason}")
    console.print(data["note"])


def _sharing_head(data: SharingData) -> str:
    woven = [tree for tree in data["trees"] if not tree["alone"]]
    count = sum(len(tree["queries"]) for tree in woven)
    if not woven:
        return "sharing: no two queries share a tree"
    saved = 1 - data["cost"] / data["unshared_cost"]
    return (
        f"sharing: {count} queries in {len(woven)} {'tree' if len(woven) == 1 else 'trees'}, "
        f"{len(data['trees']) - len(woven)} with a tree of their own, {len(data['unshared'])} in none; "
        f"{data['cost']:,.6g} operations/s instead of {data['unshared_cost']:,.6g} ({saved:.0%} less)"
    )


def _tree_figures(tree: SharedTreeData) -> str:
    exact = "" if tree["exact"] else "at most "
    return (
        f"{exact}{tree['edge_rate_float']:.6g} fragments/s, {tree['cost']:,.6g} operations/s instead of "
        f"{tree['unshared_cost']:,.6g}"
    )


def explain(
    query: QueryName, project: ProjectPath = HERE, svg: Svg = None, html: Html = None, json: AsJson = False
) -> int:
    """Show what one query does: its plan as written, and as it runs."""
    data = explain_query(open_project(project), query)
    tree = data["sharing"]["tree"]
    _write_pictures(data["query"], [data], [] if tree is None else [tree], svg, html)
    if json:
        print_json(data)
    else:
        _print_explanation(data)
    return 0


def _print_explanation(data: Explanation) -> None:
    console = out()
    console.print(Text(f"query {data['query']}", style="bold") + Text(f" on {data['site']}"))
    console.print(f"reads {_reads(data)}; gives {data['sink']} {data['results']}".rstrip())
    if data["before"] == data["plan"]:
        console.print(Text("\nplan (no rewrite rule applies)", style="bold"))
    else:
        console.print(Text("\nas written", style="bold"))
        console.print(data["before_text"])
        console.print(Text("\nas it runs", style="bold"))
    console.print(data["text"])
    console.print(Text("\nsharing", style="bold"))
    for line in _sharing_lines(data["sharing"]):
        console.print(line)


def _sharing_lines(sharing: QuerySharing) -> list[str]:
    tree = sharing["tree"]
    if tree is None:
        return [f"not shared: {sharing['reason']}"]
    if tree["alone"]:
        return [f"a tree of its own, {tree['cost']:,.6g} operations/s: {sharing['reason']}"]
    saves = sharing["saves"]
    return [
        f"could share tree {tree['tree']} on {tree['site']} with {', '.join(sharing['shares_with'])}",
        f"{tree['rows']} by ({', '.join(tree['keys'])}): {_tree_figures(tree)}",
        f"in the tree this query {'saves' if saves >= 0 else 'costs'} {abs(saves):,.6g} operations/s"
        + ("" if saves >= 0 else " more than alone"),
        sharing["note"],
    ]


def _reads(job: JobData) -> str:
    return ", ".join((*job["streams"], *job["tables"]))


def _write_pictures(
    title: str,
    jobs: list[JobData] | list[Explanation],
    trees: list[SharedTreeData],
    svg: Path | None,
    html: Path | None,
) -> None:
    texts = {} if svg is None else {svg: picture.svg(jobs, trees)}
    write_files(texts if html is None else {**texts, html: picture.html(title, jobs, trees, NOT_RUN)})


def queries(project: ProjectPath = HERE, json: AsJson = False) -> int:
    """List the queries and what is known of their last run."""
    rows = list_queries(open_project(project))
    if json:
        print_json(rows)
        return 0
    columns = ("query", "site", "sink", "state", "batch", "rows out", "late", "updated")
    numbers = frozenset({"batch", "rows out", "late"})
    out().print(table(columns, [_query_cells(row) for row in rows], numbers))
    return 0


def _query_cells(row: QueryData) -> tuple[str, ...]:
    state = row["observed"] or "never run"
    if row["error"]:
        state += f": {row['error'].splitlines()[0]}"
    return (
        row["name"],
        row["site"],
        row["sink"],
        state,
        count(row["batch"]),
        count(row["output_rows"]),
        count(row["late_rows"]),
        (row["updated"] or "")[:19].replace("T", " "),
    )
