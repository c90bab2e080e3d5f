"""Commands that look at a project and start no engine: init, doctor, check, plan, explain, queries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from headrace.cli.network import (
    MapFile,
    Placement,
    network_map,
    print_distribution,
    print_placement,
    print_spread,
    print_utilisation,
)
from headrace.cli.options import HERE, AsJson, Html, Only, ProjectPath, QueryName, Svg
from headrace.cli.render import count, out, print_json, table, write_files
from headrace.service import picture
from headrace.service.doctor import Check, examine, runnable
from headrace.service.explain import (
    Explanation,
    JobData,
    PlanData,
    SharedTreeData,
    SharingData,
    explain_placement,
    explain_plan,
    explain_query,
)
from headrace.service.federating import check_engines
from headrace.service.foreseeing import foreseen
from headrace.service.planning import plan_jobs
from headrace.service.predict import lines as prediction_lines
from headrace.service.project import create_project, open_project
from headrace.service.queries import QueryData, dropped_queries, list_queries
from headrace.service.telling import counted


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
    placed = plan_jobs(found)
    check_engines(found, placed.jobs)
    counts = {
        "streams": len(found.streams),
        "tables": len(found.tables),
        "sites": len(found.sites),
        "queries": len(placed.jobs),
    }
    if json:
        print_json({"project": found.name, "ok": True, **counts})
        return 0
    nouns = (("stream", "streams"), ("table", "tables"), ("site", "sites"), ("query", "queries"))
    parts = ", ".join(counted(counts[many], one, many) for one, many in nouns)
    out().print(Text("ok ", style="green") + Text(f"{found.name}: {parts}", style="default"))
    return 0


def plan(
    project: ProjectPath = HERE,
    only: Only = None,
    brief: Annotated[bool, typer.Option("--brief", help="The steps, without the plan of each job.")] = False,
    svg: Svg = None,
    html: Html = None,
    placement: Placement = None,
    map_file: MapFile = None,
    json: AsJson = False,
) -> int:
    """Show the steps that `run` would take from nothing: the trees of queries that share, and the other
    jobs; where streams are best joined, if there are several sites; and how much of each site and link is
    used."""
    found = open_project(project)
    data = explain_plan(found, only or (), placement)
    expected = foreseen(found, only or ())
    drawn = {} if map_file is None else {map_file: network_map(data, map_file)}
    _write_pictures(data["project"], data["jobs"], data["sharing"]["trees"], svg, html, drawn)
    if json:
        print_json({**data, **expected})
        return 0
    _print_steps(data, brief=brief)
    _print_sharing(data["sharing"], brief=brief)
    if "placement" in data:
        print_placement(data["placement"], brief=brief)
    if "spread" in data:
        print_spread(data["spread"])
    if "distribution" in data:
        print_distribution(data["distribution"])
    for line in prediction_lines(expected["predicted"]):
        out().print(line)
    print_utilisation(expected["utilisation"], brief=brief)
    return 0


def _print_steps(data: PlanData, *, brief: bool) -> None:
    """Trees first, then jobs, as they stand in the steps."""
    console, trees = out(), data["sharing"]["trees"]
    texts = [tree["text"] for tree in trees] + [_plan_text(job) for job in data["jobs"]]
    notes = [f"reads {tree['rows']}" for tree in trees]
    notes += [f"reads {_reads(job)}, gives {job['sink']}" for job in data["jobs"]]
    for step, note, text in zip(data["steps"], notes, texts, strict=True):
        console.print(Text(step, style="bold") + Text(f"  {note}"))
        if not brief:
            console.print("\n".join(f"  {line}" for line in text.splitlines()) + "\n")


def _plan_text(job: JobData) -> str:
    split = job.get("federation")
    return job["text"] if split is None else "\n".join([job["text"], "federation", *split["text"]])


def _print_sharing(data: SharingData, *, brief: bool) -> None:
    """What the trees save, and why queries are in none."""
    console = out()
    if data["trees"]:
        console.print(Text(_sharing_head(data), style="bold"))
    for query, reason in data["unshared"].items():
        if not brief:
            console.print(f"{query} not shared: {reason}")
    for note in data["notes"]:
        console.print(note)


def _sharing_head(data: SharingData) -> str:
    woven = [tree for tree in data["trees"] if not tree["alone"]]
    number = sum(len(tree["queries"]) for tree in woven)
    together = f"{counted(number, 'query', 'queries')} in {counted(len(woven), 'tree')}, "
    return (
        f"sharing: {together if woven else ''}"
        f"{len(data['trees']) - len(woven)} with a tree of their own, {len(data['unshared'])} in none; "
        f"{data['cost']:,.3g} cores instead of {data['unshared_cost']:,.3g} with a tree each and "
        f"{data['plain_cost']:,.3g} as Spark's own windows"
    )


def explain(
    query: QueryName, project: ProjectPath = HERE, svg: Svg = None, html: Html = None, json: AsJson = False
) -> int:
    """Show what one query does: its plan as written, and as it runs."""
    found = open_project(project)
    data = explain_query(found, query)
    placement = explain_placement(found, query)
    tree = data["sharing"]["tree"]
    _write_pictures(data["query"], [data], [] if tree is None else [tree], svg, html)
    if json:
        print_json({**data, "placement": placement} if placement else data)
        return 0
    _print_explanation(data)
    _print_lines("placement", placement)
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
    _print_lines("sharing", data["sharing"]["lines"])
    if "federation" in data:
        _print_lines("federation", data["federation"]["text"])
    if "not_split" in data:
        _print_lines("federation", [f"not split: {data['not_split']}"])


def _print_lines(title: str, lines: Sequence[str]) -> None:
    if lines:
        out().print(Text(f"\n{title}", style="bold"))
    for line in lines:
        out().print(line)


def _reads(job: JobData) -> str:
    return ", ".join((*job["streams"], *job["tables"]))


def _write_pictures(
    title: str,
    jobs: list[JobData] | list[Explanation],
    trees: list[SharedTreeData],
    svg: Path | None,
    html: Path | None,
    others: Mapping[Path, str] | None = None,
) -> None:
    texts = dict(others or {})
    texts |= {} if svg is None else {svg: picture.svg(jobs, trees)}
    write_files(texts if html is None else {**texts, html: picture.html(title, jobs, trees)})


def queries(project: ProjectPath = HERE, json: AsJson = False) -> int:
    """List the queries, where they run and what is known of their last run."""
    opened = open_project(project)
    rows = list_queries(opened)
    if json:
        print_json(rows)
        return 0
    columns = ("query", "site", "sink", "state", "batch", "rows out", "late", "updated", "tree", "valid from")
    numbers = frozenset({"batch", "rows out", "late"})
    out().print(table((*columns, "by"), [_query_cells(row) for row in rows], numbers))
    dropped = dropped_queries(opened)
    if dropped:
        out().print(f"dropped by command, still in the project file: {', '.join(dropped)}")
    return 0


def _query_cells(row: QueryData) -> tuple[str, ...]:
    state = row["observed"] or "never run"
    if row["pending"]:
        state = "to be added"
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
        row["tree"] or "",
        row["valid_from"] or "",
        row["by"],
    )
