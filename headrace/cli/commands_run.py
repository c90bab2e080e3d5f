"""Commands that move data: run, results, reference. Each imports the engine it needs, and no other."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from headrace.cli.live import run_table, totals, view
from headrace.cli.options import HERE, AsJson, Limit, Only, ProjectPath, QueryName
from headrace.cli.render import cell, err, out, print_json, table
from headrace.errors import UserError
from headrace.service.compared import comparison_lines
from headrace.service.project import edits_of, open_project
from headrace.service.run import Options, Outcome
from headrace.service.telling import counted
from headrace.service.view import job_rows, run_data

if TYPE_CHECKING:
    from headrace.service.results import Verdict
    from headrace.service.rows import Rows


def run(
    project: ProjectPath = HERE,
    drain: Annotated[
        bool, typer.Option("--drain", help="Read the input to its end, give every window, and stop.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Forget earlier runs: remove checkpoints and results first.")
    ] = False,
    only: Only = None,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="Run on this Spark instead of the sites' endpoints.")
    ] = None,
    json: AsJson = False,
) -> int:
    """Run the queries, until stopped or, with --drain, until the input is exhausted."""
    from headrace.service.session import Watcher, run_project

    opened = open_project(project)
    if not opened.queries and not edits_of(opened).pending:
        raise UserError("the project has no queries to run", hint="Declare one under `queries`.")
    options = Options(drain=drain, fresh=fresh, master=master)
    with view(err(), quiet=json) as shown:
        watcher = Watcher(
            shown.show, shown.data, lambda _, rows: _print_console_rows(rows, as_json=json), shown.note
        )
        outcome = run_project(opened, options, os.environ, only or (), watcher)
    if json:
        print_json(run_data(outcome))
    else:
        _print_outcome(outcome)
    return outcome.exit_code


def _print_console_rows(rows: Rows, *, as_json: bool) -> None:
    """What a console sink gives. With `--json` standard output is for the outcome alone."""
    console = err() if as_json else out()
    for row in rows.rows:
        values = ", ".join(f"{name}={cell(value)}" for name, value in zip(rows.columns, row, strict=True))
        console.print(f"{rows.query}: {values}", soft_wrap=True)


def _print_outcome(outcome: Outcome) -> None:
    rows = job_rows(outcome.last)
    console = out()
    console.print(run_table(rows, bars=console.is_terminal))
    for line in comparison_lines(outcome.costs):
        console.print(line)
    console.print(Text(f"{outcome.last.seconds:.1f} s  {totals(rows)}", style="bold"))
    for job, reason in outcome.failures:
        err().print(Text(f"{job} failed: ", style="bold red") + Text(reason), soft_wrap=True)
    if outcome.interrupted and outcome.drained:
        err().print("stopped before the input was exhausted; run again to go on from here")


def results(
    query: QueryName,
    project: ProjectPath = HERE,
    limit: Limit = 20,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compare all results with the reference; exit 1 if they differ.")
    ] = False,
    json: AsJson = False,
) -> int:
    """Show published results of a query, the newest windows last."""
    from headrace.service.results import query_results, verify_results

    opened = open_project(project)
    if verify:
        return _print_verdict(verify_results(opened, query), as_json=json)
    return _print_rows(query_results(opened, query, limit), as_json=json)


def reference(query: QueryName, project: ProjectPath = HERE, limit: Limit = 20, json: AsJson = False) -> int:
    """Show the answer of a batch evaluation of the query, in DuckDB, over all its input."""
    from headrace.service.results import reference_results

    return _print_rows(reference_results(open_project(project), query, limit), as_json=json)


def _print_verdict(verdict: Verdict, *, as_json: bool) -> int:
    if as_json:
        print_json(verdict)
    elif verdict.equal:
        since = f", windows from {verdict.valid_from} on" if verdict.valid_from else ""
        out().print(f"{verdict.query}: equal to the reference, {counted(verdict.published, 'row')}{since}")
    else:
        out().print(
            f"{verdict.query}: differs from the reference "
            f"({counted(verdict.published, 'row')} published, {verdict.expected:,} expected)\n"
            f"{verdict.difference}"
        )
    return 0 if verdict.equal else 1


def _print_rows(rows: Rows, *, as_json: bool) -> int:
    if as_json:
        named = [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]
        print_json({"query": rows.query, "columns": rows.columns, "total": rows.total, "rows": named})
        return 0
    console = out()
    console.print(table(rows.columns, [[cell(value) for value in row] for row in rows.rows]))
    console.print(f"{len(rows.rows):,} of {counted(rows.total, 'row')}")
    return 0
